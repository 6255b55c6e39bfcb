"""The api table, the error table and uuids, held against what a real broker answered."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from moldau.protocol import api_keys, api_table, errors, uuids
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.primitives import DecodeError, Reader
from tests.unit.protocol.messages import encode

FACTS = Path(__file__).parents[2] / "data" / "kafka-facts"


def facts(name: str) -> list[str]:
    return (FACTS / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("listener", [api_keys.BROKER, api_keys.CONTROLLER])
def test_what_is_advertised_is_what_kafka_advertises(listener: str) -> None:
    lines = facts("api-versions.txt")
    start = lines.index(f"== {listener} listener")
    expected = []
    for line in lines[start + 1 :]:
        if line.startswith("=="):
            break
        if line.startswith("api "):
            _, name, key, low, high = line.split()
            expected.append((name, int(key), int(low), int(high)))
    offered = api_keys.advertised(listener)
    assert [(api.name, api.key, api.lowest_advertised, api.highest_advertised) for api in offered] == expected


def test_telemetry_is_advertised_on_demand() -> None:
    more = {api.name for api in api_keys.advertised(api_keys.BROKER, telemetry=True)}
    assert more - {api.name for api in api_keys.advertised(api_keys.BROKER)} == {
        "GetTelemetrySubscriptions",
        "PushTelemetry",
    }


def test_produce_is_offered_from_version_0_and_served_from_3() -> None:
    produce = api_keys.BY_KEY[api_table.PRODUCE]
    assert produce.lowest_advertised == 0
    assert [version for version in range(-1, 16) if produce.serves(version)] == list(range(3, 14))


def test_an_unstable_version_is_neither_offered_nor_served() -> None:
    api = api_keys.BY_NAME["InitProducerId"]
    assert (api.highest_version, api.highest_advertised, api.serves(5), api.serves(6)) == (6, 5, True, False)


def test_every_api_finds_its_classes() -> None:
    for api in api_keys.APIS:
        for found in (api_keys.request_class(api.key), api_keys.response_class(api.key)):
            assert api.key == found.API_KEY
            assert (api.lowest_version, api.highest_version) == (found.LOWEST_VERSION, found.HIGHEST_VERSION)
        assert api_keys.request_class(api.key).__name__ == f"{api.name}Request"
        assert getattr(api_table, api.snake_name.upper()) == api.key
    with pytest.raises(KeyError):
        api_keys.request_class(4)


def test_header_versions_follow_the_flexible_versions_except_for_api_versions() -> None:
    assert [api_keys.request_header_version(api_table.PRODUCE, version) for version in (3, 8, 9, 13)] == [1, 1, 2, 2]
    assert [api_keys.response_header_version(api_table.PRODUCE, version) for version in (3, 8, 9, 13)] == [0, 0, 1, 1]
    assert [api_keys.request_header_version(api_table.API_VERSIONS, version) for version in (0, 2, 3, 4)] == [
        1,
        1,
        2,
        2,
    ]
    assert [api_keys.response_header_version(api_table.API_VERSIONS, version) for version in (0, 2, 3, 4)] == [0] * 4
    assert api_keys.request_header_version(api_table.SASL_HANDSHAKE, 1) == 1


def test_request_headers() -> None:
    """Version 0 has no client id; in version 2 the client id stays as it was, and tagged fields follow."""
    start = bytes.fromhex("0012 0003 00000007")
    assert RequestHeader.decode(Reader(start), 0) == RequestHeader(18, 3, 7, client_id="")
    assert RequestHeader.decode(Reader(start + b"\x00\x02me"), 1).client_id == "me"
    assert RequestHeader.decode(Reader(start + b"\xff\xff"), 1).client_id is None
    header = RequestHeader.decode(Reader(start + b"\x00\x02me" + b"\x01\x09\x01x"), 2)
    assert (header.client_id, header.unknown_tags) == ("me", [(9, b"x")])
    assert encode(header, 2) == start + b"\x00\x02me" + b"\x01\x09\x01x"
    assert encode(ResponseHeader(7), 0) == b"\x00\x00\x00\x07"
    assert encode(ResponseHeader(7), 1) == b"\x00\x00\x00\x07\x00"
    with pytest.raises(DecodeError):
        RequestHeader.decode(Reader(start), 1)


def test_the_error_table_is_kafkas() -> None:
    rows = [line.split() for line in facts("error-codes.txt") if line and not line.startswith(("#", "code"))]
    expected = [
        (int(code), name, retriable == "yes", refresh == "yes", metadata == "yes", exception.strip("-"))
        for code, name, retriable, refresh, metadata, exception in rows
    ]
    assert [row[:6] for row in errors.ERRORS] == expected


def test_every_error_has_a_constant_and_a_text() -> None:
    for row in errors.ERRORS:
        assert getattr(errors, row.name) == row.code
        assert bool(row.text) == (row.code != errors.NONE)
        assert errors.BY_NAME[row.name] is row
    assert [row.code for row in errors.ERRORS] == list(range(-1, 134))


def test_an_error_carries_its_code_and_a_sentence() -> None:
    error = KafkaError(errors.OFFSET_OUT_OF_RANGE)
    assert (error.code, error.name, error.message) == (1, "OFFSET_OUT_OF_RANGE", errors.default_text(1))
    assert str(KafkaError(3, "no topic x")) == "no topic x"
    assert errors.error_name(999) == "UNKNOWN_999"
    assert errors.error_row(999).name == "UNKNOWN_SERVER_ERROR"


def test_uuids_have_22_characters() -> None:
    assert uuids.uuid_to_text(uuids.ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuids.uuid_to_text(uuids.METADATA_TOPIC_UUID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    for seed in range(200):
        uuid = uuids.random_uuid(Random(seed).randbytes)
        text = uuids.uuid_to_text(uuid)
        assert (len(text), text[0] != "-", uuids.uuid_from_text(text)) == (22, True, uuid)


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==", "ä" * 22, "A" * 23, "!" * 22, "AAAAAAAAAA AAAAAAAAAAA"]
)
def test_text_that_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        uuids.uuid_from_text(text)
    with pytest.raises(ValueError, match="16 bytes"):
        uuids.uuid_to_text(b"short")
