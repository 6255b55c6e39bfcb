"""Arrow tables into records and back, compared with what the plain path makes of the same rows."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

from moldau.client.arrow import send_table
from moldau.client.errors import ClientError, ConfigError
from moldau.client.fetch.fetcher import Fetcher
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.protocol.messages.fetch_response import PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.arrow_decoder import ArrowColumns
from moldau.records.batch import read_header
from moldau.records.builder import BatchBuilder
from moldau.records.murmur2 import partition_for_key
from moldau.records.record_buffer import RecordBuffer
from moldau.records.walk import read_records
from tests.pace import patience

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'moldau[arrow]')")

PARTITIONS = 3


class KeptBatches:
    """Stands for a producer's EncodedBatches, and keeps them."""

    encoded_bytes_max = 600
    request_bytes_max = 5_000

    def __init__(self) -> None:
        self.records: dict[int, list[tuple[Any, ...]]] = {}
        self.sizes: list[int] = []

    def partitions_for(self, topic: str) -> list[int]:
        return list(range(PARTITIONS))

    def send(self, topic: str, partition: int | None, data: bytes, count: int, base: int, highest: int) -> None:
        buffer = RecordBuffer(0, -1)
        buffer.set_encoded(data, count, base, highest)
        batch = buffer.batch(-1, -1, -1)
        self.sizes.append(len(batch))
        records = read_records(batch, read_header(batch, 0, len(batch)))
        kept = self.records.setdefault(-1 if partition is None else partition, [])
        kept += [(record.key, record.value, record.timestamp, record.headers) for record in records]


def send(table: Any) -> KeptBatches:
    kept = KeptBatches()
    send_table(
        kept, "t", table, value="value", key="key", headers="headers", timestamp="timestamp", partition="partition"
    )  # type: ignore[arg-type]
    return kept


def random_bytes(chance: random.Random, nulls: bool) -> bytes | None:
    if nulls and chance.random() < 0.2:
        return None
    return chance.randbytes(chance.choice([0, 1, 11, 12, 13, 60, 70, 200]))


