"""What the group coordinator of a broker counts, over all its shards and whatever becomes of them."""

from __future__ import annotations


class GroupCounts:
    """Since the broker started."""

    def __init__(self) -> None:
        self.offset_commits = 0
        self.offset_expirations = 0
        self.offset_deletions = 0
        self.classic_rebalances = 0
        self.consumer_rebalances = 0
        self.streams_rebalances = 0
