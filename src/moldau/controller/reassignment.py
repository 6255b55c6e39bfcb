"""Moving replicas: AlterPartitionReassignments and ListPartitionReassignments (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.controller.leadership import Leadership
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.controller.topics import Topics
from moldau.metadata.model import PartitionRegistration, TopicImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_partition_reassignments_request as request_messages
from moldau.protocol.messages import alter_partition_reassignments_response as response_messages
from moldau.protocol.messages import list_partition_reassignments_response as listed
from moldau.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest


class Reassignments:
    def __init__(self, state: ControllerState, topics: Topics, leadership: Leadership) -> None:
        self.state = state
        self.topics = topics
        self.leadership = leadership

    def alter(self, request: request_messages.AlterPartitionReassignmentsRequest) -> Result:
        records: list[VersionedRecord] = []
        response = response_messages.AlterPartitionReassignmentsResponse(error_message=None)
        response.allow_replication_factor_change = request.allow_replication_factor_change
        for topic_data in request.topics:
            rows = response_messages.ReassignableTopicResponse(topic_data.name)
            for data in topic_data.partitions:
                row = response_messages.ReassignablePartitionResponse(data.partition_index, 0, None)
                try:
                    self._alter_one(topic_data.name, data, request.allow_replication_factor_change, records)
                except KafkaError as error:
                    row.error_code, row.error_message = error.code, error.message
                rows.partitions.append(row)
            response.responses.append(rows)
        return Result(records, response)

    def _alter_one(
        self, name: str, data: request_messages.ReassignablePartition, may_resize: bool, records: list[VersionedRecord]
    ) -> None:
        topic = self.state.image.topic(name)
        if topic is None:
            message = f"Unable to find a topic named {name}."
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, message)
        partition = topic.partitions.get(data.partition_index)
        if partition is None:
            message = f"Unable to find partition {name}:{data.partition_index}."
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, message)
        if data.replicas is None:
            self._cancel(topic, data.partition_index, records)
            return
        self.topics.check_assignment(data.replicas, -1)
        if not may_resize:
            _check_same_factor(partition, data.replicas)
        # Replicas that an earlier reassignment began to add may be all that is in sync: they stay until this one ends.
        change = self.leadership.change(topic, data.partition_index)
        leaving = sorted(replica for replica in partition.replicas if replica not in data.replicas)
        change.target_adding = sorted(
            replica
            for replica in data.replicas
            if replica not in partition.replicas or replica in partition.adding_replicas
        )
        change.target_removing = leaving
        change.target_replicas = [*data.replicas, *leaving]
        built = change.build()
        if built is not None:
            records.append(built)

    def _cancel(self, topic: TopicImage, index: int, records: list[VersionedRecord]) -> None:
        partition = topic.partitions[index]
        if not partition.is_reassigning:
            raise KafkaError(errors.NO_REASSIGNMENT_IN_PROGRESS)
        back = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
        isr = [replica for replica in partition.isr if replica in back]
        change = self.leadership.change(topic, index)
        if not self.state.unclean_election_enabled(topic.name):
            problem = f"Unable to revert partition assignment for {topic.name}:{index} because "
            if not isr:
                problem += "it would require an unclean leader election."
                raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, problem)
            if not change.keeps_enough(back):
                problem += (
                    f"of the replicas before only {isr} are in sync, which is below min.insync.replicas. Try again "
                    "when more of them are, or name other replicas."
                )
                raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, problem)
        change.target_replicas, change.target_isr = back, isr
        change.target_adding, change.target_removing = [], []
        built = change.build()
        if built is not None:
            records.append(built)

    def list(self, request: ListPartitionReassignmentsRequest) -> listed.ListPartitionReassignmentsResponse:
        """Those that are under way, of all topics or of the ones asked for; unknown ones are left out."""
        response = listed.ListPartitionReassignmentsResponse(error_message=None)
        rows: dict[str, listed.OngoingTopicReassignment] = {}
        for topic, index in self._wanted(request):
            partition = topic.partitions.get(index)
            if partition is None or not partition.is_reassigning:
                continue
            if topic.name not in rows:
                rows[topic.name] = listed.OngoingTopicReassignment(topic.name)
                response.topics.append(rows[topic.name])
            row = listed.OngoingPartitionReassignment(index, list(partition.replicas))
            row.adding_replicas = list(partition.adding_replicas)
            row.removing_replicas = list(partition.removing_replicas)
            rows[topic.name].partitions.append(row)
        return response

    def _wanted(self, request: ListPartitionReassignmentsRequest) -> Iterator[tuple[TopicImage, int]]:
        image = self.state.image
        if request.topics is None:
            for topic_id, index in self.state.partitions.reassigning:
                yield image.topics_by_id[topic_id], index
            return
        for wanted in request.topics:
            topic = image.topic(wanted.name)
            if topic is not None:
                for index in wanted.partition_indexes:
                    yield topic, index


def _check_same_factor(partition: PartitionRegistration, replicas: list[int]) -> None:
    """Compared with what the partition has, or is to have when the reassignment under way ends."""
    current = [replica for replica in partition.replicas if replica not in partition.removing_replicas]
    if len(replicas) != len(current):
        message = f"The replication factor is changed from {len(current)} to {len(replicas)}"
        raise KafkaError(errors.INVALID_REPLICATION_FACTOR, message)