@pytest.mark.parametrize("seed", range(12))
def test_values_alone_become_records_in_order(seed: int) -> None:
    chance = random.Random(seed)
    values = [random_bytes(chance, seed % 2 == 1) for _ in range(chance.choice([1, 10, 500]))]
    table = pa.table(
        {"value": pa.chunked_array([pa.array(values[:7], pa.binary()), pa.array(values[7:], pa.binary())])}
    )
    kept = send(table)
    assert [record[1] for record in kept.records[-1]] == values
    assert all(record[0] is None and record[3] == [] for record in kept.records[-1])
    assert max(kept.sizes) <= KeptBatches.encoded_bytes_max or len(values) == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_table_that_is_framed_in_parts_makes_the_same_batches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that do not fill a batch at the end of one part come again with the next one."""
    chance = random.Random(seed)
    values = [random_bytes(chance, seed % 2 == 1) for _ in range(500)]
    pieces = (
        [pa.array(values, pa.binary())] if seed % 3 else [pa.array(values[:90]), pa.array(values[90:], pa.binary())]
    )
    table = pa.table({"value": pa.chunked_array(pieces, pa.binary())}).slice(chance.choice([0, 11]))
    whole = send(table)
    for rows in (1, 7, 100, 150):
        monkeypatch.setattr("moldau.client.arrow.ROWS_AT_ONCE", rows)
        parts = send(table)
        assert [record[1] for record in parts.records[-1]] == table.column("value").to_pylist()
        assert parts.sizes == whole.sizes or rows < 100  # so few may not fill a batch


def test_long_values_and_times_far_apart_take_wider_framing() -> None:
    lengths = [0, 63, 64, 65, 8191, 8192, 8193, 20, 0]
    times = [0, 63, 64, -64, -65, 8192, -8193, 2**40, -(2**40)]
    table = pa.table({"value": [b"x" * length for length in lengths], "timestamp": pa.array(times, pa.int64())})
    kept = KeptBatches()
    kept.encoded_bytes_max = kept.request_bytes_max = 1 << 20
    send_table(
        kept, "t", table, value="value", key="key", headers="headers", timestamp="timestamp", partition="partition"
    )  # type: ignore[arg-type]
    assert [(len(record[1]), record[2]) for record in kept.records[-1]] == list(zip(lengths, times, strict=True))
    many = pa.table({"value": [b"x" * 20] * 9000})
    kept = KeptBatches()
    kept.encoded_bytes_max = kept.request_bytes_max = 1 << 20
    send_table(
        kept, "t", many, value="value", key="key", headers="headers", timestamp="timestamp", partition="partition"
    )  # type: ignore[arg-type]
    assert len(kept.records[-1]) == 9000 and len(kept.sizes) == 1


@pytest.mark.parametrize("seed", range(12))
def test_keys_headers_and_times_become_what_they_are(seed: int) -> None:
    chance = random.Random(seed)
    rows = []
    for _ in range(200):
        headers = [
            (chance.choice(["h", "längerer Name"]), random_bytes(chance, True)) for _ in range(chance.randrange(3))
        ]
        rows.append((random_bytes(chance, True), random_bytes(chance, True), chance.randrange(10**12), headers))
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.large_binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "timestamp": pa.array([row[2] for row in rows], pa.timestamp("ms")),
            "headers": pa.array([[{"key": k, "value": v} for k, v in row[3]] or None for row in rows], kind),
        }
    ).slice(3)
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows[3:]:
        partition = -1 if row[0] is None else partition_for_key(row[0], PARTITIONS)
        expected.setdefault(partition, []).append(row)
    assert send(table).records == expected


def test_a_partition_column_decides() -> None:
    table = pa.table({"value": ["a", "b", "c"], "partition": [2, 0, 2]})
    kept = send(table)
    assert {p: [record[1] for record in records] for p, records in kept.records.items()} == {2: [b"a", b"c"], 0: [b"b"]}
    for wrong in (3, -1):
        with pytest.raises(ClientError, match="names another one"):
            send(pa.table({"value": ["a"], "partition": [wrong]}))


def test_what_cannot_be_sent_is_said_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="no column value"):
        send(pa.table({"text": ["a"]}))
    with pytest.raises(ClientError, match="Row 1 takes 6"):
        send(pa.table({"value": [b"a", b"x" * 6000]}))
    with pytest.raises(TypeError):
        send([b"a"])


def decoded(batches: list[bytes], position: int, **more: bool) -> tuple[list[ConsumerRecord], Any]:
    """The same fetched bytes through poll()'s and poll_arrow()'s decoders."""
    from moldau.client.arrow import to_record_batch

    partition = TopicPartition("t", 1)
    data = b"".join(batches)
    results: list[Any] = []
    for _ in range(2):
        fetcher = Fetcher(0, 1 << 30, 1 << 30, True)
        fetcher.assign([partition])
        state = fetcher.partitions[partition]
        fetcher.seek(state, position)
        row = PartitionData(partition_index=1, high_watermark=9, records=MemoryRecords(data, 0, len(data)))
        assert fetcher.on_partition(state, position, row) is None
        results.append((fetcher, state))
    records = results[0][0].take(10**6)
    columns = ArrowColumns(more.get("headers", True))
    buffers: list[bytes] = []
    parts = results[1][0].take_arrow(10**6, columns, buffers)
    assert results[0][1].position == results[1][1].position
    table = to_record_batch(parts, columns, buffers)
    views = to_record_batch(parts, columns, buffers, views=True)
    assert views.schema.field("value").type == pa.binary_view() and views.to_pylist() == table.to_pylist()
    return records, table


@pytest.mark.parametrize("seed", range(12))
def test_arrow_shows_the_same_records_as_poll(seed: int) -> None:
    chance = random.Random(seed)
    batches = []
    offset = 0
    for _ in range(5):
        builder = BatchBuilder(offset, chance.choice([0, 0, 3, 4]))
        for _ in range(chance.randrange(1, 60)):
            headers = [("h", random_bytes(chance, True)) for _ in range(chance.choice([0, 0, 2]))]
            builder.append_at(
                offset, chance.randrange(10**12), random_bytes(chance, True), random_bytes(chance, True), headers
            )
            offset += chance.choice([1, 1, 3])
        batches.append(builder.build(log_append_time_ms=chance.choice([-1, 77])))
    records, table = decoded(batches, chance.randrange(offset // 2))
    rows = table.to_pylist()
    assert [(r.topic, r.partition, r.offset, r.key, r.value, r.timestamp_type) for r in records] == [
        (row["topic"], row["partition"], row["offset"], row["key"], row["value"], row["timestamp_type"]) for row in rows
    ]
    assert [record.timestamp for record in records] == table.column("timestamp").cast(pa.int64()).to_pylist()
    assert [[(n.encode(), v) for n, v in record.headers] for record in records] == [
        [(pair["key"], pair["value"]) for pair in row["headers"]] for row in rows
    ]


def test_several_topics_in_one_batch_and_keys_that_are_all_null() -> None:
    from moldau.client.arrow import to_record_batch

    fetcher = Fetcher(0, 1 << 30, 1 << 30, True)
    partitions = [TopicPartition("short", 0), TopicPartition("ein längerer", 7)]
    fetcher.assign(partitions)
    for place, partition in enumerate(partitions):
        builder = BatchBuilder(5, 0)
        for number in range(place + 2):
            builder.append_at(5 + number, 1_000 + number, None, b"v" * number, [])
        data = builder.build()
        state = fetcher.partitions[partition]
        fetcher.seek(state, 5)
        row = PartitionData(partition_index=partition.partition, records=MemoryRecords(data, 0, len(data)))
        assert fetcher.on_partition(state, 5, row) is None
    columns = ArrowColumns(False)
    buffers: list[bytes] = []
    table = to_record_batch(fetcher.take_arrow(10**9, columns, buffers), columns, buffers)
    table.validate(full=True)
    assert [(row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in table.to_pylist()] == [
        ("short", 0, 5, None, b""),
        ("short", 0, 6, None, b"v"),
        ("ein längerer", 7, 5, None, b""),
        ("ein längerer", 7, 6, None, b"v"),
        ("ein längerer", 7, 7, None, b"vv"),
    ]


def test_reading_does_not_wait_for_pandas() -> None:
    """pyarrow.array() imports pandas where that is installed, which takes longer than reading a million records."""
    script = """
import sys
from moldau.client.arrow import to_record_batch
from moldau.client.fetch.fetcher import ArrowPart
from moldau.client.results import TopicPartition
from moldau.records.arrow_decoder import ArrowColumns
from moldau.records.batch import read_header
from moldau.records.builder import BatchBuilder
builder = BatchBuilder(0, 0)
builder.append_at(0, 1, b"key", b"a value of some length", [("name", b"header")])
batch = builder.build()
for views in (False, True):
    columns = ArrowColumns(True)
    columns.add_batch(batch, 61, len(batch), read_header(batch, 0, len(batch)), 0, 0)
    assert to_record_batch([ArrowPart(TopicPartition("t", 0), 1, 0)], columns, [batch], views).num_rows == 1
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=patience(60))
