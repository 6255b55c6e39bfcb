"""Someone who waits until a partition moves: a parked produce, fetch or delete."""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class PartitionWaiter:
    """Called back by the partitions it watches. `finished` ones are dropped from the lists without being called."""

    def __init__(self) -> None:
        self.finished = False

    def on_partition_moved(self, now_ms: int) -> None:
        """The high watermark, log end, log start or leader of a watched partition changed."""
        raise NotImplementedError
