"""The checks of a StreamsGroupHeartbeat, in Kafka's order and words: those without state, and those of a member."""

from __future__ import annotations

from moldau.coordinator.group.consumer_checks import check_id_lengths, check_not_blank
from moldau.coordinator.group.streams.configuration import ConfiguredTopology
from moldau.coordinator.group.streams.member import JOINING_EPOCH, NO_TIMEOUT, StreamsMember
from moldau.coordinator.group.streams.tasks import TasksByRole, is_part_of
from moldau.coordinator.group.streams.topology import invalid_topology
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

LEFT_FOR_A_WHILE_EPOCH = -2


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Raises the error that the member gets; nothing was looked at but the request."""
    _check_unsupported(request)
    check_not_blank(request.member_id, "MemberId can't be empty.")
    check_not_blank(request.group_id, "GroupId can't be empty.")
    check_not_blank(request.rack_id, "RackId can't be empty.")
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        _check_join(request)
    elif epoch == LEFT_FOR_A_WHILE_EPOCH:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE_EPOCH:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(one is None for one in lists) and any(one is not None for one in lists):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if epoch != JOINING_EPOCH and request.topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")
    check_id_lengths(request.group_id, request.member_id)


def _check_unsupported(request: StreamsGroupHeartbeatRequest) -> None:
    """What the schema has and Kafka 4.3 does not serve."""
    if request.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise _invalid("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise _invalid("WarmupTasks are not supported yet.")
    if request.topology is not None and any(one.source_topic_regex for one in request.topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (("Active", request.active_tasks), ("Standby", request.standby_tasks)):
        if tasks is None or tasks:
            raise _invalid(f"{name}Tasks must be empty when (re-)joining.")
    if request.warmup_tasks is None:
        raise _invalid("WarmupTasks must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                raise invalid_topology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )


def _invalid(message: str) -> KafkaError:
    return KafkaError(errors.INVALID_REQUEST, message)


# The member that sends it


def check_epoch(member: StreamsMember, epoch: int, owned: TasksByRole | None) -> None:
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
        f"The streams group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}). The member must abandon all its partitions and rejoin.",
    )


def _has_no_more(owned: TasksByRole | None, member: StreamsMember) -> bool:
    if owned is None:
        return False
    assigned = member.assigned
    return (
        is_part_of(owned.active, assigned.active)
        and is_part_of(owned.standby, assigned.standby)
        and is_part_of(owned.warmup, assigned.warmup)
    )


def check_tasks(configured: ConfiguredTopology, owned: TasksByRole | None) -> None:
    """While the topology is ready it is known which tasks there are."""
    if owned is None or not configured.is_ready:
        return
    for tasks in owned:
        for name, partitions in tasks.items():
            subtopology = configured.subtopologies.get(name)
            if subtopology is None:
                raise _invalid(f"Subtopology {name} does not exist in the topology.")
            for index in sorted(partitions):
                if not 0 <= index < subtopology.task_count:
                    raise _invalid(
                        f"Task {index} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                        f"{subtopology.task_count}"
                    )
