"""Runs the commands of the demo: with a line of progress every few seconds, and none of them left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SECONDS_BETWEEN_LINES = 3.0
POLL_SECONDS = 0.1
SECONDS_TO_END = 5.0
OUTPUT_SHOWN = 1500


class SetupFailed(Exception):
    """A command of the demo failed, and why."""


class Steps:
    """The commands that run, each in a session of its own, so that what they started can be ended with them."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._started: list[subprocess.Popen[bytes]] = []

    def say(self, text: str) -> None:
        print(text, flush=True)

    def tell(self, text: str) -> None:
        """A line of progress, with the seconds since the demo began."""
        self.say(f"  {time.monotonic() - self._began:5.0f} s  {text}")

    def start(
        self,
        command: Sequence[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        output: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Starts a command; what it prints goes to the screen, or to the end of a file."""
        file = output.open("ab") if output else None
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT if file else None,
                start_new_session=True,
            )
        finally:
            if file:
                file.close()
        self._started.append(process)
        return process

    def run(self, *jobs: Job) -> None:
        """Runs jobs side by side and says every few seconds how far each is."""
        running = list(jobs)
        last_line = time.monotonic()
        for job in running:
            job.begin(self)
        while running:
            time.sleep(POLL_SECONDS)
            for job in list(running):
                if job.is_done(self):
                    running.remove(job)
                    self.tell(f"{job.name}: done in {job.seconds():.1f} s, {job.cpu_seconds:.1f} s of CPU")
                    last_line = time.monotonic()
            if running and time.monotonic() - last_line >= SECONDS_BETWEEN_LINES:
                self.tell("; ".join(f"{job.name}: {job.progress()}" for job in running))
                last_line = time.monotonic()

    def end_all(self) -> None:
        """Ends every process of every session that was started, and waits until they are gone."""
        sessions = {process.pid for process in self._started}
        deadline = time.monotonic() + SECONDS_TO_END
        while True:
            alive = {process.pid for process in self._started if process.poll() is None} | members_of(sessions)
            if not alive:
                return
            number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
            for pid in alive:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            time.sleep(POLL_SECONDS)


def members_of(sessions: set[int]) -> set[int]:
    """The processes of these sessions; all of them, also those that left the process group they were started in."""
    listed = subprocess.run(["ps", "-eo", "pid=,sess=,stat="], capture_output=True, text=True)
    rows = (line.split() for line in listed.stdout.splitlines())
    return {int(row[0]) for row in rows if len(row) == 3 and int(row[1]) in sessions and not row[2].startswith("Z")}


class Job:
    """Commands that run one after the other, with their output in a file that is shown when one fails."""

    def __init__(
        self,
        name: str,
        commands: Sequence[Sequence[str]],
        output: Path,
        progress: Callable[[], str],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.progress = progress
        self._commands = list(commands)
        self._output = output
        self._env = env
        self._cwd = cwd
        self._began = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        # Of the commands that ended and of all that they waited for: what a busy machine does not change much.
        self.cpu_seconds = 0.0

    def begin(self, steps: Steps) -> None:
        self._began = time.monotonic()
        self._output.parent.mkdir(parents=True, exist_ok=True)
        self._output.write_bytes(b"")
        self._process = steps.start(self._commands.pop(0), self._cwd, self._env, self._output)

    def is_done(self, steps: Steps) -> bool:
        """Begins the next command when one has ended; SetupFailed tells the end of what a failing one printed."""
        assert self._process is not None
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if not pid:
            return False
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        if code:
            raise SetupFailed(f"{self.name} ended with code {code}\n{self.printed().strip()[-OUTPUT_SHOWN:]}")
        if not self._commands:
            return True
        self._process = steps.start(self._commands.pop(0), self._cwd, self._env, self._output)
        return False

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def printed(self) -> str:
        """What its commands printed so far."""
        return self._output.read_text(errors="replace")
