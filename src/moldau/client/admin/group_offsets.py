"""Admin methods for the offsets that groups of consumers, streams and share consumers have committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import (
    checked_group,
    checked_int,
    checked_partitions,
    checked_partitions_of_groups,
    topic_rows,
    topic_rows_or_all,
)
from moldau.client.admin.groups import group_sentence
from moldau.client.admin.routing import (
    GROUP_COORDINATOR,
    RETRY_COORDINATOR,
    RETRY_NEW_TOPIC,
    Question,
    Target,
    outcome,
)
from moldau.client.errors import error_for
from moldau.client.results import OffsetAndMetadata, Outcome, TopicPartition
from moldau.protocol import errors as codes
from moldau.protocol.integers import LONG_MAX

if TYPE_CHECKING:
    from moldau.protocol.messages.offset_commit_request import OffsetCommitRequestTopic
    from moldau.protocol.messages.offset_fetch_response import OffsetFetchResponse

# From version 10 on topics are named by their ids, which the caller would have to look up first.
NAMES_VERSION = 9

Offsets = dict[TopicPartition, Outcome[OffsetAndMetadata | None]]


class GroupOffsetAdmin(AdminCalls):
    """Committed offsets."""

    def list_consumer_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[Offsets]]:
        """The committed offsets of each group: of the given partitions, or (None) of all that have one.

        A partition without a committed offset has the value None. require_stable waits until no transaction is open
        that might still commit offsets.
        """
        from moldau.protocol.messages import offset_fetch_request as request_messages
        from moldau.protocol.messages.offset_fetch_response import OffsetFetchResponse

        deadline = self._start(timeout_ms)
        wanted = checked_partitions_of_groups(groups)

        def topic(name: str, indexes: list[int]) -> request_messages.OffsetFetchRequestTopics:
            return request_messages.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)

        def request(items: list[str]) -> request_messages.OffsetFetchRequest:
            rows = [
                request_messages.OffsetFetchRequestGroup(
                    group_id=group_id, topics=topic_rows_or_all(wanted[group_id], topic)
                )
                for group_id in items
            ]
            return request_messages.OffsetFetchRequest(groups=rows, require_stable=require_stable)

        retry = RETRY_COORDINATOR | {codes.UNSTABLE_OFFSET_COMMIT}
        question = Question(request, OffsetFetchResponse, _read_offsets, retry, NAMES_VERSION)
        return self._ask_each(list(wanted), self._route_to_coordinators(GROUP_COORDINATOR), question, deadline)

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Outcome[None]]:
        """Commits offsets in the place of a group that has no members at the moment."""
        from moldau.protocol.messages.offset_commit_request import OffsetCommitRequest
        from moldau.protocol.messages.offset_commit_response import OffsetCommitResponse

        deadline = self._start(timeout_ms)
        checked_group(group_id)
        wanted = checked_partitions(offsets)
        given = {partition: _checked_offset(partition, offset) for partition, offset in offsets.items()}

        def request(items: list[TopicPartition]) -> OffsetCommitRequest:
            return OffsetCommitRequest(group_id=group_id, topics=_commit_rows(items, given))

        def read(response: OffsetCommitResponse, target: Target[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
            outcomes: dict[TopicPartition, Outcome[None]] = {}
            for topic in response.topics:
                for row in topic.partitions:
                    message = None
                    if row.error_code == codes.UNKNOWN_MEMBER_ID:
                        message = f"Group {group_id} has members: stop them before changing its offsets."
                    partition = TopicPartition(topic.name, row.partition_index)
                    outcomes[partition] = outcome(row.error_code, message, None)
            return outcomes

        retry = RETRY_NEW_TOPIC | {codes.REBALANCE_IN_PROGRESS}
        question = Question(request, OffsetCommitResponse, read, retry, NAMES_VERSION)
        return self._ask_each(wanted, self._route_to_coordinator_of(group_id), question, deadline)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Outcome[None]]:
        """Forgets committed offsets of topics that no member of the group reads."""
        from moldau.protocol.messages import offset_delete_request as request_messages
        from moldau.protocol.messages.offset_delete_response import OffsetDeleteResponse

        deadline = self._start(timeout_ms)
        checked_group(group_id)
        wanted = checked_partitions(partitions)

        def topic(name: str, indexes: list[int]) -> request_messages.OffsetDeleteRequestTopic:
            rows = [request_messages.OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            return request_messages.OffsetDeleteRequestTopic(name=name, partitions=rows)

        def request(items: list[TopicPartition]) -> request_messages.OffsetDeleteRequest:
            return request_messages.OffsetDeleteRequest(group_id=group_id, topics=topic_rows(items, topic))

        def read(response: OffsetDeleteResponse, target: Target[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
            if response.error_code != codes.NONE:
                return target.all(outcome(response.error_code, group_sentence(response.error_code, group_id), None))
            return {
                TopicPartition(topic.name, row.partition_index): outcome(row.error_code, None, None)
                for topic in response.topics
                for row in topic.partitions
            }

        question = Question(request, OffsetDeleteResponse, read, RETRY_COORDINATOR)
        return self._ask_each(wanted, self._route_to_coordinator_of(group_id), question, deadline)

    # A streams group commits as a consumer group does.

    def list_streams_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Outcome[Offsets]]:
        """As list_consumer_group_offsets(), for streams groups."""
        return self.list_consumer_group_offsets(groups, require_stable, timeout_ms)

    def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Outcome[None]]:
        """As alter_consumer_group_offsets(), for a streams group."""
        return self.alter_consumer_group_offsets(group_id, offsets, timeout_ms)

    def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Outcome[None]]:
        """As delete_consumer_group_offsets(), for a streams group."""
        return self.delete_consumer_group_offsets(group_id, partitions, timeout_ms)


def _read_offsets(response: OffsetFetchResponse, target: Target[str]) -> dict[str, Outcome[Offsets]]:
    outcomes: dict[str, Outcome[Offsets]] = {}
    for group in response.groups:
        offsets: Offsets = {}
        unstable = False
        for topic in group.topics:
            for row in topic.partitions:
                partition = TopicPartition(topic.name, row.partition_index)
                unstable = unstable or row.error_code == codes.UNSTABLE_OFFSET_COMMIT
                if row.error_code != codes.NONE:
                    offsets[partition] = Outcome(error=error_for(row.error_code))
                elif row.committed_offset < 0:
                    offsets[partition] = Outcome(None)
                else:
                    found = OffsetAndMetadata(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
                    offsets[partition] = Outcome(found)
        # A transaction that may still commit offsets makes the whole group's response one to ask for again.
        code = codes.UNSTABLE_OFFSET_COMMIT if unstable else group.error_code
        outcomes[group.group_id] = outcome(code, group_sentence(code, group.group_id), offsets)
    return outcomes


def _checked_offset(partition: TopicPartition, given: OffsetAndMetadata | int) -> OffsetAndMetadata:
    found = OffsetAndMetadata(given) if isinstance(given, int) else given
    checked_int(found.offset, f"the offset of {partition}", 0, LONG_MAX)
    checked_int(found.leader_epoch, f"the leader epoch of {partition}", -1)
    return found


def _commit_rows(
    items: list[TopicPartition], given: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[OffsetCommitRequestTopic]:
    from moldau.protocol.messages.offset_commit_request import (
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    def topic(name: str, indexes: list[int]) -> OffsetCommitRequestTopic:
        rows = []
        for index in indexes:
            found = given[TopicPartition(name, index)]
            rows.append(
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=found.offset,
                    committed_leader_epoch=found.leader_epoch,
                    committed_metadata=found.metadata,
                )
            )
        return OffsetCommitRequestTopic(name=name, partitions=rows)

    return topic_rows(items, topic)
