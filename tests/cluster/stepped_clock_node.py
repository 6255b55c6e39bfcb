"""Starts a node whose wall clock can be set: the seconds in a file are added to it.

`python stepped_clock_node.py FILE server server.properties`: instead of `moldau server`, for tests alone. Without FILE
it is the machine's clock. The monotonic clock is left alone, as it is where somebody sets a machine's clock.
"""

from __future__ import annotations

import os
import sys
import time

from moldau.server.main import run

time_ns = time.time_ns


def stepped_time_ns() -> int:
    try:
        descriptor = os.open(CONTROL, os.O_RDONLY)
    except FileNotFoundError:
        return time_ns()
    try:
        return time_ns() + int(os.read(descriptor, 20)) * 1_000_000_000
    finally:
        os.close(descriptor)


def stepped_time() -> float:
    return stepped_time_ns() / 1e9


if __name__ == "__main__":
    CONTROL = sys.argv[1]
    time.time_ns = stepped_time_ns
    time.time = stepped_time
    sys.exit(run(sys.argv[3], []))
