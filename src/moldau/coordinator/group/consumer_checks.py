"""The checks of a ConsumerGroupHeartbeat, in Kafka's order and words: those without state, and those of a member."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.consumer_member import (
    JOINING_EPOCH,
    LEFT_EPOCH,
    LEFT_FOR_A_WHILE_EPOCH,
    ConsumerMember,
)
from moldau.coordinator.group.reconciliation import Owned
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest

FIRST_VERSION_WITH_CLIENT_IDS: Final = 1
"""From here on members make their own ids (KIP-1082)."""

ID_BYTES_MAX: Final = 0x7FFF
"""What fits into the key of a record."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: list[str]) -> None:
    """Raises the error that the member gets; nothing was looked at but the request."""
    epoch = request.member_epoch
    if version >= FIRST_VERSION_WITH_CLIENT_IDS or epoch > 0 or epoch == LEFT_EPOCH:
        check_not_blank(request.member_id, "MemberId can't be empty.")
    check_not_blank(request.group_id, "GroupId can't be empty.")
    check_not_blank(request.instance_id, "InstanceId can't be empty.")
    check_not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        _check_join(request)
    elif epoch == LEFT_FOR_A_WHILE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        raise KafkaError(
            errors.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )
    check_id_lengths(request.group_id, request.member_id)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or len(request.topic_partitions) > 0:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def check_id_lengths(group_id: str, member_id: str) -> None:
    for name, text in (("GroupId", group_id), ("MemberId", member_id)):
        if len(text) > ID_BYTES_MAX // 4 and len(text.encode("utf-8", "surrogatepass")) > ID_BYTES_MAX:
            raise _invalid(f"{name} is longer than {ID_BYTES_MAX} bytes.")


def check_not_blank(text: str | None, message: str) -> None:
    """Java's trim takes everything up to the space away."""
    if text is None or text[:1] > " ":
        return
    if all(character <= " " for character in text):
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(errors.INVALID_REQUEST, message)


# The member that sends it


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """A member that missed the response to its last heartbeat may repeat it, as long as it has nothing it should
    not."""
    if epoch == JOINING_EPOCH or epoch == member.member_epoch:
        return
    if epoch > member.member_epoch:
        raise _fenced("greater", epoch, member.member_epoch)
    if epoch != member.previous_member_epoch or not _has_no_more(owned, member):
        raise _fenced("smaller", epoch, member.member_epoch)


def _fenced(how: str, epoch: int, known: int) -> KafkaError:
    return KafkaError(
        errors.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}). The member must abandon all its partitions and rejoin.",
    )


def _has_no_more(owned: Owned | None, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    for topic_id, partitions in owned:
        epochs = member.assigned.get(topic_id)
        if epochs is None or any(index not in epochs for index in partitions):
            return False
    return True


def check_instance(known: ConsumerMember | None, member_id: str, instance_id: str) -> None:
    """Is this the member that has the instance id?"""
    if known is None:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise KafkaError(
            errors.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {known.member_id}.",
        )
