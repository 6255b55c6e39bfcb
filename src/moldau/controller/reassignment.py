"""Moving replicas: AlterPartitionReassignments and ListPartitionReassignments (KIP-455)."""

from __future__ import annotations

from moldau.controller.leadership import Leadership
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.controller.topics import Topics
from moldau.metadata.model import TopicImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_partition_reassignments_request as asked
from moldau.protocol.messages import alter_partition_reassignments_response as answered
from moldau.protocol.messages import list_partition_reassignments_response as listed
from moldau.protocol.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest


class Reassignments:
    def __init__(self, state: ControllerState, topics: Topics, leadership: Leadership) -> None:
        self.state = state
        self.topics = topics
        self.leadership = leadership

    def alter(self, request: asked.AlterPartitionReassignmentsRequest) -> Result:
        records: list[VersionedRecord] = []
        response = answered.AlterPartitionReassignmentsResponse(error_message=None)
        response.allow_replication_factor_change = request.allow_replication_factor_change
        for topic_data in request.topics:
            rows = answered.ReassignableTopicResponse(topic_data.name)
            for data in topic_data.partitions:
                row = answered.ReassignablePartitionResponse(data.partition_index, 0, None)
                try:
                    self._alter_one(topic_data.name, data, request.allow_replication_factor_change, records)
                except KafkaError as error:
                    row.error_code, row.error_message = error.code, error.message
                rows.partitions.append(row)
            response.responses.append(rows)
        return Result(records, response)

    def _alter_one(
        self, name: str, data: asked.ReassignablePartition, may_resize: bool, records: list[VersionedRecord]
    ) -> None:
        topic = self.state.image.topic(name)
        if topic is None:
            message = f"Unable to find a topic named {name}."
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, message)
        partition = topic.partitions.get(data.partition_index)
        if partition is None:
            message = f"Unable to find partition {data.partition_index} of topic {name}."
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, message)
        if data.replicas is None:
            self._cancel(topic, data.partition_index, records)
            return
        self.topics.check_assignment(data.replicas, -1)
        current = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
        if not may_resize and len(data.replicas) != len(current):
            message = f"The replication factor is changed from {len(current)} to {len(data.replicas)}"
            raise KafkaError(errors.INVALID_REPLICATION_FACTOR, message)
        change = self.leadership.change(topic, data.partition_index)
        change.target_adding = sorted(replica for replica in data.replicas if replica not in current)
        change.target_removing = sorted(replica for replica in current if replica not in data.replicas)
        change.target_replicas = [*data.replicas, *(r for r in current if r not in data.replicas)]
        built = change.build()
        if built is not None:
            records.append(built)

    def _cancel(self, topic: TopicImage, index: int, records: list[VersionedRecord]) -> None:
        partition = topic.partitions[index]
        if not partition.is_reassigning:
            raise KafkaError(errors.NO_REASSIGNMENT_IN_PROGRESS)
        back = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
        isr = [replica for replica in partition.isr if replica in back]
        if not isr and not self.state.unclean_election_enabled(topic.name):
            message = (
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, message)
        change = self.leadership.change(topic, index)
        change.target_replicas, change.target_isr = back, isr
        change.target_adding, change.target_removing = [], []
        built = change.build()
        if built is not None:
            records.append(built)

    def list(self, request: ListPartitionReassignmentsRequest) -> listed.ListPartitionReassignmentsResponse:
        response = listed.ListPartitionReassignmentsResponse(error_message=None)
        if request.topics is None:
            wanted = [(t.name, list(t.partitions)) for t in self.state.image.topics_by_name.values()]
        else:
            wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
        for name, indexes in wanted:
            topic = self.state.image.topic(name)
            rows = []
            for index in indexes if topic is not None else ():
                partition = topic.partitions.get(index) if topic is not None else None
                if partition is not None and partition.is_reassigning:
                    rows.append(
                        listed.OngoingPartitionReassignment(
                            index,
                            list(partition.replicas),
                            list(partition.adding_replicas),
                            list(partition.removing_replicas),
                        )
                    )
            if rows:
                response.topics.append(listed.OngoingTopicReassignment(name, rows))
        return response
