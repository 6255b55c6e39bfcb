"""A coordinator's log in memory, whose high watermark and failures the test decides."""

from __future__ import annotations

from collections.abc import Callable

from moldau.coordinator.log import CoordinatorLog
from moldau.protocol.errors import KafkaError
from moldau.records.batch import BatchHeader, header_at, split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import Record, read_records


class MemoryLog(CoordinatorLog):
    """`commits_at_once` is a partition with one replica; otherwise `commit` moves the high watermark."""

    def __init__(self, commits_at_once: bool = True) -> None:
        self.batches: list[bytes] = []
        self.end = 0
        self.committed = 0
        self.commits_at_once = commits_at_once
        self.failure: KafkaError | None = None
        self.batch_max = 1_000_000
        self.watchers: list[Callable[[int], None]] = []
        self.reads = 0

    def append(self, batch: bytes, now_ms: int) -> int:
        if self.failure is not None:
            raise self.failure
        header = header_at(batch, 0, len(batch))
        self.batches.append(self.end.to_bytes(8, "big") + batch[8:])
        self.end += int(header.last_offset_delta) + 1
        if self.commits_at_once:
            self.commit(now_ms)
        return self.end

    def commit(self, now_ms: int, offset: int | None = None) -> None:
        self.committed = self.end if offset is None else offset
        self.move(now_ms)

    def move(self, now_ms: int) -> None:
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            watcher(now_ms)

    def add_marker(self, producer_id: int, epoch: int, commit: bool) -> None:
        """What a transaction coordinator writes at the end of a transaction."""
        builder = BatchBuilder(base_offset=self.end)
        builder.append(0, b"\x00\x00" + (b"\x00\x01" if commit else b"\x00\x00"), bytes(6))
        self.batches.append(
            builder.build(producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)
        )
        self.end += 1
        self.committed = self.end

    def start_offset(self) -> int:
        return 0

    def end_offset(self) -> int:
        return self.end

    def high_watermark(self) -> int:
        return self.committed

    def read(self, offset: int, max_bytes: int, on_ready: Callable[[], None]) -> bytes:
        self.reads += 1
        found = b""
        for batch in self.batches:
            if header_at(batch, 0, len(batch)).next_offset <= offset:
                continue
            if found and len(found) + len(batch) > max_bytes:
                break
            found += batch
        return found

    def batch_bytes_max(self) -> int:
        return self.batch_max

    def watch(self, on_moved: Callable[[int], None]) -> None:
        self.watchers.append(on_moved)

    def records(self) -> list[Record]:
        data = b"".join(self.batches)
        return [record for header in split_batches(data, 0, len(data)) for record in read_records(data, header)]

    def compact(self) -> None:
        """Leaves of each key what was written last, without what was aborted; every transaction has ended."""
        open_batches: dict[int, list[tuple[BatchHeader, bytes]]] = {}
        aborted: set[int] = set()
        batches = [(header_at(batch, 0, len(batch)), batch) for batch in self.batches]
        for header, batch in batches:
            producer_id = int(header.producer_id)
            if header.is_control:
                ended = open_batches.pop(producer_id, [])
                if read_records(batch, header)[0].key == b"\x00\x00\x00\x00":
                    aborted.update(int(one.base_offset) for one, _ in ended)
            elif header.is_transactional:
                open_batches.setdefault(producer_id, []).append((header, batch))
        assert not open_batches
        last = {
            record.key: record.offset
            for header, batch in batches
            if not header.is_control and int(header.base_offset) not in aborted
            for record in read_records(batch, header)
        }
        kept: list[bytes] = []
        for header, batch in batches:
            if header.is_control:
                kept.append(batch)
            elif int(header.base_offset) not in aborted:
                for record in read_records(batch, header):
                    if last[record.key] == record.offset:
                        kept.append(alone(header, record))
        self.batches = kept


def alone(header: BatchHeader, record: Record) -> bytes:
    builder = BatchBuilder(base_offset=record.offset)
    builder.append(record.timestamp, record.key, record.value)
    transactional = bool(header.is_transactional)
    return builder.build(
        producer_id=int(header.producer_id), producer_epoch=int(header.producer_epoch), transactional=transactional
    )
