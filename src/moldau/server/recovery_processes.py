"""Recovers several logs at a time after an unclean stop, each worker in a process of its own.

Threads would not do: the walk over the batches holds the interpreter's lock for all but the reading and the checksums
of large batches.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from moldau.server.posix_disk import PosixDisk
from moldau.storage.recovery_task import RecoveryResult, RecoveryTask, RecoveryWorkers

log = logging.getLogger("moldau.server")


class RecoveryProcesses(RecoveryWorkers):
    """The largest logs first; whoever is done takes the next one. With `post`, which runs a function in a turn of the
    node, they work in the background."""

    def __init__(self, disk: PosixDisk, post: Callable[[Callable[[], None]], None] | None = None) -> None:
        self._disk = disk
        self._post = post
        self.in_background = post is not None
        self._closed = False
        self._processes: set[subprocess.Popen[bytes]] = set()

    def run_later(
        self, tasks: list[RecoveryTask], workers_max: int, done: Callable[[list[RecoveryResult | None]], None]
    ) -> None:
        post = self._post
        if post is None:
            done(self.run(tasks, workers_max))
            return

        def work() -> None:
            results = self.run(tasks, workers_max)
            with contextlib.suppress(RuntimeError):  # the loop is closed: the node has ended
                post(lambda: done(results))

        threading.Thread(target=work, name="recovery", daemon=True).start()

    def close(self) -> None:
        """Ends what still runs: to a log that a process was working on this is a crash, as the one before was."""
        self._closed = True
        for process in list(self._processes):
            process.kill()

    def run(self, tasks: list[RecoveryTask], workers_max: int) -> list[RecoveryResult | None]:
        count = max(1, min(workers_max, len(tasks), os.cpu_count() or 1))
        results: list[RecoveryResult | None] = [None] * len(tasks)
        waiting = sorted(range(len(tasks)), key=lambda number: tasks[number].size_bytes)
        log.info("recovering %d logs in %d processes", len(tasks), count)
        with ThreadPoolExecutor(count) as pool:
            for running in [pool.submit(self._work, tasks, waiting, results) for _ in range(count)]:
                running.result()
        return results

    def _work(self, tasks: list[RecoveryTask], waiting: list[int], results: list[RecoveryResult | None]) -> None:
        """One worker process, from its start to its end. What it does not return is left to the node."""
        try:
            with self._start() as process:
                assert process.stdin is not None and process.stdout is not None
                self._processes.add(process)
                if self._closed:
                    process.kill()
                while not self._closed:
                    try:
                        number = waiting.pop()
                    except IndexError:
                        return
                    pickle.dump(tasks[number], process.stdin)
                    process.stdin.flush()
                    results[number] = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            if self._closed:
                return
            log.error("a recovery process failed, recovering the remaining logs without it: %r", error)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "moldau.server.recovery_worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            pass_fds=self._disk.lock_descriptors(),
        )
