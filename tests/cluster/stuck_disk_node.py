"""Starts a node whose disk gets stuck: syncs of segments wait for as long as a file is there, those of others do not.

`python stuck_disk_node.py FILE server server.properties`: instead of `moldau server`, for tests alone. Only threads
wait; what the loop itself syncs goes on, so that a test can tell one from the other. What got stuck is written to FILE.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from moldau.server import posix_disk
from moldau.server.main import run

POLL_S = 0.05

sync_descriptor = posix_disk.sync_descriptor


def sync_when_let(descriptor: int) -> None:
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if is_held_up(path):
        with open(STUCK, "a", encoding="utf-8") as file:
            file.write(f"{path}\n")
        while os.path.exists(STUCK):
            time.sleep(POLL_S)
    sync_descriptor(descriptor)


def is_held_up(path: str) -> bool:
    on_the_loop = threading.current_thread() is threading.main_thread()
    return path.endswith(".log") and "__cluster_metadata" not in path and not on_the_loop and os.path.exists(STUCK)


if __name__ == "__main__":
    STUCK = sys.argv[1]
    posix_disk.sync_descriptor = sync_when_let
    sys.exit(run(sys.argv[3], []))
