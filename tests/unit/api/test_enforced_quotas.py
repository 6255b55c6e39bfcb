"""Quotas as clients feel them: the answer comes at once and says how long, and the connection is muted (KIP-219)."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.api import call as calls
from moldau.api.registry import BROKER_HANDLERS, FORWARDED
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.api_keys import BY_KEY, response_class, response_header_version
from moldau.protocol.messages import alter_client_quotas_request as alter
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Writer
from tests.unit.node.world import Asked, NodeWorld, batch, produce_request
from tests.unit.share.member import acquired
from tests.unit.share.node_world import ShareNode

ANONYMOUS = {"user": "ANONYMOUS"}
SECOND_NS = 1_000_000_000


@pytest.fixture
def world() -> NodeWorld:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    return world


def set_quota(world: NodeWorld, key: str, value: float | None, entity: dict[str, str | None] | None = None) -> None:
    whom = [alter.EntityData(kind, name) for kind, name in (entity or dict(ANONYMOUS)).items()]
    op = alter.OpData(key, 0.0 if value is None else value, value is None)
    answer = world.ask(alter.AlterClientQuotasRequest([alter.EntryData(whom, [op])]), 1)
    assert answer.entries[0].error_code == errors.NONE
    world.run(100)


def send_records(world: NodeWorld, size: int, acks: int = 1) -> Asked:
    return world.send(produce_request("t", 0, batch(world.now_ms, 1, bytes(size)), acks), 9)


def fetch(world: NodeWorld, offset: int = 0, **fields: Any) -> Asked:
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)]
    topics = [FetchTopic(topic="t", partitions=wanted)]
    return world.send(FetchRequest(**{"topics": topics, **values, **fields}), 12)


# Producers


def test_without_quotas_nobody_waits(world: NodeWorld) -> None:
    asked = send_records(world, 900_000)
    assert asked.response.throttle_time_ms == 0 and asked.reply.mute_ms == 0
    assert not world.node.quotas.produce.budgets


def test_a_producer_is_told_how_long_and_muted_for_as_long(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 1000)
    asked = send_records(world, 9000)
    assert (asked.response.throttle_time_ms, asked.reply.mute_ms) == (0, 0)
    asked = send_records(world, 9000)
    assert asked.response.throttle_time_ms == asked.reply.mute_ms
    # The whole request counts, header included, and nothing of it is refused.
    assert 8000 < asked.reply.mute_ms < 8500
    assert asked.response.responses[0].partition_responses[0].base_offset == 1


def test_a_producer_that_wants_no_answer_is_muted_all_the_same(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 1000)
    set_quota(world, "request_percentage", 0.01)
    world.context.unbilled_ns = SECOND_NS
    asked = send_records(world, 5000, acks=0)
    assert asked.reply.parts is None and asked.reply.mute_ms == 0, "time is not counted where nobody is told"
    asked = send_records(world, 15_000, acks=0)
    assert asked.reply.done and asked.reply.mute_ms > 5000
    assert world.node.quotas.exempt.total == SECOND_NS


def test_refused_records_count_too(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 1000)
    asked = world.send(produce_request("no such topic", 0, batch(0, 1, bytes(20_000))), 9)
    assert asked.response.responses[0].partition_responses[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert asked.reply.mute_ms > 0
    before = world.node.quotas.produce.budgets["ANONYMOUS", ""].rate.total
    asked = world.send(produce_request("no such topic", 0, batch(0, 1, bytes(20_000)), acks=0), 9)
    assert asked.reply.close_connection
    assert world.node.quotas.produce.budgets["ANONYMOUS", ""].rate.total > before + 20_000


def test_the_longer_one_of_both_quotas_counts(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 100_000)
    set_quota(world, "request_percentage", 1)
    world.context.unbilled_ns = SECOND_NS
    asked = send_records(world, 10)
    assert asked.reply.mute_ms == 1000
    quotas = world.node.quotas
    assert quotas.request.queue_size(world.now_ms) > 0 and quotas.produce.queue_size(world.now_ms) == 0


def test_changes_are_felt_at_once(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 1000)
    assert send_records(world, 20_000).reply.mute_ms > 0
    set_quota(world, "producer_byte_rate", 10_000)
    assert send_records(world, 10).reply.mute_ms == 0
    set_quota(world, "producer_byte_rate", 100)
    assert send_records(world, 10).reply.mute_ms > 0
    set_quota(world, "producer_byte_rate", None)
    assert send_records(world, 900_000).reply.mute_ms == 0
    assert not world.node.quotas.is_on


def test_the_user_is_the_principal_of_the_connection(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 1000, {"user": "alice"})
    assert send_records(world, 50_000).reply.mute_ms == 0
    world.context = ClientContext("PLAINTEXT", "127.0.0.1:5001")
    world.context.principal = "User:alice"
    assert send_records(world, 50_000).reply.mute_ms > 0
    world.context.principal = "User:bob"
    assert send_records(world, 50_000).reply.mute_ms == 0


def test_quotas_survive_a_restart_and_counts_do_not(world: NodeWorld) -> None:
    set_quota(world, "producer_byte_rate", 1000)
    assert send_records(world, 20_000).reply.mute_ms > 0
    world.stop()
    world.start()
    assert world.node.quotas.is_on
    assert send_records(world, 10).reply.mute_ms == 0
    assert send_records(world, 20_000).reply.mute_ms > 0


# Consumers


def test_a_consumer_over_its_quota_gets_an_empty_answer_and_the_records_later(world: NodeWorld) -> None:
    for _ in range(4):
        send_records(world, 6000)
    set_quota(world, "consumer_byte_rate", 1000)
    first = fetch(world).response
    assert first.throttle_time_ms == 0
    assert 6000 < first.responses[0].partitions[0].records.size < 10_000, "no more than fits into the window"
    throttled = fetch(world, 1)
    assert throttled.response.responses == [] and throttled.response.error_code == errors.NONE
    assert throttled.reply.mute_ms == throttled.response.throttle_time_ms > 0
    waits = 0
    while not throttled.response.responses:
        world.run(throttled.reply.mute_ms)
        throttled = fetch(world, 1)
        waits += 1
    assert throttled.response.responses[0].partitions[0].records.size > 6000
    assert waits < 12


def test_a_session_is_not_opened_by_an_answer_that_is_empty(world: NodeWorld) -> None:
    send_records(world, 6000)
    set_quota(world, "consumer_byte_rate", 1000)
    world.context.unbilled_ns = 0
    assert fetch(world).response.throttle_time_ms == 0
    opened = len(world.node.fetch_sessions)
    asked = fetch(world, session_epoch=0)
    assert asked.response.throttle_time_ms > 0 and asked.response.session_id == 0
    assert len(world.node.fetch_sessions) == opened


def test_a_session_tells_after_the_wait_what_it_would_have_told(world: NodeWorld) -> None:
    set_quota(world, "consumer_byte_rate", 1000)
    session = fetch(world, session_epoch=0).response.session_id
    assert session > 0
    send_records(world, 6000)
    assert fetch(world, session_id=session, session_epoch=1).response.responses[0].partitions[0].records.size > 0
    send_records(world, 6000)
    throttled = fetch(world, 1, session_id=session, session_epoch=2)
    assert throttled.response.session_id == session and throttled.response.responses == []
    again = fetch(world, 2, session_id=session, session_epoch=2)
    assert again.response.error_code == errors.INVALID_FETCH_SESSION_EPOCH, "the epoch went on"
    world.run(12_000)
    told = fetch(world, 2, session_id=session, session_epoch=3).response
    assert told.responses[0].partitions[0].high_watermark == 2, "what changed while it waited is still news"


def test_a_long_poll_is_counted_when_it_ends(world: NodeWorld) -> None:
    set_quota(world, "consumer_byte_rate", 1000)
    waiting = fetch(world, max_wait_ms=5000)
    assert not waiting.reply.done
    world.run(3000)
    send_records(world, 30_000)
    assert waiting.response.throttle_time_ms > 0 and waiting.response.responses == []


def test_followers_have_no_quota(world: NodeWorld) -> None:
    send_records(world, 20_000)
    set_quota(world, "consumer_byte_rate", 10)
    set_quota(world, "request_percentage", 0.01)
    world.run(20_000)
    world.context.unbilled_ns = SECOND_NS
    before = world.node.quotas.exempt.total
    asked = fetch(world, replica_id=5, replica_state=ReplicaState())
    assert asked.response.throttle_time_ms == 0 and asked.reply.mute_ms == 0
    assert world.node.quotas.exempt.total == before + SECOND_NS


# Request time


def test_time_is_billed_with_the_next_answer_whatever_the_request(world: NodeWorld) -> None:
    set_quota(world, "request_percentage", 1)
    request = MetadataRequest(topics=[])
    assert world.send(request, 12).reply.mute_ms == 0
    world.context.unbilled_ns = SECOND_NS
    asked = world.send(request, 12)
    assert (asked.response.throttle_time_ms, asked.reply.mute_ms, world.context.unbilled_ns) == (1000, 1000, 0)
    world.run(11_000)
    assert world.send(request, 12).reply.mute_ms == 0


def test_an_answer_without_the_field_is_followed_by_silence_too(world: NodeWorld) -> None:
    set_quota(world, "request_percentage", 1)
    world.context.unbilled_ns = SECOND_NS
    asked = world.send(ApiVersionsRequest(), 0)
    assert asked.response.api_keys and asked.reply.mute_ms == 1000


def test_what_is_left_at_the_end_of_a_connection_is_counted(world: NodeWorld) -> None:
    set_quota(world, "request_percentage", 1)
    world.send(MetadataRequest(topics=[]), 12)
    world.context.unbilled_ns = SECOND_NS
    world.context.closed(world.now_ms)
    world.context = ClientContext("PLAINTEXT", "127.0.0.1:5001")
    assert world.send(MetadataRequest(topics=[]), 12).reply.mute_ms > 0, "another connection of the same user"


def test_what_the_controller_decides_is_slowed_down_by_the_broker(world: NodeWorld) -> None:
    set_quota(world, "request_percentage", 1)
    world.context.unbilled_ns = SECOND_NS
    entry = alter.EntryData([alter.EntityData("user", "x")], [alter.OpData("producer_byte_rate", 5.0)])
    asked = world.send(alter.AlterClientQuotasRequest([entry]), 1)
    world.run(200)
    assert asked.response.throttle_time_ms == asked.reply.mute_ms == 1000


@pytest.mark.parametrize("api_key", sorted(FORWARDED & set(BROKER_HANDLERS)))
def test_the_field_of_an_encoded_answer_is_found_in_every_version(api_key: int) -> None:
    """Where the answer has it. The controller's number stays if it is the larger one."""
    api = BY_KEY[api_key]
    for version in range(api.lowest_version, api.highest_version + 1):
        flexible = response_header_version(api_key, version) > 0
        response: Any = response_class(api_key)()
        has_field = "throttle_time_ms" in response.FIELDS
        if has_field:
            response.throttle_time_ms = 70_000
        writer = Writer()
        writer.int32(7)
        if flexible:
            writer.uvarint(0)
        response.encode(writer, version)
        encoded = writer.to_bytes()
        assert calls.read_throttle(encoded, api_key, flexible) == (70_000 if has_field else 0)
        changed = calls.with_throttle(encoded, api_key, flexible, 90_000)
        assert calls.read_throttle(changed, api_key, flexible) == (90_000 if has_field else 0)
        assert calls.with_throttle(changed, api_key, flexible, 70_000) == encoded if has_field else changed == encoded


