"""Who is told that a partition moved: parked requests, once; the fetch sessions of followers, each time."""

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


@mypyc_attr(allow_interpreted_subclasses=True)
class LogListener:
    """A follower's place at a partition. It stays until something else than the log or the high watermark changes."""

    def on_appended(self, now_ms: int) -> None:
        """The log has more records than before."""
        raise NotImplementedError

    def on_high_watermark(self, now_ms: int) -> None:
        raise NotImplementedError

    def on_log_start(self, now_ms: int) -> None:
        raise NotImplementedError

    def on_detached(self, now_ms: int) -> None:
        """The leader, its epoch or the log itself is another one: it is no longer listed here."""
        raise NotImplementedError
