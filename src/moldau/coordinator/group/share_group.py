"""A share group (KIP-932): its members, epochs, target assignment, and the partitions whose state is initialised.

    Empty ──a member joins──> Stable ──the last one leaves──> Empty ──DeleteGroups──> (gone)

There is no handshake: a member jumps to its target, and two members may have the same partition. Only partitions whose
state the share coordinator keeps take part in the assignment: *initializing* while it is asked to, *initialized* then,
*deleting* while it is asked to forget them. Everything changes through replayed records, except what is marked.
Kafka: ShareGroup, ModernGroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.coordinator.group.assignors.spec import Target
from moldau.coordinator.group.group import SHARE, Group
from moldau.coordinator.group.share_member import PartitionStates, ShareMember
from moldau.coordinator.group.share_records import (
    assignment_epoch_tombstone,
    current_tombstone,
    group_epoch_tombstone,
    member_tombstone,
    partitions_tombstone,
    target_tombstone,
)
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_groups_response import DescribedGroup

EMPTY: Final = "Empty"
STABLE: Final = "Stable"
INITIAL_EPOCH: Final = 1
NO_TARGET: Final[Target] = {}


class ShareGroup(Group):
    """See the module."""

    kind = SHARE

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Target] = {}
        self.partitions = PartitionStates()
        # Not replayed: topics may have changed.
        self.looks_at_topics = True

    def state_name(self) -> str:
        return STABLE if self.members else EMPTY

    def protocol_type(self) -> str:
        return SHARE

    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ShareMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return found

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, NO_TARGET)

    def subscribed_topics(self, instead: Mapping[str, ShareMember] | None = None) -> set[str]:
        """Of all members; `instead` are members as they will be."""
        members = {**self.members, **(instead or {})}
        return {name for member in members.values() for name in member.subscribed_topic_names}

    # What offsets of consumers are, share groups do not have

    def _no_offsets(self) -> KafkaError:
        return KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        version: int,
        now_ms: int,
    ) -> None:
        raise self._no_offsets()

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._no_offsets()

    def check_offset_delete(self) -> None:
        raise self._no_offsets()

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics()

    def offsets_expire_from(self, topic: str, committed_ms: int) -> int:
        return -1

    def describe(self) -> DescribedGroup:
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")

    # The end

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def tombstones(self) -> list[StoredRecord]:
        group_id = self.group_id
        members = set(self.members) | set(self.targets)
        return [
            *(current_tombstone(group_id, member_id) for member_id in sorted(self.members)),
            *(target_tombstone(group_id, member_id) for member_id in sorted(members)),
            assignment_epoch_tombstone(group_id),
            *(member_tombstone(group_id, member_id) for member_id in sorted(self.members)),
            partitions_tombstone(group_id),
            group_epoch_tombstone(group_id),
        ]
