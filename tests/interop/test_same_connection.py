"""Moldau and Apache Kafka treat a connection alike: ApiVersions, headers, what closes it, order of replies."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from moldau.protocol import api_keys, errors
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.vote_request import VoteRequest
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.interop.wire import CLOSED, Wire, plain

# The apis that one node offers; groups and transactions come later and are offered when they work.
OFFERED = {
    "ApiVersions",
    "Metadata",
    "DescribeTopicPartitions",
    "DescribeCluster",
    "Produce",
    "Fetch",
    "ListOffsets",
    "OffsetForLeaderEpoch",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "DeleteRecords",
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "ListConfigResources",
    "DescribeLogDirs",
    "InitProducerId",
    "DescribeProducers",
    "UpdateFeatures",
    "DescribeQuorum",
}
OFFERED_KEYS = {api.key for api in api_keys.APIS if api.name in OFFERED}


def software(name: str = "wire", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


def versions_request(version: int) -> ApiVersionsRequest:
    return software() if version >= 3 else ApiVersionsRequest()


@pytest.mark.parametrize("controller", [False, True], ids=["broker", "controller"])
@pytest.mark.parametrize("version", range(5))
def test_api_versions(same: Same, version: int, controller: bool) -> None:
    """Keys, version ranges and features are the same for everything that one node offers."""

    def scenario(peer: Peer) -> Any:
        answer = plain(peer.ask(versions_request(version), version, controller=controller))
        answer["api_keys"] = [row for row in answer["api_keys"] if row["api_key"] in OFFERED_KEYS]
        answer["finalized_features_epoch"] = answer["finalized_features_epoch"] >= 0
        for features in ("supported_features", "finalized_features"):
            answer[features] = sorted(answer[features], key=lambda row: str(row["name"]))
        for row in answer["supported_features"]:
            if row["name"] == "share.version":
                row["max_version"] = min(row["max_version"], 1)  # 2 is of Kafka 4.4: dead letters
        return answer

    answer = same(scenario)
    assert answer["error_code"] == 0
    assert controller or {row["api_key"] for row in answer["api_keys"]} == OFFERED_KEYS


def test_every_offered_range_is_kafkas(oracle: Any, moldau_server: Any) -> None:
    """Nothing is offered that Kafka does not offer, and no range differs."""
    ranges = []
    for node in (oracle, moldau_server):
        peer = Peer(node)
        rows = peer.ask(software(), 4).api_keys
        ranges.append({row.api_key: (row.min_version, row.max_version) for row in rows})
        peer.close()
    kafka, moldau = ranges
    assert {key: kafka.get(key) for key in moldau} == moldau


@pytest.mark.parametrize("version", [5, 99])
def test_api_versions_of_the_future_is_answered_in_version_0(same: Same, version: int) -> None:
    """The frame is the same byte for byte, and the connection stays open."""

    def scenario(peer: Peer) -> Any:
        with peer.connect() as wire:
            wire.send_frame(struct.pack(">hhih4s", 18, version, 77, 4, b"wire") + b"\0" + b"\2x\2y\0")
            frame = wire.receive_frame()
            wire.correlation_id = 7
            again = wire.ask(ApiVersionsRequest(), 0)
            return frame, again.error_code

    frame, again = same(scenario)
    assert struct.unpack_from(">ih", frame) == (77, errors.UNSUPPORTED_VERSION)
    assert again == 0


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1.0"), ("wire", ""), ("-wire", "1"), ("wi re", "1"), ("wire", "1.0-"), ("w", "a"), ("w.-1", "2-b")],
)
def test_client_software_names_are_checked(same: Same, name: str, version: str) -> None:
    """KIP-511: a name or version that does not look like one is INVALID_REQUEST."""

    def scenario(peer: Peer) -> Any:
        answer = peer.ask(software(name, version), 4)
        return answer if answer == CLOSED else (answer.error_code, len(answer.api_keys) > 0)

    same(scenario)


def closes(peer: Peer, frame: bytes, controller: bool = False) -> str:
    """Sends one frame; tells whether the connection was closed, and that the node still answers others."""
    with peer.connect(controller) as wire:
        wire.send_frame(frame)
        answer = wire.receive_frame()
    alive = peer.ask(ApiVersionsRequest(), 0)
    assert alive.error_code == 0
    return CLOSED if answer is None else "answered"


def head(key: int, version: int) -> bytes:
    return struct.pack(">hhih4s", key, version, 1, 4, b"wire")


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(head(999, 0), id="unknown key"),
        pytest.param(head(-1, 0), id="negative key"),
        pytest.param(head(3, 99) + b"\0\0", id="metadata of a future version"),
        pytest.param(head(3, -1), id="metadata of a negative version"),
        pytest.param(head(0, 2) + b"\0\1\0\0\0\1\0\0\0\0", id="produce version 2"),
        pytest.param(head(1, 3), id="fetch version 3"),
        pytest.param(head(4, 0), id="a key that is gone"),
        pytest.param(b"\0", id="half a key"),
        pytest.param(head(3, 1)[:8], id="half a header"),
        pytest.param(struct.pack(">hhih4s", 3, 1, 1, 99, b"wire"), id="client id longer than the frame"),
        pytest.param(head(3, 1) + b"\x7f\xff\xff\xff", id="more topics than bytes"),
        pytest.param(head(3, 1) + b"\0\0\0\1\0\x09ab", id="a name longer than the frame"),
        pytest.param(head(3, 9) + b"\0\xff\xff\xff\xff\x0f", id="more topics than bytes, flexible"),
        pytest.param(head(0, 9) + b"\0\0\0\1\0\0\0\1\xff\xff\xff\xff\xff", id="a varint that is too long"),
    ],
)
def test_a_frame_that_makes_no_sense_closes_its_connection(same: Same, frame: bytes) -> None:
    assert same(lambda peer: closes(peer, frame)) == CLOSED


@pytest.mark.parametrize("size", [-1, 104_857_601, 0x7FFFFFFF])
def test_a_frame_of_an_impossible_size_closes_its_connection(same: Same, size: int) -> None:
    def scenario(peer: Peer) -> Any:
        with peer.connect() as wire:
            wire.socket.sendall(struct.pack(">i", size) + head(3, 1))
            return CLOSED if wire.receive_frame() is None else "answered"

    assert same(scenario) == CLOSED


def test_a_key_of_the_controller_closes_a_connection_to_the_broker(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        return peer.ask(VoteRequest(), 2)

    assert same(scenario) == CLOSED


def test_a_key_of_the_broker_closes_a_connection_to_the_controller(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        return [
            peer.ask(ProduceRequest(acks=1, timeout_ms=100), 9, controller=True),
            peer.ask(MetadataRequest(topics=[]), 9, controller=True),
        ]

    same(scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_a_sasl_handshake_on_a_plaintext_listener_is_an_illegal_state(same: Same, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        return plain(peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), version))

    same(scenario)


def test_replies_come_in_the_order_of_the_requests(same: Same, topic: str) -> None:
    """Also when an earlier request waits (a long poll) and a later one could be answered at once."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        order = []
        with peer.connect() as wire:
            waiting = peer.fetch_request(topic, [(0, 0)], 12, max_wait_ms=700, min_bytes=1000)
            wire.send(waiting, 12)
            for _ in range(5):
                wire.send(ApiVersionsRequest(), 0)
            for _ in range(6):
                frame = wire.receive_frame()
                assert frame is not None
                order.append(struct.unpack_from(">i", frame)[0])
        return order

    assert same(scenario) == [1, 2, 3, 4, 5, 6]


