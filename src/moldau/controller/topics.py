"""Topics: creation, deletion, more partitions, with Kafka's checks in Kafka's words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from moldau.config.resources import check_topic_name
from moldau.controller.colliding_names import collision_key
from moldau.controller.configs import SET, Configs
from moldau.controller.leadership import Leadership
from moldau.controller.mutations import MutationBudget
from moldau.controller.placement import UsableBroker, place_replicas
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import partition_version
from moldau.metadata.model import TOPIC_RESOURCE, BrokerRegistration, PartitionRegistration, TopicImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError, default_text
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from moldau.protocol.stored.metadata_records import RemoveTopicRecord, TopicRecord
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import ZERO_UUID, random_uuid

PARTITIONS_PER_REQUEST_MAX = 10_000


class Topics:
    def __init__(self, state: ControllerState, configs: Configs, leadership: Leadership) -> None:
        self.state = state
        self.configs = configs
        self.leadership = leadership

    # Creation

    def create(self, request: CreateTopicsRequest, paid: MutationBudget, now_ms: int) -> Result:
        counts = Counter(topic.name for topic in request.topics)
        records: list[VersionedRecord] = []
        response = CreateTopicsResponse()
        taken: dict[str, str] = {}
        budget = PARTITIONS_PER_REQUEST_MAX
        for name, count in counts.items():
            if count > 1:
                response.topics.append(_creation_error(name, errors.INVALID_REQUEST, "Duplicate topic name."))
        for topic in request.topics:
            if counts[topic.name] > 1:
                continue
            try:
                created, result = self._create_one(topic, taken)
                budget -= result.num_partitions
                if budget < 0:
                    message = "Excessively large number of partitions per request."
                    raise KafkaError(errors.POLICY_VIOLATION, message)
                paid.charge(result.num_partitions, now_ms)
            except KafkaError as error:
                response.topics.append(_creation_error(topic.name, error.code, _text(error)))
                continue
            taken[collision_key(topic.name)] = topic.name
            response.topics.append(result)
            if not request.validate_only:
                records += created
        return Result(records, response)

    def _create_one(
        self, topic: CreatableTopic, taken: dict[str, str]
    ) -> tuple[list[VersionedRecord], CreatableTopicResult]:
        self._check_new_name(topic.name, taken)
        # A key named twice has the value named last.
        changes = [(name, SET, value) for name, value in {c.name: c.value for c in topic.configs}.items()]
        config_records = self.configs.changes(TOPIC_RESOURCE, topic.name, changes, is_new=True)
        if topic.assignments:
            partitions = self._manual_partitions(topic)
        else:
            partitions = self._automatic_partitions(topic)
        topic_id = random_uuid(self.state.rng.randbytes)
        version = partition_version(self.state.image.metadata_version)
        records: list[VersionedRecord] = [(TopicRecord(topic.name, topic_id), 0), *config_records]
        records += [(p.to_record(topic_id, index, version), version) for index, p in enumerate(partitions)]
        return records, CreatableTopicResult(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(partitions),
            replication_factor=len(partitions[0].replicas),
            configs=self.configs.described_for_creation({c.name: c.value or "" for c in topic.configs}),
        )

    def _check_new_name(self, name: str, taken: dict[str, str]) -> None:
        if name == METADATA_TOPIC:
            message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            raise KafkaError(errors.INVALID_REQUEST, message)
        check_topic_name(name)
        if self.state.image.topic(name) is not None:
            raise KafkaError(errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if "." in name or "_" in name:
            key = collision_key(name)
            other = taken.get(key) or self.state.topic_names.find(name)
            if other is not None:
                message = f"Topic '{name}' collides with existing topic: {other}"
                raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, message)

    def _automatic_partitions(self, topic: CreatableTopic) -> list[PartitionRegistration]:
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            message = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(errors.INVALID_REPLICATION_FACTOR, message)
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            message = "Number of partitions was set to an invalid non-positive value."
            raise KafkaError(errors.INVALID_PARTITIONS, message)
        config = self.state.config
        count = topic.num_partitions if topic.num_partitions > 0 else config.get_int("num.partitions")
        factor = topic.replication_factor
        if factor == -1:
            factor = config.get_int("default.replication.factor")
        if count > PARTITIONS_PER_REQUEST_MAX:
            raise KafkaError(errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        return [self._new_partition(replicas) for replicas in self._place(count, factor)]

    def _place(self, count: int, factor: int) -> list[list[int]]:
        image = self.state.image
        usable = [
            UsableBroker(broker_id, broker.rack, broker.fenced)
            for broker_id, broker in sorted(image.brokers.items())
            if (broker.uncordoned_log_dirs() or not broker.log_dirs) and not _is_leaving(broker)
        ]
        try:
            return place_replicas(usable, count, factor, self.state.rng)
        except KafkaError as error:
            message = f"Unable to replicate the partition {factor} time(s): {error.message}"
            raise KafkaError(error.code, message) from None

    def _new_partition(self, replicas: list[int]) -> PartitionRegistration:
        isr = tuple(replica for replica in replicas if self.state.is_active(replica))
        directories = tuple(self.leadership.default_directory(replica) for replica in replicas)
        return PartitionRegistration(tuple(replicas), directories, isr, leader=isr[0] if isr else -1)

    def _manual_partitions(self, topic: CreatableTopic) -> list[PartitionRegistration]:
        prefix = "A manual partition assignment was specified, but "
        if topic.replication_factor != -1:
            raise KafkaError(errors.INVALID_REQUEST, prefix + "replication factor was not set to -1.")
        if topic.num_partitions != -1:
            raise KafkaError(errors.INVALID_REQUEST, prefix + "numPartitions was not set to -1.")
        partitions: dict[int, PartitionRegistration] = {}
        factor = -1
        for assignment in topic.assignments:
            index = assignment.partition_index
            if index in partitions:
                message = f"Found multiple manual partition assignments for partition {index}"
                raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, message)
            self.check_assignment(assignment.broker_ids, factor)
            factor = len(assignment.broker_ids)
            partition = self._new_partition(assignment.broker_ids)
            if not partition.isr:
                message = (
                    f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                    "controlled shutdown."
                )
                raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, message)
            partitions[index] = partition
        if sorted(partitions) != list(range(len(partitions))):
            message = "partitions should be a consecutive 0-based integer sequence"
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, message)
        return [partitions[index] for index in range(len(partitions))]

    def check_assignment(self, broker_ids: list[int], factor: int) -> None:
        """`factor` is the number of replicas of the partitions before, or -1."""
        prefix = "The manual partition assignment includes "
        problem = None
        ordered = sorted(broker_ids)
        unknown = [broker_id for broker_id in ordered if broker_id not in self.state.image.brokers]
        doubled = [a for a, b in pairwise(ordered) if a == b]
        if not broker_ids:
            problem = "an empty replica list."
        elif unknown:
            problem = f"broker {unknown[0]}, but no such broker is registered."
        elif doubled:
            problem = f"the broker {doubled[0]} more than once."
        elif factor >= 0 and len(broker_ids) != factor:
            problem = (
                f"a partition with {len(broker_ids)} replica(s), but this is not consistent with previous partitions, "
                f"which have {factor} replica(s)."
            )
        if problem is not None:
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, prefix + problem)

    # Deletion

    def delete(self, request: DeleteTopicsRequest, paid: MutationBudget, now_ms: int) -> Result:
        if not self.state.config.get_bool("delete.topic.enable"):
            raise KafkaError(errors.TOPIC_DELETION_DISABLED)
        records: list[VersionedRecord] = []
        response = DeleteTopicsResponse()
        wanted: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
        wanted += [(topic.name, topic.topic_id) for topic in request.topics]
        repeats = Counter(wanted)
        ids = {topic_id for name, topic_id in wanted if name is None}
        named_twice: set[bytes] = set()
        found: list[TopicImage] = []
        for name, topic_id in repeats:
            try:
                if repeats[name, topic_id] > 1:
                    what = "name" if name is not None else "id"
                    raise KafkaError(errors.INVALID_REQUEST, f"Duplicate topic {what}.")
                topic = self._find_for_deletion(name, topic_id)
            except KafkaError as error:
                response.responses.append(DeletableTopicResult(name, topic_id, error.code, error.message))
                continue
            if name is not None and topic.topic_id in ids:
                named_twice.add(topic.topic_id)
                message = "The provided topic name maps to an ID that was already supplied."
                response.responses.append(DeletableTopicResult(name, topic.topic_id, errors.INVALID_REQUEST, message))
                continue
            found.append(topic)
        for topic in found:
            if topic.topic_id in named_twice:
                continue
            try:
                paid.charge(len(topic.partitions), now_ms)
            except KafkaError as error:
                row = DeletableTopicResult(topic.name, topic.topic_id, error.code, _text(error))
                response.responses.append(row)
                continue
            records.append((RemoveTopicRecord(topic.topic_id), 0))
            response.responses.append(DeletableTopicResult(topic.name, topic.topic_id))
        return Result(records, response)

    def _find_for_deletion(self, name: str | None, topic_id: bytes) -> TopicImage:
        if name is None and topic_id == ZERO_UUID:
            raise KafkaError(errors.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if name is not None and topic_id != ZERO_UUID:
            raise KafkaError(errors.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if name is not None:
            topic = self.state.image.topic(name)
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
        else:
            topic = self.state.image.topic_by_id(topic_id)
            code = errors.UNKNOWN_TOPIC_ID
        if topic is None:
            raise KafkaError(code, default_text(code))
        return topic

    # More partitions

    def create_partitions(self, request: CreatePartitionsRequest, paid: MutationBudget, now_ms: int) -> Result:
        counts = Counter(topic.name for topic in request.topics)
        records: list[VersionedRecord] = []
        response = CreatePartitionsResponse()
        for name, count in counts.items():
            if count > 1:
                row = CreatePartitionsTopicResult(name, errors.INVALID_REQUEST, "Duplicate topic name.")
                response.results.append(row)
        for topic in request.topics:
            if counts[topic.name] > 1:
                continue
            try:
                added = self._add_partitions(topic, paid, now_ms)
            except KafkaError as error:
                message = None if error.code == errors.UNKNOWN_TOPIC_OR_PARTITION else _text(error)
                response.results.append(CreatePartitionsTopicResult(topic.name, error.code, message))
                continue
            response.results.append(CreatePartitionsTopicResult(topic.name))
            if not request.validate_only:
                records += added
        return Result(records, response)

    def _add_partitions(
        self, request: CreatePartitionsTopic, paid: MutationBudget, now_ms: int
    ) -> list[VersionedRecord]:
        topic = self.state.image.topic(request.name)
        if topic is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        current = len(topic.partitions)
        if request.count == current:
            raise KafkaError(errors.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
        if request.count < current:
            message = (
                f"The topic {topic.name} currently has {current} partition(s); {request.count} would not be an "
                "increase."
            )
            raise KafkaError(errors.INVALID_PARTITIONS, message)
        additional = request.count - current
        if additional > PARTITIONS_PER_REQUEST_MAX:
            raise KafkaError(errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        assignments = request.assignments
        if assignments is not None and len(assignments) != additional:
            message = (
                f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) "
                "were specified."
            )
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, message)
        paid.charge(additional, now_ms)
        factor = len(topic.partitions[0].replicas)
        if assignments is not None:
            placed = [list(assignment.broker_ids) for assignment in assignments]
            for replicas in placed:
                self.check_assignment(replicas, factor)
        else:
            placed = self._place(additional, factor)
        version = partition_version(self.state.image.metadata_version)
        records: list[VersionedRecord] = []
        for index, replicas in enumerate(placed, current):
            partition = self._new_partition(replicas)
            if not partition.isr:
                message = (
                    "All brokers specified in the manual partition assignment for partition "
                    f"{index} are fenced or in controlled shutdown."
                )
                raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, message)
            records.append((partition.to_record(topic.topic_id, index, version), version))
        return records


def _is_leaving(broker: BrokerRegistration) -> bool:
    """In controlled shutdown; once it is fenced it counts as any other fenced broker."""
    return broker.in_controlled_shutdown and not broker.fenced


def _text(error: KafkaError) -> str | None:
    """Whoever is refused for its quota gets the code alone, as from Kafka."""
    return None if error.code == errors.THROTTLING_QUOTA_EXCEEDED else error.message


def _creation_error(name: str, code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)
