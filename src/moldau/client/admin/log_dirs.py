"""Admin methods for log directories: what lies where, and moving replicas between the directories of a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import by_topic, checked_ids, checked_int, checked_name, checked_partitions
from moldau.client.admin.routing import CLIENT_SIDE, Question, Target, outcome
from moldau.client.errors import ClientError, error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol.errors import NONE

if TYPE_CHECKING:
    from moldau.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
    from moldau.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse


class TopicPartitionReplica(NamedTuple):
    """The replica of one partition on one broker."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker_id}"


class ReplicaOnDisk(NamedTuple):
    """One replica in a log directory; a future one is on its way into this directory."""

    partition: TopicPartition
    size: int
    offset_lag: int
    is_future: bool


class LogDirectory(NamedTuple):
    """One log directory of a broker; -1 bytes: not known. A cordoned one gets no new replicas."""

    path: str
    error: ClientError | None
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaOnDisk]
    is_cordoned: bool = False


class ReplicaLogDirInfo(NamedTuple):
    """Where a replica lies and where it is going; None: nowhere."""

    current_directory: str | None
    current_offset_lag: int
    future_directory: str | None
    future_offset_lag: int


class LogDirAdmin(AdminCalls):
    """Log directories."""

    def describe_log_dirs(
        self,
        broker_ids: Iterable[int],
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: int | None = None,
    ) -> dict[int, Outcome[list[LogDirectory]]]:
        """The log directories of each broker with all their replicas, or only those of these partitions."""
        from moldau.protocol.messages import describe_log_dirs_request as request_messages
        from moldau.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse

        deadline = self._start(timeout_ms)
        wanted = {broker_id: broker_id for broker_id in checked_ids(broker_ids, "a broker id")}
        topics = None
        if partitions is not None:
            topics = [
                request_messages.DescribableLogDirTopic(topic=name, partitions=indexes)
                for name, indexes in by_topic(checked_partitions(partitions)).items()
            ]

        def request(items: list[int]) -> request_messages.DescribeLogDirsRequest:
            return request_messages.DescribeLogDirsRequest(topics=topics)

        def read(response: DescribeLogDirsResponse, target: Target[int]) -> dict[int, Outcome[list[LogDirectory]]]:
            return target.all(outcome(response.error_code, None, _directories(response)))

        question = Question(request, DescribeLogDirsResponse, read, CLIENT_SIDE)
        return self._ask_each(list(wanted), self._route_to_brokers(wanted), question, deadline)

    def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], timeout_ms: int | None = None
    ) -> dict[TopicPartitionReplica, Outcome[ReplicaLogDirInfo]]:
        """In which directory each replica lies, and into which one it is being moved."""
        wanted = _checked_replicas(replicas)
        partitions = [TopicPartition(item.topic, item.partition) for item in wanted]
        brokers = self.describe_log_dirs({item.broker_id for item in wanted}, partitions, timeout_ms)
        outcomes: dict[TopicPartitionReplica, Outcome[ReplicaLogDirInfo]] = {}
        for item in wanted:
            found = brokers[item.broker_id]
            if found.error is not None:
                outcomes[item] = Outcome(error=found.error)
            else:
                outcomes[item] = Outcome(_locate(found.get(), TopicPartition(item.topic, item.partition)))
        return outcomes

    def alter_replica_log_dirs(
        self, assignment: Mapping[TopicPartitionReplica, str], timeout_ms: int | None = None
    ) -> dict[TopicPartitionReplica, Outcome[None]]:
        """Moves replicas to other directories of their broker (absolute paths), also in advance."""
        from moldau.protocol.messages import alter_replica_log_dirs_request as request_messages
        from moldau.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse

        deadline = self._start(timeout_ms)
        wanted = {item: item.broker_id for item in _checked_replicas(assignment)}
        for path in assignment.values():
            checked_name(path, "log directories")

        def request(items: list[TopicPartitionReplica]) -> request_messages.AlterReplicaLogDirsRequest:
            moved: dict[str, list[TopicPartition]] = {}
            for item in items:
                moved.setdefault(assignment[item], []).append(TopicPartition(item.topic, item.partition))
            dirs = [
                request_messages.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        request_messages.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                        for name, indexes in by_topic(partitions).items()
                    ],
                )
                for path, partitions in moved.items()
            ]
            return request_messages.AlterReplicaLogDirsRequest(dirs=dirs)

        question = Question(request, AlterReplicaLogDirsResponse, _read_moved, CLIENT_SIDE)
        return self._ask_each(list(wanted), self._route_to_brokers(wanted), question, deadline)


def _checked_replicas(replicas: Iterable[TopicPartitionReplica]) -> list[TopicPartitionReplica]:
    found = []
    for topic, partition, broker_id in dict.fromkeys(replicas):
        checked_name(topic, "topics")
        checked_int(partition, "a partition")
        found.append(TopicPartitionReplica(topic, partition, checked_int(broker_id, "a broker id")))
    return found


def _directories(response: DescribeLogDirsResponse) -> list[LogDirectory]:
    return [
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
            row.is_cordoned,
        )
        for row in response.results
    ]


def _locate(directories: list[LogDirectory], partition: TopicPartition) -> ReplicaLogDirInfo:
    current: tuple[str | None, int] = (None, -1)
    future: tuple[str | None, int] = (None, -1)
    for directory in directories:
        for replica in directory.replicas:
            if replica.partition == partition and replica.is_future:
                future = (directory.path, replica.offset_lag)
            elif replica.partition == partition:
                current = (directory.path, replica.offset_lag)
    return ReplicaLogDirInfo(*current, *future)


def _read_moved(
    response: AlterReplicaLogDirsResponse, target: Target[TopicPartitionReplica]
) -> dict[TopicPartitionReplica, Outcome[None]]:
    return {
        TopicPartitionReplica(topic.topic_name, row.partition_index, target.broker.id): outcome(
            row.error_code, None, None
        )
        for topic in response.results
        for row in topic.partitions
    }
