"""The partitioner's hash against values of the Java client and an independent implementation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.records.murmur2 import murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_the_java_client(key: bytes, expected: int) -> None:
    """Known pairs, among them every length modulo four."""
    assert murmur2(key) == expected


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_hashes_agree_with_another_client(key: bytes) -> None:
    """kafka-python returns the hash unsigned."""
    partitioner = pytest.importorskip("kafka.partitioner.default")
    assert murmur2(key) & 0xFFFFFFFF == partitioner.murmur2(key) & 0xFFFFFFFF


def test_a_negative_hash_still_gives_a_partition() -> None:
    """The sign bit is dropped, not the absolute value taken."""
    assert partition_for_key(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10
    assert {partition_for_key(str(number).encode(), 7) for number in range(100)} == set(range(7))
