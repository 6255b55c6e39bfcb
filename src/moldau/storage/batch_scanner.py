"""Walking over the batches of a .log file one by one: for recovery, compaction, rebuilt indexes."""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

from moldau.records.batch import BATCH_LENGTH, HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, CorruptBatch, read_header
from moldau.storage.disk import File

SCAN_CHUNK: Final = 1 << 20


class BatchScanner:
    """Walks the batches of a file one by one, each wholly in memory: `data` holds it at `header.position`.

    `next` returns None at the end or where the bytes stop making sense; `problem` then says why (empty at the end).
    """

    def __init__(self, file: File, position: int, end: int) -> None:
        self.file = file
        self.end = end
        self.position = position  # of the batch that `next` returned last
        self.next_position = position
        self.data = b""
        self.data_position = position
        self.problem = ""

    def next(self) -> BatchHeader | None:
        position: i64 = self.next_position
        remaining: i64 = self.end - position
        if remaining <= 0:
            return None
        if remaining < HEADER_SIZE:
            self.problem = f"{remaining} bytes at the end are no batch"
            return None
        index: i64 = position - self.data_position
        if index + HEADER_SIZE > len(self.data):
            self._fill(position, SCAN_CHUNK)
            index = 0
            if len(self.data) < HEADER_SIZE:
                self.problem = "the file is shorter than expected"
                return None
        size: i64 = i64(read_i32_be(self.data, index + BATCH_LENGTH)) + LENGTH_OVERHEAD
        if size < HEADER_SIZE or size > remaining:
            self.problem = f"a batch of {size} bytes cannot be in {remaining} bytes"
            return None
        if index + size > len(self.data):
            self._fill(position, max(size, SCAN_CHUNK))
            index = 0
        try:
            header = read_header(self.data, index, len(self.data))
        except CorruptBatch as error:
            self.problem = str(error)
            return None
        self.position = position
        self.next_position = position + size
        return header

    def _fill(self, position: int, size: int) -> None:
        self.data = self.file.read(position, min(size, self.end - position))
        self.data_position = position
