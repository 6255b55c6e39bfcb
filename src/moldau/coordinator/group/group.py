"""What every kind of group has in common: an id, a state, and rules about who may commit offsets or delete it."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from moldau.coordinator.outcome import StoredRecord
from moldau.protocol.messages.describe_groups_response import DescribedGroup

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


@mypyc_attr(allow_interpreted_subclasses=True)
class Group:
    """One group. Checks raise KafkaError with the code the client gets and change nothing."""

    kind = ""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    def state_name(self) -> str:
        """As DescribeGroups, ListGroups and ConsumerGroupDescribe show it: Empty, Stable and so on."""
        raise NotImplementedError

    def protocol_type(self) -> str:
        """'consumer' for consumers of both protocols; classic groups have whatever their members said."""
        raise NotImplementedError

    def is_empty(self) -> bool:
        raise NotImplementedError

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        version: int,
        now_ms: int,
    ) -> None:
        """May this member commit? `version` is that of the request; a heartbeat of a classic member counts."""
        raise NotImplementedError

    def check_partition_commit(
        self, member_id: str, generation_or_epoch: int, topic: str, topic_id: bytes, partition: int
    ) -> None:
        """After `check_offset_commit`: may it commit this partition? Consumer and streams groups look at each."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """May this member read offsets? A member id of None, or an epoch below 0, is a client outside of the group."""
        raise NotImplementedError

    def check_offset_delete(self) -> None:
        """May offsets be deleted at all? Those of subscribed topics may not, see `is_subscribed_to`."""
        raise NotImplementedError

    def check_delete(self) -> None:
        """May the group be deleted? NON_EMPTY_GROUP if not."""
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        raise NotImplementedError

    def tombstones(self) -> list[StoredRecord]:
        """Records that remove the group itself; its offsets are removed by whoever calls this."""
        raise NotImplementedError

    def offsets_expire_from(self, topic: str, committed_ms: int) -> int:
        """When the retention of a committed offset begins to count; -1 while it does not, because the group lives."""
        raise NotImplementedError

    def describe(self) -> DescribedGroup:
        """As DescribeGroups shows it, which knows classic groups only."""
        raise NotImplementedError
