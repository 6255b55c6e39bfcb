"""The topics in a consumer's metadata: the one part of an embedded protocol that the coordinator reads."""

from __future__ import annotations

from moldau.protocol.primitives import DecodeError, Reader


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics of a ConsumerProtocolSubscription of any version: all of them begin like version 0.

    Raises DecodeError if this is something else.
    """
    reader = Reader(metadata)
    version = reader.int16()
    if version < 0:
        raise DecodeError(f"a subscription cannot have version {version}")
    topics: list[str] = reader.string_list(reader.array_length(2))
    # Not needed, but a subscription without it is none.
    reader.nullable_bytes()
    return topics
