"""Admin methods for where share groups start in each partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import (
    checked_group,
    checked_names,
    checked_offsets,
    checked_partitions_of_groups,
    topic_rows,
    topic_rows_or_all,
)
from moldau.client.admin.routing import (
    GROUP_COORDINATOR,
    RETRY_COORDINATOR,
    RETRY_NEW_TOPIC,
    Question,
    Target,
    outcome,
)
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors as codes

if TYPE_CHECKING:
    from moldau.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse

SharedOffsets = dict[TopicPartition, Outcome["SharePartitionOffset | None"]]


class SharePartitionOffset(NamedTuple):
    """Where a share group begins in a partition, and how many records are left to it; None: not known."""

    start_offset: int
    leader_epoch: int
    lag: int | None


class ShareOffsetAdmin(AdminCalls):
    """Start offsets of share groups."""

    def list_share_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], timeout_ms: int | None = None
    ) -> dict[str, Outcome[SharedOffsets]]:
        """The start offsets of each group: of the given partitions, or (None) of all. None: not begun yet."""
        from moldau.protocol.messages import describe_share_group_offsets_request as request_messages
        from moldau.protocol.messages.describe_share_group_offsets_response import (
            DescribeShareGroupOffsetsResponse,
        )

        deadline = self._start(timeout_ms)
        wanted = checked_partitions_of_groups(groups)

        def topic(name: str, indexes: list[int]) -> request_messages.DescribeShareGroupOffsetsRequestTopic:
            return request_messages.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes)

        def request(items: list[str]) -> request_messages.DescribeShareGroupOffsetsRequest:
            rows = [
                request_messages.DescribeShareGroupOffsetsRequestGroup(
                    group_id=group_id, topics=topic_rows_or_all(wanted[group_id], topic)
                )
                for group_id in items
            ]
            return request_messages.DescribeShareGroupOffsetsRequest(groups=rows)

        question = Question(request, DescribeShareGroupOffsetsResponse, _read_offsets, RETRY_COORDINATOR)
        return self._ask_each(list(wanted), self._route_to_coordinators(GROUP_COORDINATOR), question, deadline)

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Outcome[None]]:
        """Sets the start offsets of a share group that has no members at the moment."""
        from moldau.protocol.messages import alter_share_group_offsets_request as request_messages
        from moldau.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse

        deadline = self._start(timeout_ms)
        checked_group(group_id)
        wanted = checked_offsets(offsets, 0)

        def topic(name: str, indexes: list[int]) -> request_messages.AlterShareGroupOffsetsRequestTopic:
            rows = [
                request_messages.AlterShareGroupOffsetsRequestPartition(
                    partition_index=index, start_offset=offsets[TopicPartition(name, index)]
                )
                for index in indexes
            ]
            return request_messages.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=rows)

        def request(items: list[TopicPartition]) -> request_messages.AlterShareGroupOffsetsRequest:
            return request_messages.AlterShareGroupOffsetsRequest(group_id=group_id, topics=topic_rows(items, topic))

        def read(
            response: AlterShareGroupOffsetsResponse, target: Target[TopicPartition]
        ) -> dict[TopicPartition, Outcome[None]]:
            if response.error_code != codes.NONE:
                return target.all(outcome(response.error_code, response.error_message, None))
            return {
                TopicPartition(topic.topic_name, row.partition_index): outcome(row.error_code, row.error_message, None)
                for topic in response.responses
                for row in topic.partitions
            }

        question = Question(request, AlterShareGroupOffsetsResponse, read, RETRY_NEW_TOPIC)
        return self._ask_each(wanted, self._route_to_coordinator_of(group_id), question, deadline)

    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], timeout_ms: int | None = None
    ) -> dict[str, Outcome[None]]:
        """Forgets what a share group without members knows of topics."""
        from moldau.protocol.messages import delete_share_group_offsets_request as request_messages
        from moldau.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse

        deadline = self._start(timeout_ms)
        checked_group(group_id)
        wanted = checked_names(topics, "topics")

        def request(items: list[str]) -> request_messages.DeleteShareGroupOffsetsRequest:
            rows = [request_messages.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in items]
            return request_messages.DeleteShareGroupOffsetsRequest(group_id=group_id, topics=rows)

        def read(response: DeleteShareGroupOffsetsResponse, target: Target[str]) -> dict[str, Outcome[None]]:
            if response.error_code != codes.NONE:
                return target.all(outcome(response.error_code, response.error_message, None))
            return {row.topic_name: outcome(row.error_code, row.error_message, None) for row in response.responses}

        question = Question(request, DeleteShareGroupOffsetsResponse, read, RETRY_NEW_TOPIC)
        return self._ask_each(wanted, self._route_to_coordinator_of(group_id), question, deadline)


def _read_offsets(
    response: DescribeShareGroupOffsetsResponse, target: Target[str]
) -> dict[str, Outcome[SharedOffsets]]:
    outcomes: dict[str, Outcome[SharedOffsets]] = {}
    for group in response.groups:
        offsets: SharedOffsets = {}
        for topic in group.topics:
            for row in topic.partitions:
                found = None
                if row.start_offset >= 0:
                    lag = None if row.lag < 0 else row.lag
                    found = SharePartitionOffset(row.start_offset, row.leader_epoch, lag)
                partition = TopicPartition(topic.topic_name, row.partition_index)
                offsets[partition] = outcome(row.error_code, row.error_message, found)
        outcomes[group.group_id] = outcome(group.error_code, group.error_message, offsets)
    return outcomes
