"""The process that compacts one log: a task comes in on stdin, the result goes out on stdout, then it ends.

A process of its own costs a tenth of a second to start and gives everything back when it ends: the offset map, the
memory, the processor it kept from nobody. It runs at low priority, as `python -m moldau.server.compaction_worker PID`,
and ends with the node that has this pid.
"""

from __future__ import annotations

import os
import pickle
import sys
import time

from moldau.server.parent_watch import ParentWatch
from moldau.server.posix_disk import PosixDisk
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionResult, CompactionTask

LOW_PRIORITY = 10
SHORTEST_SLEEP_S = 0.01
LONGEST_SLEEP_S = 1.0
UNLIMITED = 1e300
LOOK_EVERY_BYTES = 4 << 20


class Throttle:
    """Sleeps as long as it takes to keep below so many bytes a second, read and written together."""

    def __init__(self, bytes_per_second: float, watch: ParentWatch | None = None) -> None:
        self.bytes_per_second = bytes_per_second
        self.started = time.monotonic()
        self.count = 0
        self._watch = watch
        self._next_look = 0

    def __call__(self, count: int) -> None:
        self.count += count
        if self.count >= self._next_look:
            self._next_look = self.count + LOOK_EVERY_BYTES
            self._look()
        if self.bytes_per_second >= UNLIMITED:
            return
        ahead_s = self._ahead_s()
        while ahead_s > SHORTEST_SLEEP_S:
            time.sleep(min(ahead_s, LONGEST_SLEEP_S))
            self._look()
            ahead_s = self._ahead_s()

    def _ahead_s(self) -> float:
        return self.count / self.bytes_per_second - (time.monotonic() - self.started)

    def _look(self) -> None:
        if self._watch is not None:
            self._watch.check()


def run(task: CompactionTask, bytes_per_second: float, watch: ParentWatch | None = None) -> CompactionResult | OSError:
    disk = PosixDisk()
    started = time.monotonic()
    try:
        result = compact(disk, task, Throttle(bytes_per_second, watch))
    except OSError as error:
        return error
    finally:
        disk.close()
    result.stats.seconds = time.monotonic() - started
    return result


def main() -> None:
    watch = ParentWatch(int(sys.argv[1]))
    os.nice(LOW_PRIORITY)
    task, bytes_per_second = pickle.load(sys.stdin.buffer)
    result = run(task, bytes_per_second, watch)
    watch.check()
    pickle.dump(result, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
