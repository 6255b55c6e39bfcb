"""Admin methods that describe groups of consumers: classic ones, those of the newer protocol, and share groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.acls import AclOperation, authorized
from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_groups
from moldau.client.admin.groups import CONSUMER_PROTOCOL, missing_group
from moldau.client.admin.routing import (
    GROUP_COORDINATOR,
    RETRY_COORDINATOR,
    Deadline,
    Question,
    Target,
    outcome,
)
from moldau.client.connection.cluster import Broker
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors as codes

if TYPE_CHECKING:
    from moldau.protocol.messages import consumer_group_describe_response as consumer
    from moldau.protocol.messages import describe_groups_response as classic
    from moldau.protocol.messages import share_group_describe_response as share

DEAD = "Dead"


class MemberDescription(NamedTuple):
    """A member of a group; what its protocol does not have is None."""

    member_id: str
    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    target_assignment: list[TopicPartition] | None = None
    member_epoch: int | None = None
    subscribed_topics: list[str] | None = None
    subscribed_regex: str | None = None
    # Whether a member of a consumer group uses the newer protocol; None: unknown.
    is_upgraded: bool | None = None


class GroupDescription(NamedTuple):
    """A group of consumers; type: classic, consumer or share. Epochs are None for a classic group."""

    group_id: str
    type: str
    state: str
    coordinator: Broker
    assignor: str
    members: list[MemberDescription]
    is_simple: bool = False
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    authorized_operations: set[AclOperation] | None = None


class ClassicMember(NamedTuple):
    """A member of a classic group of any protocol, with the bytes that only its protocol understands."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    metadata: bytes
    assignment: bytes


class ClassicGroupDescription(NamedTuple):
    """A classic group: consumers, Connect workers, or anything else that uses the older protocol."""

    group_id: str
    protocol_type: str
    protocol: str
    state: str
    coordinator: Broker
    members: list[ClassicMember]
    authorized_operations: set[AclOperation] | None = None


class GroupDescriptionAdmin(AdminCalls):
    """Descriptions of groups."""

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[GroupDescription]]:
        """Groups of consumers, whichever of the two protocols they use."""
        from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
        from moldau.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse

        deadline = self._start(timeout_ms)
        wanted = checked_groups(group_ids)

        def request(items: list[str]) -> ConsumerGroupDescribeRequest:
            return ConsumerGroupDescribeRequest(
                group_ids=items, include_authorized_operations=include_authorized_operations
            )

        question = Question(request, ConsumerGroupDescribeResponse, _read_consumer, RETRY_COORDINATOR)
        route = self._route_to_coordinators(GROUP_COORDINATOR)
        outcomes = self._ask_each(wanted, route, question, deadline)
        # An older broker, or a group that is no consumer group of the newer protocol: it may be a classic one.
        rest = [item for item in wanted if _may_be_classic(outcomes[item])]
        for group_id, found in self._classic(rest, include_authorized_operations, deadline).items():
            outcomes[group_id] = _as_consumers(found)
        return outcomes

    def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[ClassicGroupDescription]]:
        """Groups of the older protocol, whatever they are for."""
        deadline = self._start(timeout_ms)
        return self._classic(checked_groups(group_ids), include_authorized_operations, deadline)

    def describe_share_groups(
        self,
        group_ids: Iterable[str],
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[GroupDescription]]:
        """Share groups (KIP-932)."""
        from moldau.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
        from moldau.protocol.messages.share_group_describe_response import ShareGroupDescribeResponse

        deadline = self._start(timeout_ms)
        wanted = checked_groups(group_ids)

        def request(items: list[str]) -> ShareGroupDescribeRequest:
            return ShareGroupDescribeRequest(
                group_ids=items, include_authorized_operations=include_authorized_operations
            )

        question = Question(request, ShareGroupDescribeResponse, _read_share, RETRY_COORDINATOR)
        return self._ask_each(wanted, self._route_to_coordinators(GROUP_COORDINATOR), question, deadline)

    def _classic(
        self, group_ids: list[str], include_authorized_operations: bool, deadline: Deadline
    ) -> dict[str, Outcome[ClassicGroupDescription]]:
        from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
        from moldau.protocol.messages.describe_groups_response import DescribeGroupsResponse

        def request(items: list[str]) -> DescribeGroupsRequest:
            return DescribeGroupsRequest(groups=items, include_authorized_operations=include_authorized_operations)

        question = Question(request, DescribeGroupsResponse, _read_classic, RETRY_COORDINATOR)
        return self._ask_each(group_ids, self._route_to_coordinators(GROUP_COORDINATOR), question, deadline)


