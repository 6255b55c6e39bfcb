"""Fits this process for many short tasks, where it is one of Spark's workers."""

from __future__ import annotations

import contextlib
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


class AcknowledgesAtOnce:
    """What travels to a worker process with its task, and is unpacked there before the rows are asked for.

    The JVM sends a task in small pieces, the next one when the one before is acknowledged, and the system holds
    acknowledgements back for 40 ms in the hope of something to send along. From here on they leave at once.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if is_worker():
            _acknowledge_at_once()


def _acknowledge_at_once() -> None:
    """On all connections of this process: that to the JVM is one of them. Only Linux holds back what can be let go."""
    if not hasattr(socket, "TCP_QUICKACK") or not os.path.isdir("/proc/self/fd"):
        return
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile, or not TCP
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                connection = socket.socket(fileno=int(name))
                try:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                finally:
                    connection.detach()  # it belongs to somebody else, who closes it
