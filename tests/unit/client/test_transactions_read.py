"""Readers of committed records: many interleaved transactions, fetched in pieces, as records and as Arrow."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moldau.client.errors import ClientError
from moldau.client.fetch.fetcher import Fetcher
from moldau.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from moldau.client.results import TopicPartition
from moldau.protocol.errors import CORRUPT_MESSAGE
from moldau.protocol.messages.fetch_response import AbortedTransaction, PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

P0 = TopicPartition("t", 0)
COMMIT, ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"


class Log:
    """A partition with transactions of several producers at once, and what a reader of committed records must see."""

    def __init__(self, chance: random.Random, steps: int) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        # (producer id, first offset, offset of the marker)
        self.aborted: list[tuple[int, int, int]] = []
        self.values: dict[int, bytes] = {}
        self.hidden: set[int] = set()
        self.end = 0
        self._open: dict[int, list[int]] = {}
        for _ in range(steps):
            self._step(chance)
        for producer_id in list(self._open):
            self._finish(producer_id, chance.random() < 0.5)

    def _step(self, chance: random.Random) -> None:
        producer_id = chance.randrange(6)
        if producer_id in self._open and chance.random() < 0.4:
            self._finish(producer_id, chance.random() < 0.6)
        else:
            # Producer 0 is idempotent alone: its records are committed when they are written.
            self._write(producer_id, chance.randrange(1, 5), chance.choice([0, 3]))

    def _write(self, producer_id: int, count: int, codec: int) -> None:
        builder = BatchBuilder(base_offset=self.end, codec=codec)
        offsets = list(range(self.end, self.end + count))
        for offset in offsets:
            value = b"%d of %d" % (offset, producer_id)
            builder.append(1000 + offset, None, value, [])
            self.values[offset] = value
        self._add(builder, producer_id, producer_id > 0, False, count)
        if producer_id > 0:
            self._open.setdefault(producer_id, []).extend(offsets)

    def _finish(self, producer_id: int, commit: bool) -> None:
        offsets = self._open.pop(producer_id)
        if not commit:
            self.hidden.update(offsets)
            self.aborted.append((producer_id, offsets[0], self.end))
        builder = BatchBuilder(base_offset=self.end)
        builder.append(1000, COMMIT if commit else ABORT, b"\x00\x00\x00\x00\x00\x00", [])
        self._add(builder, producer_id, True, True, 1)

    def _add(self, builder: BatchBuilder, producer_id: int, transactional: bool, control: bool, count: int) -> None:
        sequence = -1 if control else 0
        data = builder.build(
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
            control=control,
        )
        self.batches.append((self.end, self.end + count, data))
        self.end += count

    def fetch(self, offset: int, batches: int, isolation: int) -> PartitionData:
        """Some batches from the one with the offset on, and the aborted transactions that reach into them."""
        rows = [row for row in self.batches if row[1] > offset][:batches]
        data = b"".join(row[2] for row in rows)
        end = rows[-1][1] if rows else offset
        aborted = [
            AbortedTransaction(producer_id=producer_id, first_offset=first)
            for producer_id, first, marker in self.aborted
            if first < end and marker >= offset
        ]
        return PartitionData(
            high_watermark=self.end,
            last_stable_offset=self.end,
            aborted_transactions=aborted if isolation == READ_COMMITTED else None,
            records=MemoryRecords(data, 0, len(data)),
        )


def take_records(fetcher: Fetcher, limit: int) -> list[bytes]:
    return [record.value or b"" for record in fetcher.take(limit)]


def take_arrow(fetcher: Fetcher, limit: int) -> list[bytes]:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from moldau.client import arrow
    from moldau.records.arrow_decoder import ArrowColumns

    columns = ArrowColumns(False)
    buffers: list[bytes] = []
    parts = fetcher.take_arrow(limit, columns, buffers)
    if not parts:
        return []
    table: Any = arrow.to_record_batch(parts, columns, buffers)
    values: list[bytes] = table.column("value").to_pylist()
    return values


@pytest.mark.parametrize("isolation", [READ_COMMITTED, READ_UNCOMMITTED])
@pytest.mark.parametrize("way", ["records", "arrow", "both"])
@pytest.mark.parametrize("seed", range(12))
def test_exactly_the_committed_records_are_read_whatever_the_fetches(seed: int, way: str, isolation: int) -> None:
    chance = random.Random(seed)
    log = Log(chance, 300)
    fetcher = Fetcher(isolation, 1 << 26, 1 << 20, True)
    fetcher.assign([P0])
    state = fetcher.partitions[P0]
    start = chance.randrange(log.end)
    fetcher.seek(state, start)
    seen: list[bytes] = []
    while state.position is not None and state.position < log.end:
        asked = state.fetch_offset
        assert fetcher.on_partition(state, asked, log.fetch(asked, chance.randrange(1, 9), isolation)) is None
        while not state.empty:
            limit = chance.randrange(1, 12)
            use_arrow = way == "arrow" or (way == "both" and chance.random() < 0.5)
            seen += take_arrow(fetcher, limit) if use_arrow else take_records(fetcher, limit)
            if chance.random() < 0.3:
                break  # the next fetch arrives while something is kept
    hidden = log.hidden if isolation == READ_COMMITTED else set()
    assert seen == [value for offset, value in log.values.items() if offset >= start and offset not in hidden]
    assert log.hidden and len(log.aborted) > 10, "the log has something to hide"


def test_a_marker_that_cannot_be_read_is_an_error_of_the_partition() -> None:
    log = Log(random.Random(1), 0)
    log._write(1, 1, 0)
    log._finish(1, False)
    base, end, data = log.batches[-1]
    log.batches[-1] = (base, end, data[:61] + b"\xff" * (len(data) - 61))
    fetcher = Fetcher(READ_COMMITTED, 1 << 20, 1 << 20, False)
    fetcher.assign([P0])
    state = fetcher.partitions[P0]
    fetcher.seek(state, 0)
    fetcher.on_partition(state, 0, log.fetch(0, 5, READ_COMMITTED))
    with pytest.raises(ClientError) as raised:
        fetcher.take(10)
    assert raised.value.code == CORRUPT_MESSAGE
