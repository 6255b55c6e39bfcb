"""Admin methods for topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import checked_int, checked_name, checked_names, checked_uuids
from moldau.client.admin.routing import RETRY_CONTROLLER, Deadline, Question, Target, check, outcome
from moldau.client.connection.cluster import UNKNOWN_TOPIC_TRIES, PartitionMetadata, TopicMetadata
from moldau.client.errors import ClientError, UnsupportedVersionError, error_for
from moldau.client.results import Outcome
from moldau.protocol.errors import (
    LEADER_NOT_AVAILABLE,
    NONE,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from moldau.protocol.uuids import uuid_to_text

if TYPE_CHECKING:
    from moldau.protocol.messages import describe_topic_partitions_response as described
    from moldau.protocol.messages.create_topics_request import CreatableTopic
    from moldau.protocol.messages.create_topics_response import CreateTopicsResponse

PARTITIONS_PER_PAGE = 2000
NOT_ASKED = -0x80000000


class NewTopic(NamedTuple):
    """A topic to create; -1 leaves a number to the broker's defaults. assignment: the replicas of each partition."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = {}
    assignment: Sequence[Sequence[int]] = ()


class CreatedTopic(NamedTuple):
    """What a topic was created as; -1 where the broker did not say. configs: its values, None where not allowed."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: dict[str, str | None] | None = None


class TopicAdmin(AdminCalls):
    """Topics and partitions."""

    def create_topics(
        self,
        topics: Iterable[NewTopic],
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[CreatedTopic]]:
        """Creates topics, or only asks whether they could be created."""
        from moldau.protocol.messages import create_topics_request as request_messages
        from moldau.protocol.messages.create_topics_response import CreateTopicsResponse

        deadline = self._start(timeout_ms)
        wanted = {topic.name: topic for topic in map(_checked_topic, topics)}

        def request(names: list[str]) -> request_messages.CreateTopicsRequest:
            return request_messages.CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names],
                timeout_ms=self._server_timeout_ms(deadline),
                validate_only=validate_only,
            )

        retry = _retry(retry_on_quota_violation)
        question = Question(request, CreateTopicsResponse, _read_created, retry)
        return self._ask_controller(list(wanted), question, deadline)

    def delete_topics(
        self, names: Iterable[str], retry_on_quota_violation: bool = True, timeout_ms: int | None = None
    ) -> dict[str, Outcome[None]]:
        """Deletes topics and all their records."""
        from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
        from moldau.protocol.messages.delete_topics_response import DeleteTopicsResponse

        deadline = self._start(timeout_ms)
        wanted = checked_names(names, "topics")

        def request(items: list[str]) -> DeleteTopicsRequest:
            # Versions before 6 have names alone, later ones have rows.
            return DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in items],
                topic_names=items,
                timeout_ms=self._server_timeout_ms(deadline),
            )

        def read(response: DeleteTopicsResponse, target: Target[str]) -> dict[str, Outcome[None]]:
            return {
                row.name: outcome(row.error_code, _unknown(row.error_code, row.name) or row.error_message, None)
                for row in response.responses
                if row.name is not None
            }

        question = Question(request, DeleteTopicsResponse, read, _retry(retry_on_quota_violation))
        return self._ask_controller(wanted, question, deadline)

    def delete_topics_by_id(
        self, topic_ids: Iterable[bytes], retry_on_quota_violation: bool = True, timeout_ms: int | None = None
    ) -> dict[bytes, Outcome[None]]:
        """Deletes topics by their ids, so that one that was made anew under the same name is left alone."""
        from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
        from moldau.protocol.messages.delete_topics_response import DeleteTopicsResponse

        deadline = self._start(timeout_ms)
        wanted = checked_uuids(topic_ids, "topics")

        def request(items: list[bytes]) -> DeleteTopicsRequest:
            rows = [DeleteTopicState(name=None, topic_id=item) for item in items]
            return DeleteTopicsRequest(topics=rows, timeout_ms=self._server_timeout_ms(deadline))

        def read(response: DeleteTopicsResponse, target: Target[bytes]) -> dict[bytes, Outcome[None]]:
            return {row.topic_id: outcome(row.error_code, row.error_message, None) for row in response.responses}

        question = Question(request, DeleteTopicsResponse, read, _retry(retry_on_quota_violation))
        return self._ask_controller(wanted, question, deadline)

    def list_topics(self, timeout_ms: int | None = None) -> list[TopicMetadata]:
        """All topics that the user may see, by name."""
        deadline = self._start(timeout_ms)
        self._cluster.refresh(None, deadline.remaining_ms)
        return sorted(self._cluster.topics.values())

    def describe_topics(
        self, names: Iterable[str], timeout_ms: int | None = None, partitions_per_page: int = PARTITIONS_PER_PAGE
    ) -> dict[str, Outcome[TopicMetadata]]:
        """Partitions, leaders and replicas; with eligible leader replicas where the broker tells them (KIP-966)."""
        deadline = self._start(timeout_ms)
        wanted = checked_names(names, "topics")
        outcomes: dict[str, Outcome[TopicMetadata]] = {}
        missing = wanted
        failures = 0
        while missing:
            try:
                outcomes.update(self._describe_by_pages(missing, deadline, partitions_per_page))
            except UnsupportedVersionError:
                return {name: self._describe_from_metadata(name, deadline) for name in wanted}
            failures += 1
            missing = [name for name in missing if _is_new(outcomes[name].error, failures)]
            if missing and not self._pause(failures, deadline):
                break
        return {name: outcomes[name] for name in wanted}

    def describe_topics_by_id(
        self, topic_ids: Iterable[bytes], timeout_ms: int | None = None
    ) -> dict[bytes, Outcome[TopicMetadata]]:
        """The topics that have these ids."""
        from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
        from moldau.protocol.messages.metadata_response import MetadataResponse

        deadline = self._start(timeout_ms)
        wanted = checked_uuids(topic_ids, "topics")
        if not wanted:
            return {}
        request = MetadataRequest(
            topics=[MetadataRequestTopic(topic_id=item, name=None) for item in wanted],
            allow_auto_topic_creation=False,
        )
        response = self._cluster.call(request, MetadataResponse, deadline.remaining_ms)
        self._cluster.replay_metadata(response, [])
        outcomes: dict[bytes, Outcome[TopicMetadata]] = {}
        for row in response.topics:
            name = self._cluster.topic_name(row.topic_id)
            if row.error_code not in (NONE, LEADER_NOT_AVAILABLE) or name is None:
                sentence = f"There is no topic with the id {uuid_to_text(row.topic_id)}."
                message = sentence if row.error_code == UNKNOWN_TOPIC_ID else None
                outcomes[row.topic_id] = Outcome(error=error_for(row.error_code or UNKNOWN_TOPIC_ID, message))
            else:
                outcomes[row.topic_id] = Outcome(self._cluster.topics[name])
        gone = error_for(UNKNOWN_TOPIC_ID)
        return {item: outcomes.get(item, Outcome(error=gone)) for item in wanted}

    def create_partitions(
        self,
        counts: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[None]]:
        """counts: how many partitions each topic has afterwards. assignments: the replicas of each new one."""
        from moldau.protocol.messages import create_partitions_request as request_messages
        from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse

        deadline = self._start(timeout_ms)
        placed = assignments or {}
        for name, count in counts.items():
            checked_int(count, f"the number of partitions of {checked_name(name, 'topics')}", 1)

        def request(names: list[str]) -> request_messages.CreatePartitionsRequest:
            rows = []
            for name in names:
                given = None
                if name in placed:
                    given = [
                        request_messages.CreatePartitionsAssignment(broker_ids=list(brokers))
                        for brokers in placed[name]
                    ]
                rows.append(request_messages.CreatePartitionsTopic(name=name, count=counts[name], assignments=given))
            wait_ms = self._server_timeout_ms(deadline)
            return request_messages.CreatePartitionsRequest(
                topics=rows, timeout_ms=wait_ms, validate_only=validate_only
            )

        def read(response: CreatePartitionsResponse, target: Target[str]) -> dict[str, Outcome[None]]:
            return {
                row.name: outcome(row.error_code, row.error_message or _unknown(row.error_code, row.name), None)
                for row in response.results
            }

        question = Question(request, CreatePartitionsResponse, read, _retry(retry_on_quota_violation))
        return self._ask_controller(list(counts), question, deadline)

    def partitions_of(self, topic: str) -> list[PartitionMetadata]:
        """The topic's partitions in order; raises where the topic does not exist."""
        found = self.describe_topics([topic])[topic].get()
        return [found.partitions[index] for index in sorted(found.partitions)]

    def _describe_by_pages(
        self, names: list[str], deadline: Deadline, partitions_per_page: int
    ) -> dict[str, Outcome[TopicMetadata]]:
        from moldau.protocol.messages import describe_topic_partitions_request as request_messages
        from moldau.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponse

        outcomes: dict[str, Outcome[TopicMetadata]] = {}
        rows = [request_messages.TopicRequest(name=name) for name in sorted(names)]
        cursor: request_messages.Cursor | None = None
        while rows:
            request = request_messages.DescribeTopicPartitionsRequest(
                topics=rows, response_partition_limit=partitions_per_page, cursor=cursor
            )
            page = self._call_any(request, DescribeTopicPartitionsResponse, deadline)
            for topic in page.topics:
                if topic.name is not None:
                    _add_page(outcomes, topic.name, topic)
            following = page.next_cursor
            if following is None:
                break
            if cursor is not None and (following.topic_name, following.partition_index) <= (
                cursor.topic_name,
                cursor.partition_index,
            ):
                check(-1, "The broker describes the same partitions again and again.")
            cursor = request_messages.Cursor(topic_name=following.topic_name, partition_index=following.partition_index)
            rows = [row for row in rows if row.name >= following.topic_name]
        for name in names:
            outcomes.setdefault(name, Outcome(error=error_for(-1, f"The broker's response leaves out {name}.")))
        return outcomes

    def _describe_from_metadata(self, name: str, deadline: Deadline) -> Outcome[TopicMetadata]:
        try:
            return Outcome(self._cluster.topic(name, deadline.remaining_ms))
        except ClientError as error:
            return Outcome(error=error)


