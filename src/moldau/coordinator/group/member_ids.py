"""Ids the coordinator gives to members: a name a person knows, and a random uuid."""

from __future__ import annotations

from moldau.records.random_source import RandomSource


def new_member_id(name: str, rng: RandomSource) -> str:
    """`name` is the client id of a dynamic member, the instance id of a static one."""
    data = bytearray(rng.randbytes(16))
    # Version 4, variant 1: what Java's UUID.randomUUID makes.
    data[6] = (data[6] & 0x0F) | 0x40
    data[8] = (data[8] & 0x3F) | 0x80
    text = data.hex()
    return f"{name}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
