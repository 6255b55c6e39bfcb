"""`moldau load` on Spark while drivers, executors, Python workers and brokers are killed: every record is there once.

Each change runs the small form: two kills on two local threads. MOLDAU_LAKE_SPARK_KILLS=30 runs the long one, shared
between local loads, upserts and a standalone cluster of one master and two workers; MOLDAU_LAKE_SEED repeats the
choices of a run.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic
from tests.interop.nodes import MoldauNode
from tests.lake.kill_runs import Writer, check_every_record_once, check_newest_values, commits, wait_until
from tests.pace import patience
from tests.spark.jobs import QUICK_SETTINGS, Program, StandaloneCluster, _workers_below, kill_one

KILLS = int(os.environ.get("MOLDAU_LAKE_SPARK_KILLS", "0"))
SEED = int(os.environ.get("MOLDAU_LAKE_SEED", str(random.SystemRandom().randrange(1 << 30))))
PARTITIONS = 3
TOPIC = "killed"
FINISH_SECONDS_MAX = patience(300)

if shutil.which("java") is None:
    pytest.skip("Java is missing: install a Java 17 (or newer) runtime", allow_module_level=True)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MoldauNode]:
    """A Moldau for one test alone, which kills it."""
    node = MoldauNode(tmp_path / "moldau")
    node.format()
    node.start()
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].get()
    yield node
    node.kill()


class KilledLoad:
    """A load that is started again whenever it has ended, and what can be killed around it."""

    def __init__(
        self, node: MoldauNode, folder: Path, master: str, cluster: StandaloneCluster | None, mode: str
    ) -> None:
        self.node = node
        self.lake = str(folder / "lake")
        self.cluster = cluster
        self._log = folder / "load.log"
        self._command = [sys.executable, "-m", "moldau.cli.main", "load", TOPIC, "--to", self.lake, "--master", master]
        self._command += ["-b", node.bootstrap, "--mode", mode]
        for name, value in QUICK_SETTINGS.items():
            self._command += ["--spark-conf", f"{name}={value}"]
        self.program = self._make()
        self.killed: Counter[str] = Counter()

    def _make(self) -> Program:
        more = ["--continuous", "--interval", "0.1", "--records-per-commit", "300", "--records-per-task", "60"]
        return Program([*self._command, *more], self._log)

    def make_progress(self) -> None:
        """Waits until something more was committed; a load that ended by itself is started again."""
        before = commits(self.lake)
        deadline = time.monotonic() + FINISH_SECONDS_MAX
        while commits(self.lake) <= before:
            if not self.program.alive:
                self.program.kill()
                self.program = self._make()
                self.program.start()
            assert time.monotonic() < deadline, self.program.output()[-3000:]
            time.sleep(0.02)

    def kill(self, victim: str, chance: random.Random) -> None:
        if victim == "driver":
            self.program.kill()
        elif victim == "broker":
            self.node.kill()
            time.sleep(chance.uniform(0, 1))
            self.node.start()
        else:
            wait_until(lambda: kill_one(self._pids(victim), chance) or not self.program.alive, f"a {victim} to kill")
        self.killed[victim] += 1

    def _pids(self, victim: str) -> list[int]:
        if self.cluster is not None:
            return self.cluster.executors() if victim == "executor" else self.cluster.python_workers()
        assert self.program.process is not None
        return _workers_below(self.program.process.pid)

    def finish(self) -> None:
        """Ends what runs, and loads the rest."""
        self.program.kill()
        for _ in range(10):
            program = Program([*self._command, "--once"], self._log)
            program.start()
            assert program.process is not None
            try:
                if program.process.wait(FINISH_SECONDS_MAX) == 0:
                    return
            finally:
                program.kill()
        raise AssertionError(f"the load does not end:\n{self._log.read_text()[-3000:]}")


def run(load: KilledLoad, victims: list[str], kills: int, check: Callable[[str, str, str, int], int], keys: int) -> int:
    """Kills and starts while records arrive; returns how many rows there are in the end."""
    chance = random.Random(SEED)
    print(f"MOLDAU_LAKE_SEED={SEED}")
    writer = Writer(load.node.bootstrap, TOPIC, PARTITIONS, SEED, keys)
    writer.start()
    try:
        for number in range(kills):
            load.make_progress()
            time.sleep(chance.uniform(0, 0.5))
            # Each kind of victim has its turn, in an order that chance decides.
            if number % len(victims) == 0:
                chance.shuffle(victims)
            load.kill(victims[number % len(victims)], chance)
        writer.end()
        load.finish()
    finally:
        load.program.kill()
    rows = check(load.lake, load.node.bootstrap, TOPIC, PARTITIONS)
    print(f"{sum(load.killed.values())} kills ({dict(load.killed)}), {rows} rows")
    return rows


def test_a_driver_and_a_worker_are_killed(broker: MoldauNode, tmp_path: Path) -> None:
    load = KilledLoad(broker, tmp_path, "local[2,20]", None, "append")
    assert run(load, ["driver", "worker"], 2, check_every_record_once, 0) > 100


@pytest.mark.skipif(not KILLS, reason="the long form: set MOLDAU_LAKE_SPARK_KILLS=30")
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_many_kills_on_local_threads(broker: MoldauNode, tmp_path: Path, mode: str) -> None:
    load = KilledLoad(broker, tmp_path, "local[2,20]", None, mode)
    share = (KILLS + 2) // 3 if mode == "append" else (KILLS + 5) // 6
    check = check_every_record_once if mode == "append" else check_newest_values
    assert run(load, ["driver", "worker", "broker"], share, check, 0 if mode == "append" else 300) > 100


@pytest.mark.skipif(not KILLS, reason="the long form: set MOLDAU_LAKE_SPARK_KILLS=30")
def test_many_kills_on_a_cluster(broker: MoldauNode, tmp_path: Path) -> None:
    """One master and two workers, as they are started by hand."""
    cluster = StandaloneCluster(tmp_path / "cluster")
    cluster.start()
    try:
        load = KilledLoad(broker, tmp_path, cluster.url, cluster, "append")
        assert run(load, ["driver", "executor", "worker", "broker"], KILLS // 2, check_every_record_once, 0) > 100
    finally:
        cluster.stop()
