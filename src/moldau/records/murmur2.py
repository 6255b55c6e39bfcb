"""The hash by which producers choose a partition for a key, the same as in the Java client."""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le
from mypy_extensions import i64

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
MASK_32: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The 32-bit hash of `data`, signed as Java has it."""
    return int(murmur2_range(data, 0, len(data)))


def murmur2_range(data: bytes, start: i64, end: i64) -> i64:
    """The hash of the bytes from start to end."""
    length = end - start
    hashed: i64 = (SEED ^ length) & MASK_32
    whole = start + (length & ~3)
    index = start
    while index < whole:
        word = i64(read_i32_le(data, index)) & MASK_32
        word = _multiply(word)
        word ^= word >> 24
        word = _multiply(word)
        hashed = _multiply(hashed) ^ word
        index += 4
    rest = length & 3
    if rest == 3:
        hashed ^= i64(data[whole + 2]) << 16
    if rest >= 2:
        hashed ^= i64(data[whole + 1]) << 8
    if rest >= 1:
        hashed = _multiply(hashed ^ i64(data[whole]))
    hashed ^= hashed >> 13
    hashed = _multiply(hashed)
    hashed ^= hashed >> 15
    return hashed - 0x100000000 if hashed >= 0x80000000 else hashed


def _multiply(word: i64) -> i64:
    """word times the multiplier, low 32 bits; in two halves, since the whole product would leave 63 bits."""
    high = ((word >> 16) * MULTIPLIER) & 0xFFFF
    return ((high << 16) + (word & 0xFFFF) * MULTIPLIER) & MASK_32


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition that Kafka's default partitioner gives a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
