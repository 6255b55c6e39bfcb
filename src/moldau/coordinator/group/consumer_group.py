"""A consumer group (KIP-848): its members, epochs, target assignment, and who owns which partition.

    Empty ──a member joins──> Assigning ──target computed──> Reconciling ──every member has its target──> Stable
      ^                           ^                              │                                           │
      └──── nobody is left ───────┴────────── a member, a subscription or a topic changes ───────────────────┘

The group epoch counts what may change the assignment; the assignment epoch says which group epoch the target was
computed for; a member's epoch says which target it is on the way to. Everything here changes through replayed records,
except `metadata_expires_ms`, which only says when to look at the topics again.

Invariant: a partition has at most one owner. It stays owned while its member is asked to give it up, and only a
partition without an owner is given to the next member (`reconciliation`).

Kafka keeps the same in ConsumerGroup and ModernGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moldau.coordinator.group.consumer_member import (
    LEFT_EPOCH,
    ConsumerMember,
    OwnedPartitions,
    Partitions,
)
from moldau.coordinator.group.consumer_records import (
    assignment_epoch_tombstone,
    current_tombstone,
    group_epoch_tombstone,
    member_tombstone,
    partition_metadata_tombstone,
    regex_tombstone,
    target_tombstone,
)
from moldau.coordinator.group.group import CONSUMER, CONSUMER_PROTOCOL_TYPE, Group
from moldau.coordinator.outcome import StoredRecord
from moldau.coordinator.routing import java_hash
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"

INITIAL_EPOCH: Final = 1
"""Of the group and of its assignment; a member's epoch 0 means that it joins."""

NO_TARGET: Final[Partitions] = {}
FIRST_COMMIT_VERSION_WITH_EPOCHS: Final = 9


