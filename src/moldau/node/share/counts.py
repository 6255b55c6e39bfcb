"""What a broker counts about share groups since it started, for metrics."""

from __future__ import annotations

from typing import Final

ACKNOWLEDGE_TYPES: Final = ("Gap", "Accept", "Release", "Reject", "Renew")


GROUPS_MAX: Final = 1_000
"""Groups are named by users: so many are counted one by one, and no more."""


class Times:
    """How often something was measured, and what came of it."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.max = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.max = max(self.max, value)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class GroupTimes:
    """Of the fetches of one group."""

    def __init__(self) -> None:
        self.acquire_ms = Times()
        self.fetch_percent = Times()


class ShareCounts:
    def __init__(self) -> None:
        self.load_ms = Times()
        self.groups: dict[str, GroupTimes] = {}
        self.lost_sessions_total = 0
        self.fetches_total = 0
        self.failed_fetches_total = 0
        self.acknowledges_total = 0
        self.failed_acknowledges_total = 0
        self.expired_fetches_total = 0
        self.lock_timeouts_total = 0
        self.dead_letters_total = 0
        self.dead_letters_dropped_total = 0
        self.dead_letter_retries_total = 0
        # Records, by the type that members named.
        self.acknowledged_total = [0] * len(ACKNOWLEDGE_TYPES)

    def on_fetched(self, group_id: str, waited_ms: int, partitions: int, fetched: int) -> None:
        """A fetch of so many partitions got records of some of them."""
        times = self.groups.get(group_id)
        if times is None:
            if len(self.groups) >= GROUPS_MAX:
                return
            times = self.groups[group_id] = GroupTimes()
        times.acquire_ms.add(waited_ms)
        times.fetch_percent.add(100 * fetched / partitions)

    def on_acknowledged(self, first: int, last: int, types: list[int]) -> None:
        if len(types) == 1:
            self.acknowledged_total[types[0]] += last - first + 1
        else:
            for kind in types:
                self.acknowledged_total[kind] += 1
