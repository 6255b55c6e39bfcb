"""A classic group: its members, generation, leader and protocol; how it moves between its states.

    Empty ──a member joins──> PreparingRebalance ──all joined, or time is up──> CompletingRebalance ──assigned──> Stable
      ^                          │        ^                                            │                            │
      └──── nobody is left ──────┘        └───────── someone joins, changes, leaves or is lost ─────────────────────┘

Dead is what becomes of a group whose coordinator is elsewhere now. Nothing here knows timers or the log: the modules
around `classic` drive it. Kafka keeps the same in ClassicGroup and ClassicGroupMember.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.classic_member import ClassicMember, JoinCallback, Protocols
from moldau.coordinator.group.classic_subscription import subscribed_topics
from moldau.coordinator.group.group import CLASSIC, CONSUMER_PROTOCOL_TYPE, Group
from moldau.coordinator.outcome import StoredRecord
from moldau.coordinator.routing import java_hash
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_groups_response import DescribedGroup, DescribedGroupMember
from moldau.protocol.messages.join_group_response import JoinGroupResponseMember
from moldau.protocol.primitives import DecodeError
from moldau.protocol.stored.framing import encode_key
from moldau.protocol.stored.group_records import GroupMetadataKey

EMPTY: Final = "Empty"
PREPARING_REBALANCE: Final = "PreparingRebalance"
COMPLETING_REBALANCE: Final = "CompletingRebalance"
STABLE: Final = "Stable"
DEAD: Final = "Dead"

# State to the states it may follow.
PREDECESSORS: Final = {
    EMPTY: (PREPARING_REBALANCE,),
    PREPARING_REBALANCE: (STABLE, COMPLETING_REBALANCE, EMPTY),
    COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
    STABLE: (COMPLETING_REBALANCE,),
    DEAD: (EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD),
}

NO_TIMESTAMP: Final = -1
JAVA_BUCKETS: Final = 16


class ClassicGroup(Group):
    """See the module. A group that only has offsets (its consumers assign partitions themselves) is an empty one."""

    kind = CLASSIC

    def __init__(self, group_id: str, state_timestamp_ms: int = NO_TIMESTAMP) -> None:
        super().__init__(group_id)
        self.state = EMPTY
        self.previous_state = EMPTY
        self.state_timestamp_ms = state_timestamp_ms
        self.generation = 0
        self.member_protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # Ids that were given out and have not joined yet (KIP-394).
        self.pending_members: dict[str, None] = {}
        # Members of this generation that have not asked for their assignment yet.
        self.pending_sync_members: dict[str, None] = {}
        self.awaiting_join_count = 0
        # Whether someone joined since the initial delay was set or extended last.
        self.new_member_added = False
        # None where the members' metadata cannot be read: then every topic counts as subscribed.
        self.subscribed_topics: frozenset[str] | None = None
        self._supported: dict[str, int] = {}

    # States

    def transition_to(self, state: str, wall_ms: int) -> None:
        """The only place that changes the state."""
        assert self.state in PREDECESSORS[state], f"{self.group_id} cannot go from {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = wall_ms

    def load(self, generation: int, protocol_type: str, protocol_name: str | None, leader: str | None) -> None:
        """What a record says about a group whose members were added before: it rests, with or without members."""
        self.generation = generation
        self.member_protocol_type = protocol_type or None
        self.protocol_name = protocol_name
        # A group without a leader among its members could never begin another generation.
        self.leader = leader if leader in self.members else next(iter(self.members), None)
        self.state = STABLE if self.members else EMPTY
        self.refresh_subscribed_topics()

    @property
    def can_rebalance(self) -> bool:
        return self.state in PREDECESSORS[PREPARING_REBALANCE]

    @property
    def all_members_joined(self) -> bool:
        return self.awaiting_join_count >= len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member decides."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, wall_ms: int) -> None:
        """Everybody who is here takes part; with nobody here the group is empty."""
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.refresh_subscribed_topics()
        self.pending_sync_members.clear()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, wall_ms)

    # Members

    def add(self, member: ClassicMember, respond: JoinCallback | None) -> None:
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member.protocols, 1)
        self.set_awaiting_join(member, respond)
        self.pending_members.pop(member.member_id, None)

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def remove(self, member_id: str) -> ClassicMember | None:
        """Forgets a member or a pending one; the first of those who stay leads if it was the leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member.protocols, -1)
            if member.awaiting_join is not None:
                self.awaiting_join_count -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)
        return member

    def replace_static(self, member: ClassicMember, member_id: str) -> ClassicMember:
        """The same instance under a new member id: it keeps assignment, timeouts and leadership, and is not fenced."""
        assert member.instance_id is not None
        old_id = member.member_id
        new = ClassicMember(
            member_id,
            member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            protocols=member.protocols,
            assignment=member.assignment,
        )
        if member.awaiting_join is not None:
            self.awaiting_join_count -= 1
        del self.members[old_id]
        self.members[member_id] = new
        self.static_members[member.instance_id] = member_id
        if self.leader == old_id:
            self.leader = member_id
        if old_id in self.pending_sync_members:
            del self.pending_sync_members[old_id]
            self.pending_sync_members[member_id] = None
        return new

    def set_awaiting_join(self, member: ClassicMember, respond: JoinCallback | None) -> None:
        """The only place that changes who waits for a generation to begin, so that the count is right."""
        self.awaiting_join_count += (respond is not None) - (member.awaiting_join is not None)
        assert 0 <= self.awaiting_join_count <= len(self.members), f"{self.awaiting_join_count} of {self.group_id} wait"
        member.awaiting_join = respond

    def elect_joined_leader(self) -> bool:
        """Makes sure that the leader is one who has joined again; False if nobody has."""
        if self.leader is None:
            return False
        leader = self.members.get(self.leader)
        if leader is not None and leader.awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member, if it is who it says it is."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(errors.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(errors.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return member

    # Protocols

    def _count_protocols(self, protocols: Protocols, change: int) -> None:
        supported = self._supported
        for name, _ in protocols:
            count = supported.get(name, 0) + change
            if count:
                supported[name] = count
            else:
                del supported[name]

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Could someone with these protocols join? One of them must be known to all members."""
        if self.state == EMPTY:
            return protocol_type != "" and len(protocols) > 0
        if self.member_protocol_type != protocol_type:
            return False
        supported = self._supported
        size = len(self.members)
        return any(supported.get(name, 0) == size for name, _ in protocols)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support; Kafka's hash order decides a draw."""
        size = len(self.members)
        candidates = {name for name, count in self._supported.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        most = max(votes.values())
        return min((name for name, count in votes.items() if count == most), key=_java_bucket)

    def refresh_subscribed_topics(self) -> None:
        """To be called when the protocol is chosen, or a member's metadata changes under a chosen one."""
        self.subscribed_topics = self._compute_subscribed_topics()

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        if self.member_protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                topics.update(subscribed_topics(member.metadata(self.protocol_name)))
        except DecodeError:
            return None
        return frozenset(topics)

    # What members and administrators are told

    def join_members(self) -> list[JoinGroupResponseMember]:
        """All members with their metadata, for the leader to assign partitions to."""
        assert self.protocol_name is not None
        return [
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(self.protocol_name))
            for member in self.members.values()
        ]

    def describe(self) -> DescribedGroup:
        """As DescribeGroups shows it: metadata only while a protocol is agreed on, assignments as last given."""
        protocol = self.protocol_name if self.state == STABLE else None
        members = [
            DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                b"" if protocol is None else member.metadata(protocol),
                member.assignment,
            )
            for member in self.members.values()
        ]
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self.protocol_type(),
            protocol_data=protocol or "",
            members=members,
        )

    # What all groups have

    def state_name(self) -> str:
        return self.state

    def protocol_type(self) -> str:
        return self.member_protocol_type or ""

    def is_empty(self) -> bool:
        return self.state == EMPTY

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        version: int,
        now_ms: int,
    ) -> None:
        if self.state == DEAD:
            raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
        if generation_or_epoch < 0 and self.state == EMPTY:
            return
        member: ClassicMember | None = None
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            member = self.check_member(member_id, instance_id)
            if generation_or_epoch != self.generation:
                raise KafkaError(errors.ILLEGAL_GENERATION)
        elif not is_transactional:
            # Someone outside of the group, while members own its partitions.
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        if is_transactional:
            return
        if self.state == COMPLETING_REBALANCE:
            raise KafkaError(errors.REBALANCE_IN_PROGRESS)
        if member is not None:
            member.session_due_ms = now_ms + member.session_timeout_ms

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if self.state == DEAD:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND)

    def check_offset_delete(self) -> None:
        if self.state == DEAD:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND)
        if self.state != EMPTY and self.member_protocol_type != CONSUMER_PROTOCOL_TYPE:
            # Nobody but the members knows which topics they read.
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state == DEAD:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND)
        if self.state != EMPTY:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.member_protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics

    def tombstones(self) -> list[StoredRecord]:
        return [(encode_key(GroupMetadataKey(self.group_id)), None)]

    def offsets_expire_from(self, topic: str, committed_ms: int) -> int:
        """KIP-211: from when the group became empty, or from the commit if nobody reads the topic any more."""
        if self.member_protocol_type is None:
            return committed_ms
        if self.state == EMPTY:
            return committed_ms if self.state_timestamp_ms == NO_TIMESTAMP else self.state_timestamp_ms
        if self.state == STABLE and self.subscribed_topics is not None and topic not in self.subscribed_topics:
            return committed_ms
        return -1


def _java_bucket(name: str) -> int:
    """Where Java's HashMap keeps a key while it is small: the order in which Kafka counts votes."""
    found = java_hash(name) & 0xFFFFFFFF
    return (found ^ (found >> 16)) & (JAVA_BUCKETS - 1)
