"""Uuids: 16 raw bytes inside, 22 characters of url-safe base64 outside.

Kafka reserves the smallest values: 0 stands for none, 1 is the id of the metadata topic. Both stay out of random ids.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final

from moldau.protocol.primitives import ZERO_UUID as ZERO_UUID

METADATA_TOPIC_UUID: Final = bytes(15) + b"\x01"
TEXT_LENGTH: Final = 22


def uuid_to_text(uuid: bytes) -> str:
    if len(uuid) != 16:
        raise ValueError(f"a uuid has 16 bytes, this has {len(uuid)}")
    return urlsafe_b64encode(uuid)[:TEXT_LENGTH].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes that the text stands for; ValueError when it is not a uuid."""
    try:
        uuid = urlsafe_b64decode(text.encode("ascii") + b"==")
    except ValueError:
        raise ValueError(f"not a uuid: {text!r}") from None
    if len(text) != TEXT_LENGTH or len(uuid) != 16:
        raise ValueError(f"not a uuid: {text!r}")
    return uuid


def random_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A random (version 4) uuid whose text does not start with a dash, which command lines would take for a flag."""
    while True:
        raw = bytearray(random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = bytes(raw)
        if not uuid_to_text(uuid).startswith("-"):
            return uuid
