"""What leaders and brokers report about replicas: AlterPartition (KIP-497, 903), AssignReplicasToDirs (KIP-858)."""

from __future__ import annotations

from moldau.controller.brokers import Brokers
from moldau.controller.leadership import Leadership
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import partition_version
from moldau.metadata.model import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
    TopicImage,
)
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_partition_request as request_messages
from moldau.protocol.messages import alter_partition_response as response_messages
from moldau.protocol.messages import assign_replicas_to_dirs_request as dirs_request_messages
from moldau.protocol.messages import assign_replicas_to_dirs_response as dirs_response_messages
from moldau.protocol.stored.metadata_records import PartitionChangeRecord


class InSyncReplicas:
    def __init__(self, state: ControllerState, brokers: Brokers, leadership: Leadership) -> None:
        self.state = state
        self.brokers = brokers
        self.leadership = leadership

    # AlterPartition

    def alter(self, request: request_messages.AlterPartitionRequest) -> Result:
        self.brokers.check_epoch(request.broker_id, request.broker_epoch)
        records: list[VersionedRecord] = []
        response = response_messages.AlterPartitionResponse()
        for topic_data in request.topics:
            rows = response_messages.TopicData(topic_data.topic_id)
            topic = self.state.image.topic_by_id(topic_data.topic_id)
            for data in topic_data.partitions:
                row = response_messages.PartitionData(data.partition_index)
                try:
                    if topic is None:
                        raise KafkaError(errors.UNKNOWN_TOPIC_ID)
                    self._alter_one(request.broker_id, topic, data, row, records)
                except KafkaError as error:
                    row.error_code = error.code
                rows.partitions.append(row)
            response.topics.append(rows)
        return Result(records, response, is_atomic=False)

    def _alter_one(
        self,
        broker_id: int,
        topic: TopicImage,
        data: request_messages.PartitionData,
        row: response_messages.PartitionData,
        records: list[VersionedRecord],
    ) -> None:
        partition = topic.partitions.get(data.partition_index)
        if partition is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        states = [(s.broker_id, s.broker_epoch) for s in data.new_isr_with_epochs]
        states = states or [(replica, -1) for replica in data.new_isr]
        self._check(broker_id, partition, data, states)
        change = self.leadership.change(topic, data.partition_index)
        change.target_isr = [replica for replica, _ in states]
        change.target_recovery_state = data.leader_recovery_state
        built = change.build()
        after = partition
        if built is not None:
            record, _ = built
            assert isinstance(record, PartitionChangeRecord)
            records.append(built)
            after = partition.merge(record)
            if record.leader not in (NO_LEADER_CHANGE, broker_id):
                # The last step of a reassignment took the leadership away from who asked.
                raise KafkaError(errors.NEW_LEADER_ELECTED)
        row.leader_id, row.leader_epoch = after.leader, after.leader_epoch
        row.isr = list(after.isr)
        row.leader_recovery_state, row.partition_epoch = after.leader_recovery_state, after.partition_epoch

    def _check(
        self,
        broker_id: int,
        partition: PartitionRegistration,
        data: request_messages.PartitionData,
        states: list[tuple[int, int]],
    ) -> None:
        isr = [replica for replica, _ in states]
        if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
            # The leader knows more than this controller, which cannot be the active one any more.
            raise KafkaError(errors.NOT_CONTROLLER)
        if data.leader_epoch < partition.leader_epoch:
            raise KafkaError(errors.FENCED_LEADER_EPOCH)
        if broker_id != partition.leader:
            raise KafkaError(errors.INVALID_REQUEST)
        if data.partition_epoch < partition.partition_epoch:
            raise KafkaError(errors.INVALID_UPDATE_VERSION)
        if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or partition.leader not in isr:
            raise KafkaError(errors.INVALID_REQUEST)
        if data.leader_recovery_state not in (RECOVERED, RECOVERING):
            raise KafkaError(errors.INVALID_REQUEST)
        if data.leader_recovery_state == RECOVERING and len(isr) > 1:
            raise KafkaError(errors.INVALID_REQUEST)
        if data.leader_recovery_state == RECOVERING and partition.leader_recovery_state == RECOVERED:
            raise KafkaError(errors.INVALID_REQUEST)
        for replica, epoch in states:
            self._check_eligible(replica, epoch)

    def _check_eligible(self, replica: int, epoch: int) -> None:
        """A fenced or leaving broker, or an earlier life of one, must not enter the ISR."""
        broker = self.state.image.brokers.get(replica)
        if broker is None or not broker.is_active or (epoch != -1 and epoch != broker.broker_epoch):
            raise KafkaError(errors.INELIGIBLE_REPLICA)

    # Directories

    def assign_directories(self, request: dirs_request_messages.AssignReplicasToDirsRequest) -> Result:
        if partition_version(self.state.image.metadata_version) < 1:
            raise KafkaError(errors.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
        broker = self.brokers.check_epoch(request.broker_id, request.broker_epoch)
        records: list[VersionedRecord] = []
        response = dirs_response_messages.AssignReplicasToDirsResponse()
        for directory in request.directories:
            rows = dirs_response_messages.DirectoryData(directory.id)
            for topic_data in directory.topics:
                topic_rows = dirs_response_messages.TopicData(topic_data.topic_id)
                for data in topic_data.partitions:
                    row = dirs_response_messages.PartitionData(data.partition_index)
                    row.error_code = self._assign_one(
                        broker.broker_id, directory.id, topic_data.topic_id, data.partition_index, records
                    )
                    topic_rows.partitions.append(row)
                rows.topics.append(topic_rows)
            response.directories.append(rows)
        return Result(records, response, is_atomic=False)

    def _assign_one(
        self, broker_id: int, directory: bytes, topic_id: bytes, index: int, records: list[VersionedRecord]
    ) -> int:
        topic = self.state.image.topic_by_id(topic_id)
        if topic is None:
            return errors.UNKNOWN_TOPIC_ID
        partition = topic.partitions.get(index)
        if partition is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        if broker_id not in partition.replicas:
            return errors.NOT_LEADER_OR_FOLLOWER
        broker = self.state.image.brokers[broker_id]
        if not broker.has_online_dir(directory):
            self.leadership.replica_offline(topic, index, broker_id, records, directory)
            return errors.NONE
        change = self.leadership.change(topic, index)
        change.target_directories[broker_id] = directory
        if broker.is_active:
            # A replica that is back in a working directory may lead again.
            as_before = change.is_acceptable_leader
            change.is_acceptable_leader = lambda replica: replica == broker_id or as_before(replica)
        built = change.build()
        if built is not None:
            records.append(built)
        return errors.NONE
