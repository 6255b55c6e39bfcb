"""Every message in every version: random values survive, and the bytes are those of a second codec."""

from __future__ import annotations

import pytest

from tests.unit.protocol.messages import class_of, decode, encode, to_message
from tests.unit.protocol.schema_text import Codec, Maker, Text, read_texts

TEXTS = read_texts()
SEEDS = range(3)


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_random_values_survive_and_match_the_second_codec(text: Text) -> None:
    for version in text.versions:
        for seed in SEEDS:
            value = Maker(text, version, seed).make()
            message = to_message(text, value)
            data = encode(message, version)
            assert data == Codec(text, version).encode(value), (version, seed, value)
            back = decode(text, version, data)
            assert back == message, (version, seed)
            assert encode(back, version) == data


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_an_instance_without_arguments_holds_the_defaults_of_the_schema(text: Text) -> None:
    for version in text.versions:
        codec = Codec(text, version)
        value = {line.name: codec.default(line) for line in text.fields if line.exists(version)}
        # A struct that may be null is null unless it is given, even where a missing tag means a struct of defaults.
        value |= {line.name: None for line in text.fields if line.nullable and isinstance(value.get(line.name), dict)}
        message = class_of(text)()
        assert message == to_message(text, value)
        if not any(value[name] is None and not may_be_null(text, name, version) for name in value):
            assert encode(message, version) == codec.encode(value)


def may_be_null(text: Text, name: str, version: int) -> bool:
    return next(line for line in text.fields if line.name == name).may_be_null(version)


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_constants_are_those_of_the_schema(text: Text) -> None:
    message_class = class_of(text)
    assert (text.lowest, text.highest) == (message_class.LOWEST_VERSION, message_class.HIGHEST_VERSION)
    assert min(text.flexible_from, text.highest + 1) == message_class.FIRST_FLEXIBLE_VERSION
    assert tuple(line.name for line in text.fields) == message_class.FIELDS


def test_every_message_and_stored_record_of_kafka_is_there() -> None:
    """Kafka 4.3.1 has the keys 0 to 92, of which 4 to 7 are retired."""
    words = [text.word for text in TEXTS]
    assert (words.count("request"), words.count("response")) == (89, 89)
    stored = {path.stem for path in {text.path for text in TEXTS} if path.parent.name == "stored"}
    assert stored == {
        "control_records",
        "group_records",
        "metadata_records",
        "producer_snapshot",
        "quorum_state",
        "remote_log_records",
        "share_records",
        "transaction_records",
    }