def _partitions(assignment: consumer.Assignment | share.Assignment) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


def _read_consumer(
    response: consumer.ConsumerGroupDescribeResponse, target: Target[str]
) -> dict[str, Outcome[GroupDescription]]:
    outcomes: dict[str, Outcome[GroupDescription]] = {}
    for row in response.groups:
        members = [
            MemberDescription(
                item.member_id,
                item.instance_id,
                item.rack_id,
                item.client_id,
                item.client_host,
                _partitions(item.assignment),
                _partitions(item.target_assignment),
                item.member_epoch,
                list(item.subscribed_topic_names),
                item.subscribed_topic_regex or None,
                None if item.member_type < 0 else item.member_type == 1,
            )
            for item in row.members
        ]
        description = GroupDescription(
            row.group_id,
            "consumer",
            row.group_state,
            target.broker,
            row.assignor_name,
            members,
            False,
            row.group_epoch,
            row.assignment_epoch,
            authorized(row.authorized_operations),
        )
        outcomes[row.group_id] = outcome(row.error_code, row.error_message, description)
    return outcomes


def _read_share(
    response: share.ShareGroupDescribeResponse, target: Target[str]
) -> dict[str, Outcome[GroupDescription]]:
    outcomes: dict[str, Outcome[GroupDescription]] = {}
    for row in response.groups:
        members = [
            MemberDescription(
                item.member_id,
                None,
                item.rack_id,
                item.client_id,
                item.client_host,
                _partitions(item.assignment),
                None,
                item.member_epoch,
                list(item.subscribed_topic_names),
            )
            for item in row.members
        ]
        description = GroupDescription(
            row.group_id,
            "share",
            row.group_state,
            target.broker,
            row.assignor_name,
            members,
            False,
            row.group_epoch,
            row.assignment_epoch,
            authorized(row.authorized_operations),
        )
        outcomes[row.group_id] = outcome(row.error_code, row.error_message, description)
    return outcomes


def _read_classic(
    response: classic.DescribeGroupsResponse, target: Target[str]
) -> dict[str, Outcome[ClassicGroupDescription]]:
    outcomes: dict[str, Outcome[ClassicGroupDescription]] = {}
    for row in response.groups:
        members = [
            ClassicMember(
                item.member_id,
                item.group_instance_id,
                item.client_id,
                item.client_host,
                item.member_metadata,
                item.member_assignment,
            )
            for item in row.members
        ]
        description = ClassicGroupDescription(
            row.group_id,
            row.protocol_type,
            row.protocol_data,
            row.group_state,
            target.broker,
            members,
            authorized(row.authorized_operations),
        )
        if row.error_code == codes.NONE and row.group_state == DEAD:
            # Before version 6 a group that does not exist was described as dead.
            outcomes[row.group_id] = Outcome(error=missing_group(row.group_id))
        else:
            outcomes[row.group_id] = outcome(row.error_code, row.error_message, description)
    return outcomes


def _may_be_classic(found: Outcome[GroupDescription]) -> bool:
    return found.error is not None and found.error.code in (codes.GROUP_ID_NOT_FOUND, codes.UNSUPPORTED_VERSION)


def _as_consumers(found: Outcome[ClassicGroupDescription]) -> Outcome[GroupDescription]:
    """A classic group read as a group of consumers."""
    from moldau.client.admin.consumer_protocol import read_assignment, read_topics

    if found.error is not None:
        return Outcome(error=found.error)
    group = found.get()
    if group.protocol_type not in (CONSUMER_PROTOCOL, ""):
        sentence = f"Group {group.group_id} is not of consumers but of the protocol {group.protocol_type}."
        return Outcome(error=error_for(codes.GROUP_ID_NOT_FOUND, sentence))
    members = [
        MemberDescription(
            item.member_id,
            item.group_instance_id,
            None,
            item.client_id,
            item.host,
            read_assignment(item.assignment),
            subscribed_topics=read_topics(item.metadata),
        )
        for item in group.members
    ]
    return Outcome(
        GroupDescription(
            group.group_id,
            "classic",
            group.state,
            group.coordinator,
            group.protocol,
            members,
            group.protocol_type == "",
            authorized_operations=group.authorized_operations,
        )
    )
