"""The admin client: topics, partitions, configs, offsets, log directories and the cluster itself.

A method takes many items and returns one outcome per item; it raises only when the request as a whole could not be
carried out. Messages are imported where they are used: a command line that lists topics should not load the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, TypeVar

from moldau.client import config as settings
from moldau.client.cluster import Broker, Cluster, PartitionMetadata, TopicMetadata
from moldau.client.errors import ClientError, ClosedError, error_for
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.client.transport import Network
from moldau.protocol.errors import NONE, NOT_CONTROLLER, UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.primitives import Message

Answer = TypeVar("Answer", bound=Message)
T = TypeVar("T")

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

# Where a config value comes from, by the number in DescribeConfigs.
CONFIG_SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "cluster default",
    4: "file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
DEFAULT_CONFIG = 5

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3


class NewTopic(NamedTuple):
    """A topic to create; -1 leaves a number to the broker's defaults. assignment: the replicas of each partition."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = {}
    assignment: Sequence[Sequence[int]] = ()


class CreatedTopic(NamedTuple):
    """What a topic was created as; -1 where the broker did not say."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


class ConfigResource(NamedTuple):
    """Whose configs: a resource type (TOPIC, BROKER, ...) and a name; an empty broker name is the cluster default."""

    type: int
    name: str


class ConfigEntry(NamedTuple):
    """One config value and where it comes from."""

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool
    synonyms: list[tuple[str, str | None, int]]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source == DEFAULT_CONFIG


class ConfigChange(NamedTuple):
    """One change: operation SET, DELETE, APPEND or SUBTRACT."""

    name: str
    value: str | None
    operation: int = SET


class ClusterDescription(NamedTuple):
    """The cluster: its id, who leads it, its brokers; fenced brokers by id."""

    cluster_id: str
    controller_id: int
    brokers: list[Broker]
    fenced: set[int]


class ReplicaOnDisk(NamedTuple):
    """One replica in a log directory."""

    partition: TopicPartition
    size: int
    offset_lag: int
    is_future: bool


class LogDirectory(NamedTuple):
    """One log directory of a broker; -1 bytes: not known."""

    path: str
    error: ClientError | None
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaOnDisk]


class Admin:
    """Asks and changes the cluster; to be used by one thread."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        network: Network | None = None,
        first_contact_ms: int | None = None,
        config: Mapping[str, object] | None = None,
        **more: object,
    ) -> None:
        given = {**(config or {}), **more}
        if bootstrap_servers is not None:
            given["bootstrap.servers"] = (
                bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
            )
        read = settings.ClientConfig(settings.ADMIN, given)
        self._timeout_ms = read.get_int("default.api.timeout.ms")
        self._request_timeout_ms = read.get_int("request.timeout.ms")
        self._cluster = Cluster(read, network, first_contact_ms=first_contact_ms)
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._cluster.close()

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Topics

    def create_topics(
        self, topics: Iterable[NewTopic], validate_only: bool = False
    ) -> dict[str, Outcome[CreatedTopic]]:
        from moldau.protocol.messages import create_topics_request as asked
        from moldau.protocol.messages.create_topics_response import CreateTopicsResponse

        rows = [
            asked.CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.assignment else topic.partitions,
                replication_factor=-1 if topic.assignment else topic.replication_factor,
                assignments=[
                    asked.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                    for index, brokers in enumerate(topic.assignment)
                ],
                configs=[asked.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in topics
        ]
        request = asked.CreateTopicsRequest(
            topics=rows, timeout_ms=self._request_timeout_ms, validate_only=validate_only
        )
        answer = self._call(request, CreateTopicsResponse, lambda reply: [row.error_code for row in reply.topics])
        return {
            row.name: _outcome(
                row.error_code,
                row.error_message,
                CreatedTopic(row.name, row.topic_id, row.num_partitions, row.replication_factor),
            )
            for row in answer.topics
        }

    def delete_topics(self, names: Iterable[str]) -> dict[str, Outcome[None]]:
        from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
        from moldau.protocol.messages.delete_topics_response import DeleteTopicsResponse

        wanted = list(names)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in wanted],
            topic_names=wanted,
            timeout_ms=self._request_timeout_ms,
        )
        answer = self._call(request, DeleteTopicsResponse, lambda reply: [row.error_code for row in reply.responses])
        return {
            row.name: _outcome(row.error_code, _unknown_topic(row.error_code, row.name) or row.error_message, None)
            for row in answer.responses
            if row.name is not None
        }

    def list_topics(self) -> list[TopicMetadata]:
        """All topics that the user may see, by name."""
        self._check_open()
        self._cluster.refresh(None, self._timeout_ms)
        return sorted(self._cluster.topics.values())

    def describe_topics(self, names: Iterable[str]) -> dict[str, Outcome[TopicMetadata]]:
        self._check_open()
        outcomes: dict[str, Outcome[TopicMetadata]] = {}
        for name in names:
            try:
                outcomes[name] = Outcome(self._cluster.topic(name, self._timeout_ms))
            except ClientError as error:
                outcomes[name] = Outcome(error=error)
        return outcomes

    def create_partitions(
        self,
        counts: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
    ) -> dict[str, Outcome[None]]:
        """counts: how many partitions each topic has afterwards. assignments: the replicas of each new one."""
        from moldau.protocol.messages import create_partitions_request as asked
        from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse

        rows = []
        for name, count in counts.items():
            placed = (assignments or {}).get(name)
            given = None
            if placed is not None:
                given = [asked.CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in placed]
            rows.append(asked.CreatePartitionsTopic(name=name, count=count, assignments=given))
        request = asked.CreatePartitionsRequest(
            topics=rows, timeout_ms=self._request_timeout_ms, validate_only=validate_only
        )
        answer = self._call(request, CreatePartitionsResponse, lambda reply: [row.error_code for row in reply.results])
        return {row.name: _outcome(row.error_code, row.error_message, None) for row in answer.results}

    # Records and offsets

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, Outcome[int]]:
        """Deletes what lies before each offset (-1: everything); the values are the new first offsets."""
        from moldau.protocol.messages import delete_records_request as asked
        from moldau.protocol.messages.delete_records_response import DeleteRecordsResponse

        self._check_open()

        def ask(broker_id: int, items: list[TopicPartition]) -> dict[TopicPartition, Outcome[int]]:
            topics: dict[str, asked.DeleteRecordsTopic] = {}
            for item in items:
                topic = topics.setdefault(item.topic, asked.DeleteRecordsTopic(name=item.topic, partitions=[]))
                row = asked.DeleteRecordsPartition(partition_index=item.partition, offset=before[item])
                topic.partitions.append(row)
            request = asked.DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=self._request_timeout_ms)
            answer = self._cluster.ask_broker(request, DeleteRecordsResponse, self._request_timeout_ms, broker_id)
            return {
                TopicPartition(reply.name, row.partition_index): _outcome(row.error_code, None, row.low_watermark)
                for reply in answer.topics
                for row in reply.partitions
            }

        return self._cluster.ask_leaders(before, ask, self._timeout_ms)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: int = 0
    ) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
        """wanted: a timestamp or a special value of moldau.client.offsets (EARLIEST, LATEST, ...) per partition."""
        from moldau.client.offsets import list_offsets

        self._check_open()
        return list_offsets(self._cluster, wanted, self._timeout_ms, isolation)

    # Configs

    def describe_configs(
        self, resources: Iterable[ConfigResource], include_synonyms: bool = False, include_documentation: bool = False
    ) -> dict[ConfigResource, Outcome[list[ConfigEntry]]]:
        from moldau.protocol.messages import describe_configs_request as asked
        from moldau.protocol.messages.describe_configs_response import DescribeConfigsResponse

        outcomes: dict[ConfigResource, Outcome[list[ConfigEntry]]] = {}
        for broker_id, group in self._by_broker(resources).items():
            request = asked.DescribeConfigsRequest(
                resources=[
                    asked.DescribeConfigsResource(
                        resource_type=item.type, resource_name=item.name, configuration_keys=None
                    )
                    for item in group
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            answer = self._cluster.call(request, DescribeConfigsResponse, self._timeout_ms, broker_id)
            for row in answer.results:
                entries = [
                    ConfigEntry(
                        item.name,
                        item.value,
                        item.config_source,
                        item.read_only,
                        item.is_sensitive,
                        [(synonym.name, synonym.value, synonym.source) for synonym in item.synonyms],
                        item.documentation,
                    )
                    for item in row.configs
                ]
                resource = ConfigResource(row.resource_type, row.resource_name)
                outcomes[resource] = _outcome(row.error_code, row.error_message, entries)
        return outcomes

    def alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], validate_only: bool = False
    ) -> dict[ConfigResource, Outcome[None]]:
        """Changes single configs and leaves the others as they are (IncrementalAlterConfigs)."""
        from moldau.protocol.messages import incremental_alter_configs_request as asked
        from moldau.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

        outcomes: dict[ConfigResource, Outcome[None]] = {}
        for broker_id, group in self._by_broker(changes).items():
            request = asked.IncrementalAlterConfigsRequest(
                resources=[
                    asked.AlterConfigsResource(
                        resource_type=item.type,
                        resource_name=item.name,
                        configs=[
                            asked.AlterableConfig(
                                name=change.name, config_operation=change.operation, value=change.value
                            )
                            for change in changes[item]
                        ],
                    )
                    for item in group
                ],
                validate_only=validate_only,
            )
            answer = self._cluster.call(request, IncrementalAlterConfigsResponse, self._timeout_ms, broker_id)
            for row in answer.responses:
                resource = ConfigResource(row.resource_type, row.resource_name)
                outcomes[resource] = _outcome(row.error_code, row.error_message, None)
        return outcomes

    # The cluster

    def describe_cluster(self, include_fenced_brokers: bool = False) -> ClusterDescription:
        from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
        from moldau.protocol.messages.describe_cluster_response import DescribeClusterResponse

        self._check_open()
        request = DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)
        answer = self._cluster.call(request, DescribeClusterResponse, self._timeout_ms)
        if answer.error_code != NONE:
            raise error_for(answer.error_code, answer.error_message)
        return ClusterDescription(
            answer.cluster_id,
            answer.controller_id,
            sorted(Broker(row.broker_id, row.host, row.port, row.rack) for row in answer.brokers),
            {row.broker_id for row in answer.brokers if row.is_fenced},
        )

    def describe_log_directories(self, broker_ids: Iterable[int]) -> dict[int, Outcome[list[LogDirectory]]]:
        from moldau.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
        from moldau.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse

        self._check_open()
        self._cluster.refresh([], self._timeout_ms)
        outcomes: dict[int, Outcome[list[LogDirectory]]] = {}
        for broker_id in broker_ids:
            try:
                request = DescribeLogDirsRequest(topics=None)
                answer = self._cluster.ask_broker(request, DescribeLogDirsResponse, self._timeout_ms, broker_id)
            except ClientError as error:
                outcomes[broker_id] = Outcome(error=error)
                continue
            directories = [
                LogDirectory(
                    row.log_dir,
                    None if row.error_code == NONE else error_for(row.error_code),
                    row.total_bytes,
                    row.usable_bytes,
                    [
                        ReplicaOnDisk(
                            TopicPartition(topic.name, item.partition_index),
                            item.partition_size,
                            item.offset_lag,
                            item.is_future_key,
                        )
                        for topic in row.topics
                        for item in topic.partitions
                    ],
                )
                for row in answer.results
            ]
            outcomes[broker_id] = _outcome(answer.error_code, None, directories)
        return outcomes

    def partitions_of(self, topic: str) -> list[PartitionMetadata]:
        """The topic's partitions in order; raises where the topic does not exist."""
        found = self.describe_topics([topic])[topic].get()
        return [found.partitions[index] for index in sorted(found.partitions)]

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The admin client is closed.")

    def _call(self, request: Message, answer_class: type[Answer], codes: Callable[[Answer], list[int]]) -> Answer:
        """A call that any broker passes on to the controller; tried again while there is no controller."""
        self._check_open()
        network = self._cluster.network
        deadline_ms = network.now_ms() + self._timeout_ms
        failures = 0
        while True:
            answer = self._cluster.call(request, answer_class, max(1, deadline_ms - network.now_ms()))
            failures += 1
            delay_ms = self._cluster.backoff.delay_ms(failures)
            if NOT_CONTROLLER not in codes(answer) or network.now_ms() + delay_ms >= deadline_ms:
                return answer
            self._cluster.sleep(delay_ms)

    def _by_broker(self, resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
        """Configs of a broker are asked of that broker, all others of any."""
        self._check_open()
        groups: dict[int | None, list[ConfigResource]] = {}
        for item in resources:
            of_broker = item.type in (BROKER, BROKER_LOGGER) and item.name.isdigit()
            groups.setdefault(int(item.name) if of_broker else None, []).append(item)
        if any(broker_id is not None for broker_id in groups):
            self._cluster.refresh([], self._timeout_ms)
            for broker_id in list(groups):
                if broker_id is not None and broker_id not in self._cluster.brokers:
                    # Let any broker say that there is no such broker.
                    groups.setdefault(None, []).extend(groups.pop(broker_id))
        return groups


def _unknown_topic(code: int, name: str | None) -> str | None:
    return f"Topic {name} does not exist." if code == UNKNOWN_TOPIC_OR_PARTITION else None


def _outcome(code: int, message: str | None, value: T) -> Outcome[T]:
    return Outcome(value) if code == NONE else Outcome(error=error_for(code, message))
