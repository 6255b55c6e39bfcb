"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_member import ConsumerMember
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.consumer_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_group(group: ConsumerGroup, default_assignor: str, image: MetadataImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_describe_member(group, member, image) for member in group.members.values()],
    )


def _describe_member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(member.all_partitions(), image),
        target_assignment=_assignment(group.target_of(member.member_id), image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], image: MetadataImage) -> Assignment:
    """Topics that were deleted have no name to show."""
    topics: list[TopicPartitions] = []
    for topic_id, indexes in partitions.items():
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            topics.append(TopicPartitions(topic_id, topic.name, sorted(indexes)))
    return Assignment(topics)
