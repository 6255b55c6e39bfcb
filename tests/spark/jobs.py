"""Spark programs and a Spark standalone cluster as real processes, to be killed: drivers, executors, Python workers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.interop.nodes import HOST, free_ports
from tests.pace import patience
from tests.spark.conftest import worker_environment

START_SECONDS_MAX = patience(120)
# These processes live for seconds: what counts is how soon they start.
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
QUICK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_JVM,
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.task.maxFailures": "20",
}


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def environment() -> dict[str, str]:
    return {
        **os.environ,
        **worker_environment(),
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


class Program:
    """One process with its output in a file; ended with everything that it started."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.command = command
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL for the process and its group: a driver and its JVM go down in the same moment."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while text not in self.output():
            assert self.alive, f"it ended while starting:\n{self.output()[-3000:]}"
            assert time.monotonic() < deadline, f"it is not ready in time:\n{self.output()[-3000:]}"
            time.sleep(0.05)

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class Job(Program):
    """One of the programs of this folder, with its settings as JSON; it may die and be started again."""

    def __init__(self, module: str, settings: dict[str, Any], log: Path) -> None:
        given = {**settings, "spark": {**QUICK_SETTINGS, **settings.get("spark", {})}}
        super().__init__([sys.executable, "-m", module, json.dumps(given)], log)
        self.starts = 0

    def start(self) -> None:
        super().start()
        self.starts += 1

    def keep_alive(self) -> None:
        """Starts it again if it has ended, as whoever runs it would do."""
        if not self.alive:
            self.kill()
            self.start()

    def python_workers(self) -> list[int]:
        """Its Python processes that run tasks, or plan and commit for the driver."""
        assert self.process is not None
        return _workers_below(self.process.pid)


class StandaloneCluster:
    """One master and two workers, from the installed pyspark."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, web = free_ports(2)
        self.url = f"spark://{HOST}:{self.port}"
        launcher = str(spark_home() / "bin" / "spark-class")
        master = ["--host", HOST, "--port", str(self.port), "--webui-port", str(web)]
        self.master = Program([launcher, "org.apache.spark.deploy.master.Master", *master], folder / "master.log")
        self.workers = []
        for number in range(workers):
            ports = free_ports(2)
            options = ["--host", HOST, "--port", str(ports[0]), "--webui-port", str(ports[1])]
            options += ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}")]
            command = [launcher, "org.apache.spark.deploy.worker.Worker", *options, self.url]
            self.workers.append(Program(command, folder / f"worker-{number}.log"))

    def start(self) -> None:
        os.environ["SPARK_DAEMON_JAVA_OPTS"] = QUICK_JVM
        os.environ["SPARK_DAEMON_MEMORY"] = "256m"
        self.master.start()
        self.master.wait_for("I have been elected leader")
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def stop(self) -> None:
        for program in (*self.workers, self.master):
            program.kill()

    def executors(self) -> list[int]:
        """Executor JVMs of all applications."""
        pids = []
        for worker in self.workers:
            if worker.alive:
                assert worker.process is not None
                found = _descendants(worker.process.pid)
                pids += [pid for pid in found if "CoarseGrainedExecutorBackend" in _command(pid)]
        return pids

    def python_workers(self) -> list[int]:
        pids = []
        for worker in self.workers:
            if worker.alive:
                assert worker.process is not None
                pids += _workers_below(worker.process.pid)
        return pids


def kill_one(pids: list[int], chance: random.Random) -> bool:
    """Kills one of them; False where there is none, or it has just ended by itself."""
    if not pids:
        return False
    try:
        os.kill(chance.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _workers_below(pid: int) -> list[int]:
    """Spark forks Python workers from a daemon, which is left alone: what it forked is what works."""
    daemons = {found for found in _descendants(pid) if "pyspark.daemon" in _command(found)}
    return [found for found in daemons if _parent(found) in daemons]


def _descendants(pid: int) -> list[int]:
    parents = {child: _parent(child) for child in _all_pids()}
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found[1:]


def _all_pids() -> Iterator[int]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            yield int(entry)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return -1


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
