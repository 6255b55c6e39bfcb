"""One node as a process of its own: started, waited for, paused, stopped and killed; its log is shown when it fails."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from moldau.testing.errors import BrokerNotStarted
from moldau.testing.guard import Guard

READY_PREFIX = b"moldau ready:"
START_TIMEOUT_MS = 60_000
STOP_TIMEOUT_MS = 30_000
LOG_LINES_SHOWN = 25
# Makes a node stop when its standard input ends (moldau/server/process.py).
PARENT_VARIABLE = "MOLDAU_STOP_AT_END_OF_STDIN"


class NodeProcess:
    """Runs `moldau server` with the given settings, as often as it is started."""

    def __init__(
        self, name: str, settings: Mapping[str, str], cluster_id: str, log_file: Path, log_level: str, guard: Guard
    ) -> None:
        self.name = name
        self.log_file = log_file
        self._settings = dict(settings)
        self._cluster_id = cluster_id
        self._log_level = log_level
        self._guard = guard
        self._process: subprocess.Popen[bytes] | None = None
        self.is_paused = False
        self.starts = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        try:
            return self.log_file.read_text(errors="replace")
        except OSError:
            return ""

    def begin_start(self) -> None:
        """Starts the process without waiting for it."""
        assert not self.is_running, f"{self.name} runs already"
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                start_new_session=True,
            )
        self.starts += 1
        self.is_paused = False
        self._guard.started(self._process.pid)

    def wait_until_ready(self, timeout_ms: int = START_TIMEOUT_MS) -> None:
        """BrokerNotStarted when it ends before, or takes too long."""
        process = self._process
        assert process is not None and process.stdout is not None
        deadline = time.monotonic() + timeout_ms / 1000
        said = b""
        while not any(line.startswith(READY_PREFIX) for line in said.split(b"\n")[:-1]):
            data = read_some(process.stdout, deadline - time.monotonic())
            if data is None:
                self.kill()
                raise BrokerNotStarted(self._told(f"was not ready within {timeout_ms} ms", said))
            if not data:
                code = process.wait()
                self.kill()
                how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
                raise BrokerNotStarted(self._told(f"ended {how} before it was ready", said))
            said += data

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self.is_paused = False

    def stop(self) -> None:
        """In order, as SIGTERM does it; killed when that takes too long."""
        process = self._process
        if process is None:
            return
        self.resume()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_MS / 1000)
            except subprocess.TimeoutExpired:
                pass
        self.kill()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its workers too
        except (ProcessLookupError, PermissionError):
            pass
        process.wait()
        self.is_paused = False
        self._guard.ended(process.pid)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def _command(self) -> list[str]:
        # -P: what lies in the current directory is nothing that a broker should import.
        command = [sys.executable, "-P", "-m", "moldau", "server", "--cluster-id", self._cluster_id]
        for key, value in self._settings.items():
            command += ["--override", f"{key}={value}"]
        return command

    def _environment(self) -> dict[str, str]:
        """Ours, without the variables that would change the broker's settings: an application has such for itself."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
        path = os.pathsep.join(entry for entry in sys.path if entry)
        return {**kept, PARENT_VARIABLE: "1", "PYTHONPATH": path, "MOLDAU_LOG_LEVEL": self._log_level}

    def _told(self, what: str, said: bytes) -> str:
        lines = (said.decode(errors="replace") + self.log()).splitlines()
        shown = "\n".join(f"    {line}" for line in lines[-LOG_LINES_SHOWN:]) or "    (nothing)"
        return f"{self.name} {what}. Its last lines:\n{shown}"


def read_some(pipe: IO[bytes], timeout_s: float) -> bytes | None:
    """What the pipe has, empty at its end; None when nothing came in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        if not selector.select(max(0.0, timeout_s)):
            return None
    return os.read(pipe.fileno(), 65536)
