"""Random records of every kind that Kafka stores, in every version: both tools show the same JSON for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from moldau.records.builder import BatchBuilder
from tests.interop.test_dump_log_same import check_same
from tests.unit.protocol.messages import encode, to_message
from tests.unit.protocol.schema_text import UNKNOWN, Maker, Text, Value, read_texts

pytestmark = pytest.mark.usefixtures("kafka_tools")

SEEDS = range(4)
NOW_MS = 1_700_000_000_000


def texts_of(stem: str, word: str) -> list[Text]:
    return [text for text in read_texts() if text.path.stem == stem and text.word == word]


def key_of(text: Text) -> int:
    """The number behind the word in the head of a schema."""
    for line in text.path.read_text().splitlines():
        words = line.partition(",")[0].split()
        if words[:1] == [text.word] and words[-1:] == [text.name]:
            return int(words[1])
    raise AssertionError(text)


def without_unknown_tags(value: Value) -> Value:
    """JSON does not show them."""
    for name, item in list(value.items()):
        if name == UNKNOWN:
            del value[name]
        for inner in item if isinstance(item, list) else [item]:
            if isinstance(inner, dict):
                without_unknown_tags(inner)
    return value


def random_bytes(text: Text, version: int, seed: int) -> bytes:
    return encode(to_message(text, without_unknown_tags(Maker(text, version, seed).make())), version)


def write_log(folder: Path, records: list[tuple[bytes | None, bytes | None]]) -> Path:
    data = b""
    for number, (key, value) in enumerate(records):
        builder = BatchBuilder(number)
        builder.append(NOW_MS, key, value, [])
        data += builder.build()
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    return path


def test_metadata_records_of_every_type_and_version(tmp_path: Path) -> None:
    records: list[tuple[bytes | None, bytes | None]] = []
    for text in texts_of("metadata_records", "record"):
        for version in text.versions:
            for seed in SEEDS:
                records.append((None, bytes([1, key_of(text), version]) + random_bytes(text, version, seed)))
    path = write_log(tmp_path, records)
    shown = check_same("--files", str(path), "--cluster-metadata-decoder")
    assert shown.count(b'payload: {"type":"') == len(records)


@pytest.mark.parametrize(
    ("stem", "option"),
    [
        ("group_records", "--offsets-decoder"),
        ("transaction_records", "--transaction-log-decoder"),
        ("share_records", "--share-group-state-decoder"),
    ],
)
def test_coordinator_records_of_every_type_and_version(stem: str, option: str, tmp_path: Path) -> None:
    keys = {key_of(text): text for text in texts_of(stem, "key")}
    records: list[tuple[bytes | None, bytes | None]] = []
    for text in texts_of(stem, "value"):
        number = key_of(text)
        for version in text.versions:
            for seed in SEEDS:
                key = number.to_bytes(2, "big") + random_bytes(keys[number], 0, seed)
                records.append((key, version.to_bytes(2, "big") + random_bytes(text, version, seed)))
        records.append((key, None))
    path = write_log(tmp_path, records)
    shown = check_same("--files", str(path), option)
    assert shown.count(b'key: {"type":"') == len(records)


SUBSCRIPTION = b"\0\1\0\1a\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff"
# What members said of themselves and what they were given: empty, cut off, of versions there are not, something else.
MEMBERS = [
    (b"", b""),
    (b"\0", b"\0"),
    (b"\0\0", b"\0\0"),
    (b"\0\3\0\0" + SUBSCRIPTION, b""),
    (b"\0\3\0\0" + SUBSCRIPTION, b"\0\3\0\0\0\0\xff\xff\xff\xff"),
    (b"\0\x63\0\0" + SUBSCRIPTION, b"\0\x63\0\0\0\0\xff\xff\xff\xff"),
    (b"\xff\xff\0\0" + SUBSCRIPTION, b"\0\0"),
    (b"garbage of some length", b"garbage"),
    (b"\0\1\0\0" + SUBSCRIPTION + b"more", b"\0\1\0\0\0\0\xff\xff\xff\xffmore"),
    (b"\0\1\7\0\0\0", b"\0\1\7\0\0\0"),
]


def test_members_of_classic_groups_that_say_something_odd(tmp_path: Path) -> None:
    """Both are opened where they can be read, each for itself, and shown as they are otherwise."""
    records: list[tuple[bytes | None, bytes | None]] = []
    for number, (subscription, assignment) in enumerate(MEMBERS):
        member = MemberMetadata(member_id="m", subscription=subscription, assignment=assignment)
        group = GroupMetadataValue(protocol_type="consumer", generation=1, members=[member])
        key = encode(GroupMetadataKey(group=f"g{number}"), 0)
        records.append((b"\0\2" + key, b"\0\3" + encode(group, 3)))
    shown = check_same("--files", str(write_log(tmp_path, records)), "--offsets-decoder")
    assert shown.count(b'"assignment":') == len(MEMBERS)
    assert shown.count(b'"subscription":{') == shown.count(b'"topics":["a"]') == 5
