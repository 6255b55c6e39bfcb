"""Frames lines of text as records, ready to be put into batches; makes no object for a record.

The bytes are those that RecordBuffer writes. Lines may have a key in front of them, by which they are dealt out to the
partitions as Kafka's default partitioner does.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from moldau.records.batch import HEADER_SIZE
from moldau.records.murmur2 import murmur2_range
from moldau.records.record_buffer import RECORD_OVERHEAD, small_size, write_small

# The partition of records that may go anywhere.
ANYWHERE: Final = -1

NOTHING_WRONG: Final = 0
NO_SEPARATOR: Final = 1
TOO_LARGE: Final = 2


class Frames:
    """Records of one partition, one behind the other, that become one batch."""

    def __init__(self, partition: int) -> None:
        self.partition: int = partition
        self.out: BytesWriter = BytesWriter()
        self.count: i64 = 0


class EncodedBatch:
    """Records that are to travel as one batch."""

    def __init__(self, partition: int, data: bytes, count: int) -> None:
        self.partition: int = partition
        self.data: bytes = data
        self.count: int = count


class LineEncoder:
    """Lines in, encoded batches out."""

    def __init__(
        self,
        *,
        delimiter: bytes,
        separator: bytes | None,
        key: bytes | None,
        null: bytes | None,
        headers: bytes,
        partitions: int,
        partition: int,
        batch_bytes: int,
        record_bytes_max: int,
    ) -> None:
        """separator: what stands between key and value. key: that of all records. null: the text that stands for null.

        headers: those of all records, encoded with their count. partitions: how many there are, to deal out records by
        their keys; partition: where all records go, ANYWHERE otherwise.
        """
        if not delimiter or separator == b"":
            raise ValueError("neither delimiter nor separator may be empty")
        self._delimiter: bytes = delimiter
        self._separator: bytes | None = separator
        self._key: bytes | None = key
        self._null_text: bytes | None = null
        self._headers: bytes = headers
        self._partitions: i64 = partitions
        self._batch_bytes: i64 = batch_bytes
        self._record_bytes_max: i64 = record_bytes_max
        self._frames: list[Frames] = [Frames(partition)]
        if separator is not None and partition == ANYWHERE:
            # The last one is for records whose key is null.
            self._frames = [Frames(number) for number in range(partitions)] + [Frames(ANYWHERE)]
        # How many lines were taken, what is wrong with the one behind them, and its size.
        self.lines: i64 = 0
        self.problem: i64 = NOTHING_WRONG
        self.problem_size: i64 = 0
        self.held: i64 = 0
        self.ready: list[EncodedBatch] = []

    def add(self, data: bytes, is_last: bool) -> int:
        """Takes the whole lines of data; returns where the rest begins. With is_last the rest is a line too."""
        position: i64 = 0
        step: i64 = len(self._delimiter)
        end: i64 = len(data)
        while position < end and self.problem == NOTHING_WRONG:
            found: i64 = data.find(self._delimiter, position)
            if found < 0:
                if not is_last:
                    break
                found = end
            self._add_line(data, position, found)
            position = found + step
        return int(min(position, end))

    def _add_line(self, data: bytes, start: i64, end: i64) -> None:
        separator = self._separator
        if separator is None:
            value = data[start:end]
            self._add_record(self._frames[0], self._key, None if value == self._null_text else value)
        else:
            found: i64 = data.find(separator, start, end)
            if found < 0:
                self.problem = NO_SEPARATOR
                return
            key = data[start:found]
            value = data[found + len(separator) : end]
            frames = self._frames[len(self._frames) - 1]
            if key != self._null_text and len(self._frames) > 1:
                frames = self._frames[(murmur2_range(data, start, found) & 0x7FFFFFFF) % self._partitions]
            self._add_record(
                frames, None if key == self._null_text else key, None if value == self._null_text else value
            )
        if self.problem == NOTHING_WRONG:
            self.lines += 1

    def _add_record(self, frames: Frames, key: bytes | None, value: bytes | None) -> None:
        key_size: i64 = -1 if key is None else len(key)
        value_size: i64 = -1 if value is None else len(value)
        most = RECORD_OVERHEAD + max(key_size, i64(0)) + max(value_size, i64(0)) + len(self._headers)
        if most + HEADER_SIZE > self._record_bytes_max:
            self.problem = TOO_LARGE
            self.problem_size = most + HEADER_SIZE
            return
        if frames.count > 0 and len(frames.out) + most + HEADER_SIZE > self._batch_bytes:
            self._close(frames)
        out = frames.out
        before: i64 = len(out)
        number = frames.count
        size = 2 + small_size(number) + small_size(key_size) + small_size(value_size)
        write_small(out, size + max(key_size, i64(0)) + max(value_size, i64(0)) + len(self._headers))
        out.append(0)
        out.append(0)  # every record of a batch has the time of the batch
        write_small(out, number)
        write_small(out, key_size)
        if key is not None:
            out.write(key)
        write_small(out, value_size)
        if value is not None:
            out.write(value)
        out.write(self._headers)
        frames.count = number + 1
        self.held += len(out) - before

    def _close(self, frames: Frames) -> None:
        data = frames.out.getvalue()
        self.held -= len(data)
        self.ready.append(EncodedBatch(frames.partition, data, int(frames.count)))
        frames.out = BytesWriter()
        frames.count = 0

    def flush(self) -> None:
        """Everything that was taken becomes ready."""
        for frames in self._frames:
            if frames.count > 0:
                self._close(frames)

    def take(self) -> list[EncodedBatch]:
        """The batches that are ready, in the order of their partitions' records."""
        ready = self.ready
        self.ready = []
        return ready


def encode_headers(headers: list[tuple[str, bytes | None]]) -> bytes:
    """The headers of a record as they stand at its end: count, names, values."""
    out = BytesWriter()
    write_small(out, len(headers))
    for name, value in headers:
        raw = name.encode()
        write_small(out, len(raw))
        out.write(raw)
        write_small(out, -1 if value is None else len(value))
        if value is not None:
            out.write(value)
    return out.getvalue()
