"""The five requests about the state of share partitions: rows by partition into a request, and out of its response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.protocol import api_table as api
from moldau.protocol.errors import KafkaError, default_text
from moldau.protocol.messages import delete_share_group_state_request as delete_request
from moldau.protocol.messages import delete_share_group_state_response as delete_response
from moldau.protocol.messages import initialize_share_group_state_request as initialize_request
from moldau.protocol.messages import initialize_share_group_state_response as initialize_response
from moldau.protocol.messages import read_share_group_state_request as read_request
from moldau.protocol.messages import read_share_group_state_response as read_response
from moldau.protocol.messages import read_share_group_state_summary_request as summary_request
from moldau.protocol.messages import read_share_group_state_summary_response as summary_response
from moldau.protocol.messages import write_share_group_state_request as write_request
from moldau.protocol.messages import write_share_group_state_response as write_response
from moldau.protocol.primitives import Message

INITIALIZE: Final = api.INITIALIZE_SHARE_GROUP_STATE
READ: Final = api.READ_SHARE_GROUP_STATE
WRITE: Final = api.WRITE_SHARE_GROUP_STATE
DELETE: Final = api.DELETE_SHARE_GROUP_STATE
SUMMARY: Final = api.READ_SHARE_GROUP_STATE_SUMMARY


class Row:
    """What a response says of one partition."""

    __slots__ = ("error_code", "error_message", "message")

    def __init__(self, error_code: int, error_message: str | None, message: Message) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.message = message


# What a request, and the response to it, is made of: itself and the part about a topic.
REQUESTS: Final = {
    INITIALIZE: (initialize_request.InitializeShareGroupStateRequest, initialize_request.InitializeStateData),
    READ: (read_request.ReadShareGroupStateRequest, read_request.ReadStateData),
    WRITE: (write_request.WriteShareGroupStateRequest, write_request.WriteStateData),
    SUMMARY: (summary_request.ReadShareGroupStateSummaryRequest, summary_request.ReadStateSummaryData),
    DELETE: (delete_request.DeleteShareGroupStateRequest, delete_request.DeleteStateData),
}
RESPONSES: Final = {
    INITIALIZE: (initialize_response.InitializeShareGroupStateResponse, initialize_response.InitializeStateResult),
    READ: (read_response.ReadShareGroupStateResponse, read_response.ReadStateResult),
    WRITE: (write_response.WriteShareGroupStateResponse, write_response.WriteStateResult),
    SUMMARY: (summary_response.ReadShareGroupStateSummaryResponse, summary_response.ReadStateSummaryResult),
    DELETE: (delete_response.DeleteShareGroupStateResponse, delete_response.DeleteStateResult),
}
ROWS: Final = {
    INITIALIZE: initialize_response.PartitionResult,
    READ: read_response.PartitionResult,
    WRITE: write_response.PartitionResult,
    SUMMARY: summary_response.PartitionResult,
    DELETE: delete_response.PartitionResult,
}

Result = tuple[SharePartitionKey, Message | KafkaError]
"""What was said of a share partition."""


def by_topic(rows: list[tuple[SharePartitionKey, Message]]) -> dict[bytes, list[Message]]:
    topics: dict[bytes, list[Message]] = {}
    for key, row in rows:
        topics.setdefault(key[1], []).append(row)
    return topics


def request_for(kind: int, group_id: str, rows: list[tuple[SharePartitionKey, Message]]) -> Message:
    # The five are alike, but of types of their own.
    request, of_topic = cast(tuple[Callable[..., Message], Callable[..., Message]], REQUESTS[kind])
    return request(group_id, [of_topic(topic_id, found) for topic_id, found in by_topic(rows).items()])


def response_for(kind: int, results: list[Result]) -> Message:
    """An error becomes a row that tells it."""
    response, of_topic = cast(tuple[Callable[..., Message], Callable[..., Message]], RESPONSES[kind])
    row = cast(Callable[..., Message], ROWS[kind])
    rows = [
        (key, row(key[2], result.code, str(result) or default_text(result.code)))
        if isinstance(result, KafkaError)
        else (key, result)
        for key, result in results
    ]
    return response([of_topic(topic_id, found) for topic_id, found in by_topic(rows).items()])


StateResponse = (
    initialize_response.InitializeShareGroupStateResponse
    | write_response.WriteShareGroupStateResponse
    | read_response.ReadShareGroupStateResponse
    | summary_response.ReadShareGroupStateSummaryResponse
    | delete_response.DeleteShareGroupStateResponse
)


def rows_of(kind: int, response: Message) -> dict[tuple[bytes, int], Row]:
    """By topic id and partition."""
    assert isinstance(response, StateResponse), f"{type(response).__name__} is no response about share group states"
    found: dict[tuple[bytes, int], Row] = {}
    for topic in response.results:
        for row in topic.partitions:
            found[(topic.topic_id, row.partition)] = Row(row.error_code, row.error_message, row)
    return found