def _add_page(
    outcomes: dict[str, Outcome[TopicMetadata]], name: str, row: described.DescribeTopicPartitionsResponseTopic
) -> None:
    """Takes over one topic of a page; the partitions of a large one come on several pages."""
    if row.error_code != NONE:
        error = error_for(row.error_code, _unknown(row.error_code, name))
        outcomes[name] = Outcome(error=error)
        return
    if name not in outcomes or outcomes[name].error is not None:
        asked = row.topic_authorized_operations != NOT_ASKED
        operations = row.topic_authorized_operations if asked else None
        outcomes[name] = Outcome(TopicMetadata(name, row.topic_id, row.is_internal, {}, operations))
    found = outcomes[name].get()
    for item in row.partitions:
        found.partitions[item.partition_index] = PartitionMetadata(
            name,
            item.partition_index,
            item.leader_id,
            item.leader_epoch,
            list(item.replica_nodes),
            list(item.isr_nodes),
            list(item.offline_replicas),
            item.eligible_leader_replicas,
            item.last_known_elr,
        )


def _is_new(error: ClientError | None, failures: int) -> bool:
    """A topic that was just created may not be known to every broker; its absence is believed the third time."""
    return error is not None and error.code == UNKNOWN_TOPIC_OR_PARTITION and failures < UNKNOWN_TOPIC_TRIES


