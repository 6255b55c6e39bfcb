"""Who leads when brokers come and go: fencing, unfencing, controlled shutdown, elections, lost directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.controller.partition_change import PREFERRED, UNCLEAN, PartitionChange
from moldau.controller.partition_index import PartitionKey
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.model import NO_LEADER, PartitionRegistration, TopicImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError, default_text
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from moldau.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.protocol.stored.metadata_records import BrokerRegistrationChangeRecord

FENCE = 1
UNFENCE = -1

ELECT_PREFERRED = 0
ELECT_UNCLEAN = 1


class Leadership:
    def __init__(self, state: ControllerState) -> None:
        self.state = state

    def _found(self, keys: Iterable[PartitionKey]) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        for topic_id, index in keys:
            topic = self.state.image.topics_by_id[topic_id]
            yield topic, index, topic.partitions[index]

    def change(self, topic: TopicImage, index: int, removed: int = -1, added: int = -1) -> PartitionChange:
        """A change under the topic's settings, with `removed` as good as gone and `added` as good as there."""
        state = self.state
        partition = topic.partitions[index]
        change = PartitionChange(
            partition,
            topic.topic_id,
            index,
            lambda replica: replica != removed and self._can_lead(partition, replica, added),
            state.image.metadata_version,
            state.min_insync_replicas(topic.name),
            state.image.elr_enabled,
        )
        if state.unclean_election_enabled(topic.name):
            change.election = UNCLEAN
        change.default_directory = self.default_directory
        return change

    def _can_lead(self, partition: PartitionRegistration, replica: int, added: int) -> bool:
        """An active broker whose directory for this partition is not lost."""
        broker = self.state.image.brokers.get(replica)
        if broker is None or not (broker.is_active or replica == added):
            return False
        return replica not in partition.replicas or broker.has_online_dir(partition.directory_of(replica))

    def default_directory(self, broker_id: int) -> bytes:
        return self.state.image.brokers[broker_id].default_dir()

    def remove_broker(self, broker_id: int, records: list[VersionedRecord]) -> None:
        """Takes a broker that stopped, but may have everything it had, out of every ISR."""
        for topic, index, partition in self._found(self.state.partitions.with_isr_member(broker_id)):
            change = self.change(topic, index, removed=broker_id)
            change.target_isr = [replica for replica in partition.isr if replica != broker_id]
            _add(records, change)

    def forget_broker(self, broker_id: int, records: list[VersionedRecord]) -> None:
        """Takes a broker that may have lost records out of every ISR and out of all eligible leader replicas."""
        if not self.state.image.elr_enabled:
            self.remove_broker(broker_id, records)
            return
        for topic, index, partition in self._found(self._where_trusted(broker_id)):
            change = self.change(topic, index, removed=broker_id)
            change.target_isr = [replica for replica in partition.isr if replica != broker_id]
            change.unclean_shutdown = frozenset((broker_id,))
            _add(records, change)

    def _where_trusted(self, broker_id: int) -> list[PartitionKey]:
        """The partitions that hold the broker to be in sync, or at least eligible."""
        index = self.state.partitions
        return [*index.with_isr_member(broker_id), *index.with_elr_member(broker_id)]

    def fence(self, broker_id: int, records: list[VersionedRecord]) -> None:
        self.remove_broker(broker_id, records)
        records.append((self._registration_change(broker_id, fenced=FENCE), 0))

    def unfence(self, broker_id: int, records: list[VersionedRecord]) -> None:
        records.append((self._registration_change(broker_id, fenced=UNFENCE), 0))
        for topic, index, partition in self._found(self.state.partitions.leaderless):
            if broker_id in partition.replicas:
                _add(records, self.change(topic, index, added=broker_id))

    def begin_controlled_shutdown(self, broker_id: int, records: list[VersionedRecord]) -> None:
        if not self.state.image.brokers[broker_id].in_controlled_shutdown:
            records.append((self._registration_change(broker_id, in_controlled_shutdown=1), 1))
        self.remove_broker(broker_id, records)

    def _registration_change(
        self, broker_id: int, fenced: int = 0, in_controlled_shutdown: int = 0
    ) -> BrokerRegistrationChangeRecord:
        epoch = self.state.image.brokers[broker_id].broker_epoch
        return BrokerRegistrationChangeRecord(broker_id, epoch, fenced, in_controlled_shutdown)

    def has_leaderships(self, broker_id: int) -> bool:
        return self.state.partitions.leads(broker_id)

    def directories_offline(self, broker_id: int, offline: list[bytes], records: list[VersionedRecord]) -> bool:
        """Replicas in lost directories leave the ISR; the broker stays with the directories it has left.

        False when the registration stays as it is: they were known to be lost, or none is left and the broker is about
        to end.
        """
        broker = self.state.image.brokers[broker_id]
        lost = [directory for directory in offline if directory in broker.log_dirs]
        if not lost:
            return False
        for topic, index, partition in self._found(self._where_trusted(broker_id)):
            if partition.directory_of(broker_id) in lost:
                self.replica_offline(topic, index, broker_id, records)
        left = [directory for directory in broker.log_dirs if directory not in lost]
        if not left:
            return False
        records.append((BrokerRegistrationChangeRecord(broker_id, broker.broker_epoch, log_dirs=left), 2))
        return True

    def replica_offline(
        self,
        topic: TopicImage,
        index: int,
        broker_id: int,
        records: list[VersionedRecord],
        directory: bytes | None = None,
    ) -> None:
        """One replica of a broker that goes on living; `directory` is where it is said to be, if that is new.

        It is not eligible either: the disk may be replaced by an empty one.
        """
        change = self.change(topic, index, removed=broker_id)
        change.target_isr = [replica for replica in topic.partitions[index].isr if replica != broker_id]
        change.unclean_shutdown = frozenset((broker_id,))
        if directory is not None:
            change.target_directories[broker_id] = directory
        _add(records, change)

    def balance(self, limit: int) -> tuple[list[VersionedRecord], bool]:
        """Gives partitions back to their preferred leader where that one can lead; True when there may be more."""
        records: list[VersionedRecord] = []
        for topic, index, partition in self._found(self.state.partitions.not_preferred):
            if len(records) >= limit:
                return records, True
            if partition.preferred_leader in partition.isr or partition.leader == NO_LEADER:
                change = self.change(topic, index)
                change.election = PREFERRED
                _add(records, change)
        return records, False

    def elect_unclean(self, limit: int) -> tuple[list[VersionedRecord], bool]:
        """Elections for partitions without a leader whose topics allow unclean ones; True when there may be more."""
        records: list[VersionedRecord] = []
        for topic, index, _ in self._found(self.state.partitions.leaderless):
            if len(records) >= limit:
                return records, True
            if self.state.unclean_election_enabled(topic.name):
                _add(records, self.change(topic, index))
        return records, False

    # ElectLeaders

    def elect_leaders(self, request: ElectLeadersRequest) -> Result:
        if request.election_type not in (ELECT_PREFERRED, ELECT_UNCLEAN):
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown election type {request.election_type}")
        records: list[VersionedRecord] = []
        response = ElectLeadersResponse()
        wanted = request.topic_partitions
        if wanted is None:
            self._elect_everywhere(request.election_type, records, response)
            return Result(records, response, is_atomic=False)
        for entry in wanted:
            result = ReplicaElectionResult(entry.topic)
            for index in entry.partitions:
                code, message = self._try_elect(entry.topic, index, request.election_type, records)
                result.partition_result.append(PartitionResult(index, code, message))
            response.replica_election_results.append(result)
        return Result(records, response, is_atomic=False)

    def _elect_everywhere(
        self, election_type: int, records: list[VersionedRecord], response: ElectLeadersResponse
    ) -> None:
        """Every topic is in the response, but only those partitions for which something was to be done."""
        for topic in self.state.image.topics_by_name.values():
            result = ReplicaElectionResult(topic.name)
            for index in topic.partitions:
                code, message = self._try_elect(topic.name, index, election_type, records)
                if code != errors.ELECTION_NOT_NEEDED:
                    result.partition_result.append(PartitionResult(index, code, message))
            response.replica_election_results.append(result)

    def _try_elect(
        self, name: str, index: int, election_type: int, records: list[VersionedRecord]
    ) -> tuple[int, str | None]:
        try:
            self._elect(name, index, election_type, records)
        except KafkaError as error:
            return error.code, error.message
        return errors.NONE, None

    def _elect(self, name: str, index: int, election_type: int, records: list[VersionedRecord]) -> None:
        topic = self.state.image.topic(name)
        if topic is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
        partition = topic.partitions.get(index)
        if partition is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
        preferred = election_type == ELECT_PREFERRED
        if preferred and partition.leader == partition.preferred_leader:
            raise KafkaError(errors.ELECTION_NOT_NEEDED)
        if not preferred and partition.leader != NO_LEADER:
            raise KafkaError(errors.ELECTION_NOT_NEEDED)
        change = self.change(topic, index)
        change.election = PREFERRED if preferred else UNCLEAN
        built = change.build()
        if built is None or built[0].leader < 0 or (preferred and built[0].leader != partition.preferred_leader):
            code = errors.PREFERRED_LEADER_NOT_AVAILABLE if preferred else errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
            raise KafkaError(code, default_text(code))
        records.append(built)


def _add(records: list[VersionedRecord], change: PartitionChange) -> None:
    built = change.build()
    if built is not None:
        records.append(built)
