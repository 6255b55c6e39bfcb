"""A simple group: offsets committed under a group id by somebody who never joined. Kafka calls it classic and Empty."""

from __future__ import annotations

from moldau.coordinator.group.group import CLASSIC, Group
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_groups_response import DescribedGroup
from moldau.protocol.stored.framing import encode_key
from moldau.protocol.stored.group_records import GroupMetadataKey


class SimpleGroup(Group):
    """Made when it is looked at: it has no state but its offsets, and those are in the table."""

    kind = CLASSIC

    def state_name(self) -> str:
        return "Empty"

    def protocol_type(self) -> str:
        return ""

    def is_empty(self) -> bool:
        return True

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        version: int,
        now_ms: int,
    ) -> None:
        if generation_or_epoch >= 0:
            # It has no members, so this one is not among them.
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        pass

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        pass

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def tombstones(self) -> list[StoredRecord]:
        return [(encode_key(GroupMetadataKey(group=self.group_id)), None)]

    def offsets_expire_from(self, topic: str, committed_ms: int) -> int:
        return committed_ms

    def describe(self) -> DescribedGroup:
        return DescribedGroup(group_id=self.group_id, group_state="Empty", error_message=None)
