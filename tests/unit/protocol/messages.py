"""Joins the dicts of schema_text.py with the generated classes."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType
from typing import Any

from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.records_data import MemoryRecords
from tests.unit.protocol.schema_text import UNKNOWN, Line, Text, Value


def module_of(text: Text) -> ModuleType:
    if text.path.name[0].isdigit():
        name = "messages." + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text.name).lower()
    else:
        name = f"{text.path.parent.name}.{text.path.stem.replace('-', '_')}"
    return import_module(f"moldau.protocol.{name}")


def class_of(text: Text) -> type[Message]:
    found: type[Message] = getattr(module_of(text), text.name)
    return found


def to_message(text: Text, value: Value) -> Message:
    """An instance of the generated class with these values."""
    return build(text, text.name, text.fields, value)


def build(text: Text, name: str, lines: list[Line], value: Value) -> Message:
    fields: dict[str, Any] = {}
    for line in lines:
        if line.name not in value:
            continue
        one = value[line.name]
        inside = text.inside(line)
        if inside is not None and one is not None:
            one = (
                [build(text, line.base, inside, item) for item in one]
                if line.array
                else build(text, line.base, inside, one)
            )
        elif line.base == "records" and one is not None:
            one = MemoryRecords(one)
        fields[line.name] = one
    if UNKNOWN in value:
        fields["unknown_tags"] = value[UNKNOWN]
    made: Message = getattr(module_of(text), name)(**fields)
    return made


def encode(message: Message, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return writer.to_bytes()


def decode(text: Text, version: int, data: bytes) -> Message:
    """Decodes all of the data, with other bytes around it that must not matter."""
    reader = Reader(b"\x7f" + data + b"\x7f" * 9, 1, 1 + len(data))
    message = class_of(text).decode(reader, version)
    assert reader.remaining == 0
    return message