def test_unknown_tagged_fields_are_ignored(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        request = software()
        request.unknown_tags = [(99, b"what is this")]
        return peer.ask(request, 4).error_code

    assert same(scenario) == 0


def test_an_empty_and_a_null_client_id_are_fine(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        return [peer.ask(ApiVersionsRequest(), 0, client_id=name).error_code for name in ("", None, "ü" * 100)]

    assert same(scenario) == [0, 0, 0]


def test_a_request_may_come_in_pieces(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        frame = head(18, 0)
        data = struct.pack(">i", len(frame)) + frame
        with peer.connect() as wire:
            for i in range(len(data)):
                wire.socket.sendall(data[i : i + 1])
            answer = wire.receive_frame()
        assert answer is not None
        return struct.unpack_from(">ih", answer)

    assert same(scenario) == (1, 0)


def test_many_requests_may_come_in_one_piece(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        with peer.connect() as wire:
            frames = b""
            for i in range(200):
                frame = struct.pack(">hhih4s", 18, 0, i, 4, b"wire")
                frames += struct.pack(">i", len(frame)) + frame
            wire.socket.sendall(frames)
            return [read_correlation_id(wire) for _ in range(200)]

    assert same(scenario) == list(range(200))


def read_correlation_id(wire: Wire) -> int:
    frame = wire.receive_frame()
    assert frame is not None
    return int(struct.unpack_from(">i", frame)[0])
