"""The process that compacts one log: a task comes in on stdin, the result goes out on stdout, then it ends.

A process of its own costs a tenth of a second to start and gives everything back when it ends: the offset map, the
memory, the processor it kept from nobody. It runs at low priority, as `python -m moldau.server.compaction_worker`.
"""

from __future__ import annotations

import os
import pickle
import sys
import time

from moldau.server.posix_disk import PosixDisk
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionResult, CompactionTask

LOW_PRIORITY = 10
SHORTEST_SLEEP_S = 0.01
UNLIMITED = 1e300


class Throttle:
    """Sleeps as long as it takes to keep below so many bytes a second, read and written together."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self.started = time.monotonic()
        self.count = 0

    def __call__(self, count: int) -> None:
        if self.bytes_per_second >= UNLIMITED:
            return
        self.count += count
        ahead_s = self.count / self.bytes_per_second - (time.monotonic() - self.started)
        if ahead_s > SHORTEST_SLEEP_S:
            time.sleep(ahead_s)


def run(task: CompactionTask, bytes_per_second: float) -> CompactionResult | OSError:
    disk = PosixDisk()
    started = time.monotonic()
    try:
        result = compact(disk, task, Throttle(bytes_per_second))
    except OSError as error:
        return error
    finally:
        disk.close()
    result.stats.seconds = time.monotonic() - started
    return result


def main() -> None:
    os.nice(LOW_PRIORITY)
    task, bytes_per_second = pickle.load(sys.stdin.buffer)
    result = run(task, bytes_per_second)
    pickle.dump(result, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
