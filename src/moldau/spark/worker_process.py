"""Fits this process for many short tasks, where it is one of Spark's workers.

Spark collects garbage after each task, which walks through everything that was ever imported: some 50 ms, more than a
micro-batch of a thousand records takes. What the first task has loaded is taken out of those walks.
"""

from __future__ import annotations

import functools
import gc
import sys


@functools.cache
def settle(part: str) -> None:
    """To be called at the end of a task. part: what it did; after the first task of each, all that is there stays."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == "pyspark.daemon":
        gc.collect()
        gc.freeze()