def _checked_topic(topic: NewTopic) -> NewTopic:
    if not isinstance(topic, NewTopic):
        raise TypeError(f"create_topics() wants NewTopic(name, partitions, replication_factor), not {topic!r}.")
    checked_name(topic.name, "topics")
    checked_int(topic.partitions, f"the number of partitions of {topic.name}", -1)
    checked_int(topic.replication_factor, f"the replication factor of {topic.name}", -1, 0x7FFF)
    if topic.assignment and (topic.partitions != -1 or topic.replication_factor != -1):
        raise ValueError(f"Topic {topic.name}: the assignment says how many partitions and replicas there are.")
    return topic


def _creatable(topic: NewTopic) -> CreatableTopic:
    from moldau.protocol.messages import create_topics_request as request_messages

    return request_messages.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            request_messages.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(topic.assignment)
        ],
        configs=[
            request_messages.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _read_created(response: CreateTopicsResponse, target: Target[str]) -> dict[str, Outcome[CreatedTopic]]:
    outcomes: dict[str, Outcome[CreatedTopic]] = {}
    for row in response.topics:
        hidden = row.configs is None or row.topic_config_error_code != NONE
        configs = None if hidden else {item.name: item.value for item in row.configs or []}
        made = CreatedTopic(row.name, row.topic_id, row.num_partitions, row.replication_factor, configs)
        outcomes[row.name] = outcome(row.error_code, row.error_message, made)
    return outcomes


def _retry(retry_on_quota_violation: bool) -> frozenset[int]:
    return RETRY_CONTROLLER if retry_on_quota_violation else RETRY_CONTROLLER - {THROTTLING_QUOTA_EXCEEDED}


def _unknown(code: int, name: str | None) -> str | None:
    return f"Topic {name} does not exist." if code == UNKNOWN_TOPIC_OR_PARTITION else None
