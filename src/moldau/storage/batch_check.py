"""Checks the batches in a piece of a log file: size, magic, checksum, rising offsets."""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from moldau.records.batch import (
    ATTRIBUTES,
    BATCH_LENGTH,
    CRC,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH_OVERHEAD,
    MAGIC,
)
from moldau.storage.validation import crc_of

UNSIGNED: Final = 0xFFFFFFFF


class BatchCheck:
    """How far a piece of data consists of whole and sound batches, and what is wrong with the next one, if anything."""

    def __init__(self, next_offset: int) -> None:
        self.size = 0  # of the sound batches
        self.count = 0
        self.next_offset = next_offset  # no later batch may begin below it
        self.problem = ""
        self.batch_size = 0  # of the batch with the problem, or of the one that the data ends in; 0: not known


def check_batches(data: bytes, next_offset: int, end_offset: int) -> BatchCheck:
    """Stops at the first batch that is wrong, and at one that is not all there. All must lie below `end_offset`: a
    batch's checksum does not cover its offset."""
    result = BatchCheck(next_offset)
    end: i64 = len(data)
    position: i64 = 0
    lowest: i64 = next_offset
    highest: i64 = end_offset
    while position + HEADER_SIZE <= end:
        offset: i64 = read_i64_be(data, position)
        size: i64 = i64(read_i32_be(data, position + BATCH_LENGTH)) + LENGTH_OVERHEAD
        delta: i64 = i64(read_i32_be(data, position + LAST_OFFSET_DELTA))
        if size < HEADER_SIZE or data[position + MAGIC] != CURRENT_MAGIC:
            result.problem = "no batch"
            break
        result.batch_size = size
        if position + size > end:
            break
        if crc_of(data, position + ATTRIBUTES, position + size) != i64(read_i32_be(data, position + CRC)) & UNSIGNED:
            result.problem = "wrong checksum"
        elif offset < lowest or delta < 0 or offset + delta >= highest:
            result.problem = f"offset {offset} where {lowest} to {highest - 1} may come"
        if result.problem:
            break
        result.batch_size = 0
        result.count += 1
        lowest = offset + delta + 1
        position += size
    result.size = position
    result.next_offset = lowest
    return result
