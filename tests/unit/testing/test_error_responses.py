"""A request of any API and version can be refused, and what refuses it is a response of that version."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from moldau.protocol.api_keys import APIS, Api, request_class, response_class
from moldau.protocol.api_table import FETCH, METADATA, PRODUCE
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import ProduceResponse
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.testing.error_responses import (
    ASKS_ONLY,
    build_response,
    check_can_fail,
    find_api,
    find_error,
    write_error,
)

CODE = errors.REQUEST_TIMED_OUT


def can_be_failed(api: Api) -> bool:
    try:
        check_can_fail(api)
    except ValueError:
        return False
    return api.on_broker and api.key not in ASKS_ONLY


def through_the_wire(message: Message, version: int) -> Message:
    writer = Writer()
    message.encode(writer, version)
    return type(message).decode(Reader(writer.to_bytes()), version)


@pytest.mark.parametrize("api", [api for api in APIS if can_be_failed(api)], ids=lambda api: api.name)
def test_every_version_can_be_refused(api: Api) -> None:
    for version in range(api.lowest_version, api.highest_stable_version + 1):
        request = request_class(api.key)()
        response = through_the_wire(build_response(api.key, version, request, CODE), version)
        assert type(response) is response_class(api.key)
        if "error_code" in response.FIELDS and getattr(response, "error_code", 0):
            assert response.error_code == CODE


@pytest.mark.parametrize("version", range(3, 14))
def test_each_partition_of_a_produce_is_refused(version: int) -> None:
    topic = TopicProduceData(partition_data=[PartitionProduceData(0), PartitionProduceData(7)])
    if version >= 13:
        topic.topic_id = bytes(15) + b"\x01"
    else:
        topic.name = "t"
    built = build_response(PRODUCE, version, ProduceRequest(topic_data=[topic]), CODE)
    response = through_the_wire(built, version)
    assert isinstance(response, ProduceResponse)
    (row,) = response.responses
    assert (row.name, row.topic_id) == (topic.name, topic.topic_id)
    assert [(each.index, each.error_code, each.base_offset) for each in row.partition_responses] == [
        (0, CODE, -1),
        (7, CODE, -1),
    ]


def test_a_fetch_of_a_session_is_sent_back_for_a_whole_one() -> None:
    part = build_response(FETCH, 12, FetchRequest(session_id=5, session_epoch=3), errors.OFFSET_OUT_OF_RANGE)
    assert isinstance(part, FetchResponse)
    assert part.error_code == errors.FETCH_SESSION_ID_NOT_FOUND
    whole = FetchRequest(session_epoch=0, topics=[FetchTopic("t", partitions=[FetchPartition(2)])])
    told = through_the_wire(build_response(FETCH, 12, whole, errors.OFFSET_OUT_OF_RANGE), 12)
    assert isinstance(told, FetchResponse)
    assert told.error_code == errors.NONE
    assert [row.error_code for topic in told.responses for row in topic.partitions] == [errors.OFFSET_OUT_OF_RANGE]


def test_the_brokers_own_answer_gets_the_error_in_its_rows() -> None:
    topic = MetadataResponseTopic(name="t", partitions=[MetadataResponsePartition()])
    answer = MetadataResponse(topics=[topic])
    assert METADATA in ASKS_ONLY
    assert write_error(answer, errors.LEADER_NOT_AVAILABLE)
    assert (answer.error_code, topic.error_code, topic.partitions) == (errors.NONE, errors.LEADER_NOT_AVAILABLE, [])


def test_names_are_found_in_any_spelling_and_others_are_explained() -> None:
    assert find_api("produce").key == find_api("Produce").key == find_api(0).key == PRODUCE
    assert find_api("find_coordinator").name == "FindCoordinator"
    assert find_error("not_leader_or_follower") == find_error(6) == errors.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ValueError, match=r"there is no API 'Producer'; did you mean one of: Produce\b"):
        find_api("Producer")
    with pytest.raises(ValueError, match="did you mean one of: NOT_LEADER_OR_FOLLOWER"):
        find_error("NOT_LEADER")
    with pytest.raises(ValueError, match="there is no error"):
        find_error(0)
    with pytest.raises(ValueError, match="cannot be failed"):
        check_can_fail(find_api("WriteTxnMarkers"))
