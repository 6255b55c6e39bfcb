"""Admin methods for records: delete them, find offsets."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.admin.calls import AdminCalls
from moldau.client.admin.checks import by_topic, checked_offsets
from moldau.client.admin.routing import RETRY_LEADER, Question, Target, outcome
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition

SPECIAL_LOWEST = -6


class RecordAdmin(AdminCalls):
    """Records and their offsets."""

    def delete_records(
        self, before: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, Outcome[int]]:
        """Deletes what lies before each offset (-1: everything); the values are the new first offsets."""
        from moldau.protocol.messages import delete_records_request as request_messages
        from moldau.protocol.messages.delete_records_response import DeleteRecordsResponse

        deadline = self._start(timeout_ms)
        wanted = checked_offsets(before, -1)

        def request(items: list[TopicPartition]) -> request_messages.DeleteRecordsRequest:
            topics = [
                request_messages.DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        request_messages.DeleteRecordsPartition(
                            partition_index=index, offset=before[TopicPartition(name, index)]
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in by_topic(items).items()
            ]
            return request_messages.DeleteRecordsRequest(topics=topics, timeout_ms=self._server_timeout_ms(deadline))

        def read(response: DeleteRecordsResponse, target: Target[TopicPartition]) -> dict[TopicPartition, Outcome[int]]:
            return {
                TopicPartition(topic.name, row.partition_index): outcome(row.error_code, None, row.low_watermark)
                for topic in response.topics
                for row in topic.partitions
            }

        question = Question(request, DeleteRecordsResponse, read, RETRY_LEADER)
        return self._ask_each(wanted, self._route_to_leaders, question, deadline)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], isolation: int = 0, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
        """wanted: a timestamp or a special value of moldau.client.offsets (EARLIEST, LATEST, ...) per partition."""
        from moldau.client.offsets import list_offsets

        deadline = self._start(timeout_ms)
        checked_offsets(wanted, SPECIAL_LOWEST)
        return list_offsets(self._cluster, wanted, deadline.remaining_ms, isolation)
