"""Starts a node whose disk gets stuck: syncs of segments wait for as long as a file is there, those of others do not.

`python stuck_disk_node.py FILE server server.properties`: instead of `moldau server`, for tests alone. Only threads
wait, and what got stuck is written to FILE. A sync by the loop itself goes on, so that the node can still be asked, and
is written to FILE.loop: it would have held up everything.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from moldau.server.main import run

POLL_S = 0.05
SYNCS = ("fsync", "fdatasync")


def sync_when_let(name: str, sync: Callable[[int], None], descriptor: int) -> None:
    if os.path.exists(STUCK):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if threading.current_thread() is threading.main_thread():
            write_down(f"{STUCK}.loop", f"{name} {path}")
        elif path.endswith(".log") and "__cluster_metadata" not in path:
            write_down(STUCK, path)
            while os.path.exists(STUCK):
                time.sleep(POLL_S)
    sync(descriptor)


def write_down(file_name: str, line: str) -> None:
    with open(file_name, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def replace_sync(name: str) -> None:
    sync: Callable[[int], None] = getattr(os, name)
    setattr(os, name, lambda descriptor: sync_when_let(name, sync, descriptor))


if __name__ == "__main__":
    STUCK = sys.argv[1]
    for each in SYNCS:
        replace_sync(each)
    sys.exit(run(sys.argv[3], []))
