"""Starts a process for each compaction and hands its result back to the node."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import pickle
import sys

from moldau.net.turns import COMPACTION, Turns
from moldau.server.posix_disk import PosixDisk
from moldau.storage.compaction.cleaner import CompactionWorkers, Done
from moldau.storage.compaction.task import CompactionResult, CompactionTask

log = logging.getLogger("moldau.server")


class CompactionProcesses(CompactionWorkers):
    """One process per task. What a worker says on stderr goes to the broker's own. It inherits the locks of the log
    directories: as long as it lives, no other node opens what it works on."""

    def __init__(self, disk: PosixDisk, turns: Turns | None = None) -> None:
        self._disk = disk
        self._turns = turns if turns is not None else Turns()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        running = asyncio.get_running_loop().create_task(self._run(task, bytes_per_second, done))
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)

    async def _run(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        try:
            outcome = await self._work(task, bytes_per_second)
        except OSError as error:
            outcome = ChildProcessError(errno.ECHILD, f"no process for compaction: {error}")
        if not self.closed:
            self._turns.run(COMPACTION, lambda: done(outcome))

    async def _work(self, task: CompactionTask, bytes_per_second: float) -> CompactionResult | OSError:
        loop = asyncio.get_running_loop()
        started = loop.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "moldau.server.compaction_worker",
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            pass_fds=self._disk.lock_descriptors(),
        )
        self._processes[id(task)] = process
        try:
            data, _ = await process.communicate(pickle.dumps((task, bytes_per_second)))
        finally:
            del self._processes[id(task)]
        if process.returncode != 0:
            return ChildProcessError(errno.ECHILD, f"the process that compacts {task.name} ended: {process.returncode}")
        outcome: CompactionResult | OSError = pickle.loads(data)
        if isinstance(outcome, CompactionResult):
            outcome.stats.seconds = loop.time() - started
        return outcome

    def cancel(self, task: CompactionTask) -> None:
        process = self._processes.get(id(task))
        if process is not None and process.returncode is None:
            process.terminate()

    async def close(self) -> None:
        """Ends all of them and waits until they are gone."""
        self.closed = True
        for process in list(self._processes.values()):
            if process.returncode is None:
                process.kill()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
