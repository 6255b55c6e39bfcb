"""Fits this process for many short tasks, where it is one of Spark's workers."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import socket
import stat
import sys
from typing import Any

_modules_settled = 0


def is_worker() -> bool:
    """True in the processes that Spark keeps for one task after another."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name == "pyspark.daemon"


def settle() -> None:
    """To be called at the end of a task, of each part of one that loads modules of its own.

    Spark collects garbage after each task, which walks through everything that was ever imported: some 50 ms, more than
    a micro-batch of a thousand records takes. What tasks have loaded so far is taken out of those walks.
    """
    global _modules_settled
    if len(sys.modules) != _modules_settled and is_worker():
        _modules_settled = len(sys.modules)
        gc.collect()
        gc.freeze()


class AnswersAtOnce:
    """What travels to a worker process with its task, and is unpacked there before the rows are asked for.

    The JVM sends a task in small pieces, the next one when the one before is acknowledged, and the system holds
    acknowledgements back for 40 ms in the hope of something to send along. From here on they leave at once.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if is_worker():
            for connection in _connections_to_jvm():
                with contextlib.suppress(OSError):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@functools.cache
def _connections_to_jvm() -> list[socket.socket]:
    """The process has no others when its first task arrives; none where they are not TCP, or this is not Linux."""
    found: list[socket.socket] = []
    if not hasattr(socket, "TCP_QUICKACK") or not os.path.isdir("/proc/self/fd"):
        return found
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # it was that of the listing itself
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found.append(socket.socket(fileno=os.dup(int(name))))
    return [item for item in found if item.family in (socket.AF_INET, socket.AF_INET6)]
