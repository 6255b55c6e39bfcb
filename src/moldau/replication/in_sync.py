"""The in-sync replicas as a leader sees them: what the controller has confirmed, and what it was asked to change.

One proposal at a time. Until it is decided a replica that is being added counts as in sync for the high watermark, and
so does one that is being removed: whatever the controller decides, what is committed is on all it may elect. The
metadata and the response may come in either order; the higher partition epoch counts. Kafka: PartitionState in
Partition.scala.
"""

from __future__ import annotations

from typing import Final

NOT_CHANGING: Final = 0
EXPANDING: Final = 1
SHRINKING: Final = 2

STATES: Final = {NOT_CHANGING: "not changing", EXPANDING: "expanding", SHRINKING: "shrinking"}


class InSyncReplicas:
    """`committed` is what the controller said last, as of `partition_epoch`; `maximal` is whom the high watermark waits
    for; `proposed` is what it was asked for, with the partition epoch that was in force then."""

    def __init__(self, committed: list[int], partition_epoch: int) -> None:
        self.committed = committed
        self.partition_epoch = partition_epoch
        self.maximal = committed
        self.state = NOT_CHANGING
        self.proposed: list[int] = []
        self.shrinks_total = 0
        self.expands_total = 0

    @property
    def is_changing(self) -> bool:
        return self.state != NOT_CHANGING

    def propose_adding(self, replica: int) -> None:
        assert self.state == NOT_CHANGING and replica not in self.committed
        self.state = EXPANDING
        self.proposed = [*self.committed, replica]
        self.maximal = self.proposed

    def propose_removing(self, replicas: list[int]) -> None:
        assert self.state == NOT_CHANGING
        self.state = SHRINKING
        self.proposed = [replica for replica in self.committed if replica not in replicas]

    def commit(self, committed: list[int], partition_epoch: int) -> bool:
        """What the controller decided, from its response or from the metadata; older news change nothing."""
        if partition_epoch <= self.partition_epoch:
            # The same epoch means the same news, by the other way: a proposal made since then is still under way.
            return False
        if len(committed) < len(self.committed):
            self.shrinks_total += 1
        elif len(committed) > len(self.committed):
            self.expands_total += 1
        self.partition_epoch = partition_epoch
        self._settle(committed)
        return True

    def withdraw(self) -> None:
        """The controller did not do, and will not do, what was asked."""
        self._settle(self.committed)

    def _settle(self, committed: list[int]) -> None:
        self.committed = committed
        self.maximal = committed
        self.state = NOT_CHANGING
        self.proposed = []

    def __repr__(self) -> str:
        change = f", {STATES[self.state]} to {self.proposed}" if self.is_changing else ""
        return f"ISR {self.committed} at partition epoch {self.partition_epoch}{change}"
