"""Envelopes: what a controller takes out of them, and what it refuses."""

from __future__ import annotations

import pytest

from moldau.node.context import ClientContext
from moldau.node.envelope import address_of, pack, unpack_context
from moldau.protocol import api_table as api
from moldau.protocol import errors
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.envelope_request import EnvelopeRequest
from moldau.protocol.messages.envelope_response import EnvelopeResponse
from moldau.protocol.messages.headers import ResponseHeader
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import Reader
from tests.unit.node.cluster import Cluster, frame_of
from tests.unit.node.world import NodeWorld

CLIENT = ClientContext("PLAINTEXT", "192.168.7.9:40123")
CREATE = CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)], timeout_ms=1000)


@pytest.fixture
def world() -> NodeWorld:
    world = NodeWorld().start()
    world.context = ClientContext("CONTROLLER", "10.0.0.2:3", True)
    return world


def ask(world: NodeWorld, envelope: EnvelopeRequest) -> EnvelopeResponse:
    response = world.ask(envelope, 0)
    assert isinstance(response, EnvelopeResponse)
    return response


def test_the_request_inside_is_run_and_its_answer_has_its_own_header(world: NodeWorld) -> None:
    answer = ask(world, pack(CLIENT, frame_of(CREATE, 7, correlation_id=4711)))
    assert answer.error_code == errors.NONE and answer.response_data is not None
    reader = Reader(answer.response_data)
    assert ResponseHeader.decode(reader, 1).correlation_id == 4711
    assert CreateTopicsResponse.decode(reader, 7).topics[0].error_code == errors.NONE
    assert "t" in world.node.image.topics_by_name


def test_who_asked_travels_along() -> None:
    client = ClientContext("PLAINTEXT", "192.168.7.9:40123")
    client.principal = "User:anna:of:colons"
    seen = unpack_context("CONTROLLER", pack(client, b""))
    assert (seen.principal, seen.peer, seen.is_controller_listener) == ("User:anna:of:colons", "192.168.7.9:0", True)


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("127.0.0.1:9", bytes([127, 0, 0, 1])),
        ("::1:9", bytes(15) + b"\1"),
        ("[fe80::1]:9", b"\xfe\x80" + bytes(13) + b"\1"),
        ("a name:9", bytes(4)),
    ],
)
def test_an_address_is_four_or_sixteen_bytes(peer: str, address: bytes) -> None:
    assert address_of(peer) == address


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (EnvelopeRequest(frame_of(CREATE, 7), None, bytes(4)), errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(frame_of(CREATE, 7), b"\0\7ab", bytes(4)), errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(frame_of(CREATE, 7), pack(CLIENT, b"").request_principal, bytes(5)), errors.INVALID_REQUEST),
        (pack(CLIENT, frame_of(MetadataRequest(topics=[]), 12)), errors.INVALID_REQUEST),
        (pack(CLIENT, b"\0\x13\0\x63" + frame_of(CREATE, 7)[4:]), errors.UNSUPPORTED_VERSION),
        (pack(CLIENT, frame_of(CREATE, 7)[:-3]), errors.INVALID_REQUEST),
        (pack(CLIENT, b""), errors.INVALID_REQUEST),
        (pack(CLIENT, b"\x7f\xff\0\0\0\0\0\0"), errors.INVALID_REQUEST),
    ],
    ids=["no principal", "bad principal", "bad address", "not forwarded", "version", "cut off", "empty", "no such api"],
)
def test_an_envelope_that_is_not_in_order_is_refused(world: NodeWorld, envelope: EnvelopeRequest, code: int) -> None:
    answer = ask(world, envelope)
    assert (answer.error_code, answer.response_data) == (code, None)
    assert "t" not in world.node.image.topics_by_name


def test_a_controller_that_is_not_active_says_so_on_the_envelope_and_not_inside() -> None:
    cluster = Cluster().start()
    other = next(member for member in cluster.up() if member is not cluster.active())
    context = ClientContext("CONTROLLER", "10.0.0.2:3", True)
    answer = other.ask(pack(CLIENT, frame_of(CREATE, 7)), 0, context)
    assert (answer.error_code, answer.response_data) == (errors.NOT_CONTROLLER, None)
    plain = other.ask(CREATE, 7, context)
    assert plain.topics[0].error_code == errors.NOT_CONTROLLER


def test_an_envelope_is_not_taken_on_a_brokers_listener(world: NodeWorld) -> None:
    from moldau.api.registry import handled_keys

    assert api.ENVELOPE not in handled_keys(on_controller_listener=False)