def test_the_responses_of_this_test_have_the_field() -> None:
    assert "throttle_time_ms" in FetchResponse.FIELDS and "throttle_time_ms" in MetadataResponse.FIELDS


# Share groups


def test_a_share_fetch_over_the_quota_acquires_nothing() -> None:
    """What was acquired is delivered, the wait comes after it; and a member that has to wait loses no lock to it."""
    node = ShareNode()
    node.fill(1, 1, 1, value=bytes(6000))
    member = node.join()
    set_quota(node.world, "consumer_byte_rate", 1000)
    first = member.fetch(node.place, max_wait_ms=2000, max_bytes=6500)
    assert acquired(first) == [(0, 0, 0, 1)] and first.throttle_time_ms == 0
    second = member.fetch(max_wait_ms=0, max_bytes=6500)
    assert acquired(second) == [(0, 1, 1, 1)] and second.throttle_time_ms > 0, "delivered, and counted"
    third = member.fetch(max_wait_ms=0, max_bytes=6500, said={node.place: [(0, 0, [1])]})
    assert acquired(third) == [] and third.throttle_time_ms > 0
    rows = [row for topic in third.responses for row in topic.partitions]
    assert [row.acknowledge_error_code for row in rows] == [errors.NONE], "what was acknowledged is told"
    node.world.run(25_000)
    assert acquired(member.fetch(max_wait_ms=0, max_bytes=6500)) == [(0, 2, 2, 1)], "for the first time"
