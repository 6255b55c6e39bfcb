"""Ends a worker process with the node that started it, however that one ended.

A worker that goes on alone would write into files that the next node takes for its own.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


class ParentWatch:
    """Asks the system to end this process with its parent, and looks itself where the system cannot."""

    def __init__(self, parent: int) -> None:
        """`parent` is who must be there."""
        self._parent = parent
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        self.check()

    def check(self) -> None:
        """Ends this process at once, without a word, if its parent is gone: it may have gone before we could ask."""
        if os.getppid() != self._parent:
            os._exit(1)
