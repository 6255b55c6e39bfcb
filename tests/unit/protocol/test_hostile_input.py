"""Bytes that lie: whatever arrives, decoding ends in a value or in a DecodeError, soon and with little memory."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest

from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.primitives import DecodeError, Reader
from moldau.protocol.stored.group_records import decode_group_key, decode_group_value
from moldau.protocol.stored.metadata_records import decode_metadata_record
from tests.pace import patience
from tests.unit.protocol.messages import class_of, encode, to_message
from tests.unit.protocol.schema_text import Codec, Maker, Text, read_texts

TEXTS = read_texts()
EVERY_PREFIX_UP_TO = 100


def sample(text: Text, version: int, seed: int = 0) -> bytes:
    return encode(to_message(text, Maker(text, version, seed).make()), version)


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_a_message_that_is_cut_off_anywhere_is_refused(text: Text) -> None:
    for version in {text.lowest, text.highest}:
        data = sample(text, version)
        cuts = range(len(data)) if len(data) <= EVERY_PREFIX_UP_TO else random.Random(1).sample(range(len(data)), 60)
        for cut in cuts:
            with pytest.raises(DecodeError):
                class_of(text).decode(Reader(data, 0, cut), version)


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_changed_bytes_give_a_value_or_a_decode_error(text: Text) -> None:
    chance = random.Random(text.name)
    for version in {text.lowest, text.highest}:
        data = sample(text, version, seed=7)
        for _ in range(20 if data else 0):
            changed = bytearray(data)
            for _ in range(chance.randint(1, 4)):
                changed[chance.randrange(len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            try:
                class_of(text).decode(Reader(bytes(changed)), version)
            except DecodeError:
                pass


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_noise_gives_a_value_or_a_decode_error(text: Text) -> None:
    chance = random.Random(text.name)
    for version in text.versions:
        for _ in range(5):
            try:
                class_of(text).decode(Reader(chance.randbytes(chance.randrange(300))), version)
            except DecodeError:
                pass


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_versions_outside_of_the_schema_are_refused(text: Text) -> None:
    for version in (text.lowest - 1, text.highest + 1):
        with pytest.raises(DecodeError, match="no version"):
            class_of(text).decode(Reader(bytes(1000)), version)


def peak_of(
    decode: type[FetchRequest | MetadataRequest | MetadataResponse | ProduceRequest], data: bytes, version: int
) -> int:
    """The most memory that decoding took; fails if it takes long or ends in something unexpected."""
    tracemalloc.start()
    started = time.process_time()
    try:
        decode.decode(Reader(data), version)
    except DecodeError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert time.process_time() - started < patience(2)
    return peak


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\x00\xff\xff\xff", b"\x80\x00\x00\x00"])
def test_a_huge_count_allocates_nothing(count: bytes) -> None:
    """A Metadata request of 12 bytes that announces two thousand million topics."""
    assert peak_of(MetadataRequest, count + bytes(8), 4) < 20_000


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00"])
def test_a_huge_length_of_records_allocates_nothing(length: bytes) -> None:
    head = b"\xff\xff" + b"\x00\x01" + bytes(4) + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\x00\x00\x00\x01" + bytes(4)
    assert peak_of(ProduceRequest, head + length + bytes(100), 3) < 20_000


def test_arrays_within_arrays_cost_no_more_than_the_frame_pays_for() -> None:
    """The cheapest nesting: every topic announces as many partitions as the bytes that remain would allow."""
    topic = bytes(16) + b"\xff\x01"  # a topic id and 254 partitions
    frame = bytes(4 * 4 + 1 + 4 + 4) + b"\xff\xff\x03" + topic * 3000
    assert peak_of(FetchRequest, frame, 17) < 64 * len(frame)


def test_the_smallest_elements_cost_a_bounded_multiple_of_the_frame() -> None:
    """Brokers of a Metadata response in version 12: eleven bytes each at least, whatever they hold."""
    element = bytes(4) + b"\x01" + bytes(4) + b"\x00" + b"\x00"
    frame = bytes(4) + b"\x81\x20" + element * (1 << 12)
    assert peak_of(MetadataResponse, frame, 12) < 40 * len(frame)


def test_a_tagged_field_cannot_reach_beyond_its_size() -> None:
    """A Fetch request whose cluster id says it is longer than the tagged field that holds it."""
    text = next(text for text in TEXTS if text.name == "FetchRequest")
    codec = Codec(text, 15)
    value = {line.name: codec.default(line) for line in text.fields if line.exists(15)}
    good = codec.encode({**value, "cluster_id": "ab"})
    assert good.endswith(b"\x01\x00\x03\x03ab")
    assert class_of(text).decode(Reader(good), 15).cluster_id == "ab"  # type: ignore[attr-defined]
    for bad in (good.replace(b"\x00\x03\x03ab", b"\x00\x02\x03ab"), good.replace(b"\x00\x03\x03ab", b"\x00\x03\x02ab")):
        with pytest.raises(DecodeError, match="tagged field ends"):
            class_of(text).decode(Reader(bad), 15)


def test_many_tagged_fields_announced_in_few_bytes_are_refused() -> None:
    with pytest.raises(DecodeError, match="elements announced"):
        Reader(b"\xff\xff\xff\xff\x0f\x00").unknown_tags()


@pytest.mark.parametrize(
    "data", [b"", b"\x02", b"\x01\x02", b"\x01\xff\x7f\x00", b"\x01\x02\x63\x00", b"\x01\x14\x00\x00\x00"]
)
def test_stored_metadata_records_that_make_no_sense_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_metadata_record(data)


def test_stored_coordinator_records_that_make_no_sense_are_refused() -> None:
    for data in (b"", b"\x00", b"\x7f\xff", b"\x00\x01\x00\x05grou"):
        with pytest.raises(DecodeError):
            decode_group_key(data)
    for data in (b"", b"\x00\x63", b"\x00\x01"):
        with pytest.raises(DecodeError):
            decode_group_value(1, data)
