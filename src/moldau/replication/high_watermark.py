"""Holds the high watermark of one partition; `Partition.advance_high_watermark` decides when a leader's moves.

The high watermark is exclusive: every offset below it is on all in-sync replicas. Within a leader epoch it never goes
back. A follower takes over its leader's (`follower.py`). Kafka keeps the rule for leaders in
Partition.maybeIncrementLeaderHW.
"""

from __future__ import annotations


class HighWatermark:
    """The high watermark of one partition on this broker."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def advance_to(self, offset: int) -> bool:
        """Moves forward, never back; True when it moved."""
        if offset > self.offset:
            self.offset = offset
            return True
        return False

    def restart_at(self, offset: int) -> None:
        """A new term of this replica begins: from the checkpoint at start, or after its log was truncated."""
        self.offset = offset
