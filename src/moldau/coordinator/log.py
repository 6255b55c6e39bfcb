"""The log of one coordinator shard, as the runtime sees it: a partition of an internal topic that this broker leads."""

from __future__ import annotations

from collections.abc import Callable

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class CoordinatorLog:
    """Implemented by the node on a partition. Offsets given as ends are exclusive."""

    def append(self, batch: bytes, now_ms: int) -> int:
        """Writes one batch and returns the log end after it; raises KafkaError and has written nothing otherwise."""
        raise NotImplementedError

    def start_offset(self) -> int:
        raise NotImplementedError

    def end_offset(self) -> int:
        raise NotImplementedError

    def high_watermark(self) -> int:
        """What lies below is committed: no failover takes it back."""
        raise NotImplementedError

    def read(self, offset: int, max_bytes: int, on_ready: Callable[[], None]) -> bytes | None:
        """Whole batches from the one that holds `offset`, at least one, below the log end; empty if there are none.
        None if they have to be fetched from the medium first: `on_ready` is called then, and the same read has them."""
        raise NotImplementedError

    def batch_bytes_max(self) -> int:
        """The largest batch the log takes."""
        raise NotImplementedError

    def watch(self, on_moved: Callable[[int], None]) -> None:
        """Calls `on_moved(now_ms)` once, when the high watermark or the leader has changed next."""
        raise NotImplementedError