class ResolvedRegex(NamedTuple):
    """The topics a regular expression stood for, at which version of the metadata, and when that was found out."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup(Group):
    """See the module."""

    kind = CONSUMER

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Partitions] = {}
        # The member that has a partition as its target, and the one that owns it now.
        self.target_owners: dict[bytes, dict[int, str]] = {}
        self.owners: dict[bytes, dict[int, str]] = {}
        self.name_counts: dict[str, int] = {}
        self.regex_counts: dict[str, int] = {}
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.assignor_counts: dict[str, int] = {}
        self.classic_member_count = 0
        self.classic_protocol_counts: dict[str, int] = {}
        # Written by releases before 4.1; removed when the group is touched next.
        self.has_partition_metadata_record = False
        # Not replayed: when the topics are looked at again, and the epoch the group had got when this was set.
        self.metadata_expires_ms = 0
        self.metadata_looked_at_epoch = 0

    # What all groups have

    def state_name(self) -> str:
        if not self.members:
            return EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        version: int,
        now_ms: int,
    ) -> None:
        if generation_or_epoch < 0 and not self.members:
            return
        if is_transactional and generation_or_epoch == -1 and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        is_classic = member.uses_classic_protocol
        if not is_transactional and not is_classic and version < FIRST_COMMIT_VERSION_WITH_EPOCHS:
            raise KafkaError(
                errors.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if generation_or_epoch > member.member_epoch:
            raise _stale(
                is_classic,
                f"Received {_epoch_name(is_classic)} {generation_or_epoch} is newer than current member epoch "
                f"{member.member_epoch}.",
            )

    def check_partition_commit(
        self, member_id: str, generation_or_epoch: int, topic: str, topic_id: bytes, partition: int
    ) -> None:
        """A member that has not heard of its newest epoch yet may commit what it has had since the one it knows."""
        member = self.members.get(member_id)
        if member is None or generation_or_epoch == member.member_epoch:
            return
        is_classic = member.uses_classic_protocol
        since = member.assignment_epoch_of(topic_id, partition)
        if since is None:
            raise _stale(is_classic, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if generation_or_epoch < since:
            raise _stale(
                is_classic,
                f"Received {_epoch_name(is_classic)} {generation_or_epoch} is older than assignment epoch {since} "
                f"for partition {topic}-{partition}.",
            )

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise self._unknown_member(member_id or "")
        if member_epoch != member.member_epoch:
            is_classic = member.uses_classic_protocol
            raise _stale(
                is_classic,
                f"The received {_epoch_name(is_classic)} {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}.",
            )

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        if topic in self.name_counts:
            return True
        return any(topic in resolved.topics for resolved in self.resolved_regexes.values())

    def tombstones(self) -> list[StoredRecord]:
        return self.tombstones_of(list(self.members))

    def tombstones_of(self, member_ids: list[str]) -> list[StoredRecord]:
        """Of a group with these members: one of them may have come under another id a moment ago."""
        group_id = self.group_id
        records = [current_tombstone(group_id, member_id) for member_id in member_ids]
        records += [target_tombstone(group_id, member_id) for member_id in member_ids]
        records.append(assignment_epoch_tombstone(group_id))
        records += [member_tombstone(group_id, member_id) for member_id in member_ids]
        records += [regex_tombstone(group_id, regex) for regex in self.resolved_regexes]
        records.append(partition_metadata_tombstone(group_id))
        records.append(group_epoch_tombstone(group_id))
        return records

    def offsets_expire_from(self, topic: str, committed_ms: int) -> int:
        """From the commit on; whoever asks leaves out the topics that members are subscribed to."""
        return committed_ms

    # Members

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise self._unknown_member(member_id)
        return member

    def _unknown_member(self, member_id: str) -> KafkaError:
        return KafkaError(errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None = None) -> Partitions:
        """A static member that came back under another id has the target of the one it was."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id, NO_TARGET)

    def update_member(self, member: ConsumerMember) -> None:
        """Puts the member in place of what it was; called by `replay`."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count_subscription(old, -1)
        self._count_subscription(member, 1)
        if (
            old is None
            or old.assigned is not member.assigned
            or old.pending_revocation is not member.pending_revocation
        ):
            self._disown(old)
            self._own(member.member_id, member.assigned)
            self._own(member.member_id, member.pending_revocation)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._count_subscription(old, -1)
        self._disown(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def _count_subscription(self, member: ConsumerMember | None, change: int) -> None:
        if member is None:
            return
        for name in member.subscribed_topic_names:
            count_up(self.name_counts, name, change)
        if member.subscribed_topic_regex:
            count_up(self.regex_counts, member.subscribed_topic_regex, change)
        if member.server_assignor is not None:
            count_up(self.assignor_counts, member.server_assignor, change)
        if member.classic is not None:
            self.classic_member_count += change
            for protocol in member.classic.supported_protocols:
                count_up(self.classic_protocol_counts, protocol.name, change)

    def _own(self, member_id: str, partitions: OwnedPartitions) -> None:
        for topic_id, epochs in partitions.items():
            owners = self.owners.setdefault(topic_id, {})
            for index in epochs:
                owners[index] = member_id

    def _disown(self, member: ConsumerMember | None) -> None:
        if member is None:
            return
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                owners = self.owners.get(topic_id)
                if owners is None:
                    continue
                for index in epochs:
                    if owners.get(index) == member.member_id:
                        del owners[index]
                if not owners:
                    del self.owners[topic_id]

    def is_owned(self, topic_id: bytes, partition: int) -> bool:
        owners = self.owners.get(topic_id)
        return owners is not None and partition in owners

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Is there a partition of the member's target that somebody else still has?"""
        for topic_id, partitions in self.target_of(member.member_id).items():
            assigned = member.assigned.get(topic_id, {})
            for index in partitions:
                if index not in assigned and self.is_owned(topic_id, index):
                    return True
        return False

    # Targets

    def update_target(self, member_id: str, target: Partitions) -> None:
        self.remove_target(member_id)
        self.targets[member_id] = target
        for topic_id, partitions in target.items():
            owners = self.target_owners.setdefault(topic_id, {})
            for index in partitions:
                owners[index] = member_id

    def remove_target(self, member_id: str) -> None:
        for topic_id, partitions in self.targets.pop(member_id, NO_TARGET).items():
            owners = self.target_owners.get(topic_id)
            if owners is None:
                continue
            for index in partitions:
                # The next owner may have been replayed before.
                if owners.get(index) == member_id:
                    del owners[index]
            if not owners:
                del self.target_owners[topic_id]

    def remove_assignment_epoch(self) -> None:
        self.assignment_epoch = LEFT_EPOCH
        self.assignment_timestamp_ms = 0

    # Subscriptions, as they are or as they would be

    def names_with(self, old: ConsumerMember | None, new: ConsumerMember | None) -> dict[str, int]:
        counts = dict(self.name_counts)
        for name in () if old is None else old.subscribed_topic_names:
            count_up(counts, name, -1)
        for name in () if new is None else new.subscribed_topic_names:
            count_up(counts, name, 1)
        return counts

    def regexes_with(self, old: ConsumerMember | None, new: ConsumerMember | None) -> dict[str, int]:
        counts = dict(self.regex_counts)
        if old is not None and old.subscribed_topic_regex:
            count_up(counts, old.subscribed_topic_regex, -1)
        if new is not None and new.subscribed_topic_regex:
            count_up(counts, new.subscribed_topic_regex, 1)
        return counts

    def topics_of(self, names: Iterable[str], regexes: Iterable[str]) -> set[str]:
        """The topics that these names and these regular expressions stand for, as far as those are resolved."""
        topics = set(names)
        for regex in regexes:
            resolved = self.resolved_regexes.get(regex)
            if resolved is not None:
                topics |= resolved.topics
        return topics

    def topics_of_member(self, member: ConsumerMember) -> Iterable[str]:
        resolved = self.resolved_regexes.get(member.subscribed_topic_regex)
        if resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    def preferred_assignor(self, old: ConsumerMember | None = None, new: ConsumerMember | None = None) -> str | None:
        """The one that most members ask for; None if nobody does."""
        counts = dict(self.assignor_counts)
        if old is not None and old.server_assignor is not None:
            count_up(counts, old.server_assignor, -1)
        if new is not None and new.server_assignor is not None:
            count_up(counts, new.server_assignor, 1)
        if not counts:
            return None
        most = max(counts.values())
        return min((name for name, count in counts.items() if count == most), key=_java_order)

    @property
    def last_regex_refresh_ms(self) -> int:
        return max((resolved.timestamp_ms for resolved in self.resolved_regexes.values()), default=-(1 << 62))

    @property
    def oldest_regex_version(self) -> int:
        """All are resolved together; one that was left behind is found by its version."""
        return min((resolved.version for resolved in self.resolved_regexes.values()), default=0)

    # The topics may have changed

    def is_metadata_expired(self, now_ms: int) -> bool:
        return now_ms >= self.metadata_expires_ms or self.group_epoch < self.metadata_looked_at_epoch

    def expire_metadata(self) -> None:
        self.metadata_expires_ms = 0
        self.metadata_looked_at_epoch = 0

    # Members of the classic protocol

    def all_others_are_classic(self, leaving: Iterable[ConsumerMember]) -> bool:
        """Would only members of the classic protocol be left?"""
        modern = len(self.members) - self.classic_member_count
        modern -= sum(1 for member in leaving if not member.uses_classic_protocol)
        return modern == 0


def is_homogeneous(names: Mapping[str, int], regexes: Mapping[str, int], member_count: int) -> bool:
    """Are all members subscribed to the same topics? A mix of names and regular expressions counts as different."""
    if not regexes:
        return all(count == member_count for count in names.values())
    return not names and next(iter(regexes.values())) == member_count


def count_up(counts: dict[str, int], name: str, change: int) -> None:
    count = counts.get(name, 0) + change
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name, None)


def _epoch_name(is_classic: bool) -> str:
    return "generation id" if is_classic else "member epoch"


def _stale(is_classic: bool, message: str) -> KafkaError:
    return KafkaError(errors.ILLEGAL_GENERATION if is_classic else errors.STALE_MEMBER_EPOCH, message)


def _java_order(name: str) -> int:
    """Where Java's HashMap keeps a key while it is small: there Kafka decides a draw."""
    found = java_hash(name) & 0xFFFFFFFF
    return (found ^ (found >> 16)) & 15
