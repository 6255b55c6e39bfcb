"""The same bytes as kafka-python, whose codec is built at run time from Kafka's own schema files."""

from __future__ import annotations

import re
import uuid
from importlib import import_module
from typing import Any

import pytest

from tests.unit.protocol.messages import encode, to_message
from tests.unit.protocol.schema_text import UNKNOWN, Codec, Line, Maker, Text, Value, read_texts

api_message = pytest.importorskip("kafka.protocol.api_message", reason="kafka-python 3 is not installed")
for package in ("admin", "consumer", "metadata", "producer", "sasl"):
    import_module(f"kafka.protocol.{package}")

THEIRS: dict[str, Any] = {found.__name__: found for found in api_message.ApiMessage.__subclasses__()}
# Their name for this value of a bit field is None.
NO_OPERATIONS = -(2**31)
TEXTS = [text for text in read_texts() if text.name in THEIRS]


def shared_versions(text: Text) -> range:
    low, high = THEIRS[text.name].valid_versions
    return range(max(low, text.lowest), min(high, text.highest) + 1)


def test_most_apis_that_clients_use_can_be_compared() -> None:
    assert len(TEXTS) >= 90
    assert sum(len(shared_versions(text)) for text in TEXTS) >= 300


def squeeze(name: str) -> str:
    """kafka-python writes some names its own way, and those of authorized operations alike in some messages."""
    return re.sub("^(topic|cluster)authorized", "authorized", name.replace("_", "").lower())


def is_operations(line: Line) -> bool:
    return line.base == "int32" and line.name.endswith("authorized_operations")


def their_fields(holder: Any) -> dict[str, Any]:
    return {squeeze(item.name): item for item in holder._fields}


class Comparison:
    """One message in one version."""

    def __init__(self, text: Text, version: int) -> None:
        self.text = text
        self.version = version
        self.codec = Codec(text, version)

    def build(self, data_class: Any, lines: list[Line], value: Value) -> Any:
        """Their object with our values; a tagged field at its default is left out, as it is by Kafka."""
        fields = their_fields(data_class._struct)
        arguments: dict[str, Any] = {}
        for line in lines:
            if not line.exists(self.version):
                continue
            one = value[line.name]
            if line.is_tagged(self.version) and one == self.codec.default(line):
                continue
            field = fields[squeeze(line.name)]
            inside = self.text.inside(line)
            if inside is not None and one is not None:
                nested = getattr(data_class, field.type_str)
                one = (
                    [self.build(nested, inside, item) for item in one]
                    if line.array
                    else self.build(nested, inside, one)
                )
            elif line.base == "uuid":
                one = [uuid.UUID(bytes=item) for item in one] if line.array else uuid.UUID(bytes=one)
            elif is_operations(line) and (field.default is None or isinstance(field.default, set)):
                one = None if one == NO_OPERATIONS else {bit for bit in range(32) if one & 1 << bit}
            arguments[field.name] = one
        return data_class(version=self.version, **arguments)

    def check(self, lines: list[Line], value: Value, theirs: Any) -> None:
        """Their object, decoded from our bytes, has our values."""
        fields = their_fields(theirs._struct)
        for line in lines:
            if not line.exists(self.version):
                continue
            one, other = value[line.name], self.plain(getattr(theirs, fields[squeeze(line.name)].name), line)
            if line.is_tagged(self.version) and one == self.codec.default(line):
                continue
            inside = self.text.inside(line)
            if inside is not None and one is not None:
                assert other is not None
                for mine, its in zip(one, other, strict=True) if line.array else [(one, other)]:
                    self.check(inside, mine, its)
            else:
                assert other == one, (line.name, self.version)
        unknown = theirs.unknown_tags or {}
        assert {f"_{tag}": data for tag, data in value.get(UNKNOWN, [])} == unknown

    def plain(self, other: Any, line: Line) -> Any:
        """Their uuids, bit fields and views as the plain values that we use."""
        if isinstance(other, set):
            number = sum(1 << bit for bit in other)
            return number - (1 << 32) if number >> 31 else number
        if other is None and is_operations(line):
            return NO_OPERATIONS
        if line.base == "uuid" and not isinstance(other, list):
            return bytes(16) if other is None else other.bytes
        if isinstance(other, list) and self.text.inside(line) is None:
            return [item.bytes if isinstance(item, uuid.UUID) else item for item in other]
        return bytes(other) if isinstance(other, memoryview | bytearray) else other


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_their_objects_encode_to_our_bytes(text: Text) -> None:
    theirs = THEIRS[text.name]
    for version in shared_versions(text):
        for seed in range(2):
            value = without_unknown(Maker(text, version, seed).make())
            built = Comparison(text, version).build(theirs, text.fields, value)
            assert bytes(built.encode(version=version)) == encode(to_message(text, value), version), (version, seed)


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_they_decode_our_bytes_to_our_values(text: Text) -> None:
    for version in shared_versions(text):
        for seed in range(2):
            value = Maker(text, version, seed).make()
            drop_unknown_within_tagged(text, version, text.fields, value)
            if text.name == "ApiVersionsResponse":
                value["error_code"] = 0  # with an error they expect version 0, as clients must
            decoded = THEIRS[text.name].decode(encode(to_message(text, value), version), version=version)
            Comparison(text, version).check(text.fields, value, decoded)


def without_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_unknown(item) for name, item in value.items() if name != UNKNOWN}
    return [without_unknown(item) for item in value] if isinstance(value, list) else value


def drop_unknown_within_tagged(text: Text, version: int, lines: list[Line], value: Value) -> None:
    """They refuse unknown tagged fields of a struct that is a tagged field itself."""
    for line in lines:
        inside = text.inside(line)
        if inside is None or value.get(line.name) is None:
            continue
        if line.is_tagged(version):
            value[line.name] = without_unknown(value[line.name])
        for item in value[line.name] if line.array else [value[line.name]]:
            drop_unknown_within_tagged(text, version, inside, item)
