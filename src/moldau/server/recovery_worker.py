"""The process that recovers logs: tasks come in on stdin one by one, each result goes to stdout, until stdin ends.

It inherits the locks of the log directories: as long as it lives, no other node opens what it works on. On Linux it is
ended with the node that started it.
"""

from __future__ import annotations

import pickle
import sys

from moldau.server.log_lines import set_up_logging
from moldau.server.parent_watch import ParentWatch
from moldau.server.posix_disk import PosixDisk
from moldau.storage.recovery_task import recover


def main() -> None:
    watch = ParentWatch(int(sys.argv[1]))
    set_up_logging("WARNING")
    disk = PosixDisk()
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        watch.check()
        pickle.dump(recover(disk, task), sys.stdout.buffer)
        sys.stdout.buffer.flush()
    disk.close()


if __name__ == "__main__":
    main()
