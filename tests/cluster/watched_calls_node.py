"""Starts a node and writes down which calls of the system that may wait it makes, and on which thread.

`python watched_calls_node.py FILE server server.properties`: instead of `moldau server`, for tests alone. While FILE is
there, a line for each call goes to FILE.loop or FILE.threads. Syncs, removals and write-back may always wait; reads and
`sendfile` only where the data is not in the system's memory, so on the loop no others of them are written down.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from moldau.server import posix_calls
from moldau.server.main import run

ALWAYS = (
    (os, "fsync"),
    (os, "fdatasync"),
    (os, "sync"),
    (os, "remove"),
    (os, "unlink"),
    (os, "rmdir"),
    (os, "truncate"),
    (os, "posix_fadvise"),
    (time, "sleep"),
    (posix_calls, "begin_write_back"),
    (posix_calls, "reserve_space"),
)
FRAMES = 6

preadv = os.preadv


def write_down(name: str, what: object) -> None:
    on_the_loop = threading.current_thread() is threading.main_thread()
    place = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else what
    callers = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in traceback.extract_stack()[-FRAMES:-2]]
    with open(f"{WATCH}.{'loop' if on_the_loop else 'threads'}", "a", encoding="utf-8") as file:
        file.write(f"{name} {place} by {' > '.join(callers)}\n")


def watch_always(module: Any, name: str) -> None:
    call: Callable[..., object] = getattr(module, name)

    def watched(what: object, *more: object, **options: object) -> object:
        if os.path.exists(WATCH):
            write_down(name, what)
        return call(what, *more, **options)

    setattr(module, name, watched)


def is_cold(descriptor: int, position: int, size: int) -> bool:
    """Whether the first or the last of these bytes is not in memory; not where the file system cannot tell."""
    for place in (position, position + max(size, 1) - 1):
        try:
            preadv(descriptor, [bytearray(1)], place, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def may_wait(descriptor: int, position: int, size: int) -> bool:
    on_the_loop = threading.current_thread() is threading.main_thread()
    return os.path.exists(WATCH) and (not on_the_loop or is_cold(descriptor, position, size))


def watch_reads() -> None:
    pread, sendfile = os.pread, os.sendfile

    def watched_pread(descriptor: int, size: int, position: int) -> bytes:
        if may_wait(descriptor, position, size):
            write_down("pread", descriptor)
        return pread(descriptor, size, position)

    def watched_preadv(descriptor: int, buffers: Any, position: int, flags: int = 0) -> int:
        if not flags and may_wait(descriptor, position, sum(len(buffer) for buffer in buffers)):
            write_down("preadv", descriptor)
        return preadv(descriptor, buffers, position, flags)

    def watched_sendfile(out: int, descriptor: int, position: int, count: int) -> int:
        if may_wait(descriptor, position, count):
            write_down("sendfile", descriptor)
        return sendfile(out, descriptor, position, count)

    os.pread = watched_pread
    os.preadv = watched_preadv
    os.sendfile = watched_sendfile  # type: ignore[assignment]


if __name__ == "__main__":
    WATCH = sys.argv[1]
    for each in ALWAYS:
        watch_always(*each)
    watch_reads()
    sys.exit(run(sys.argv[3], []))
