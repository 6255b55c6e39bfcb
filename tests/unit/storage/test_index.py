"""Offset, time and transaction index: entries, lookups, cuts, files byte for byte, damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.server.posix_disk import PosixDisk
from moldau.storage.index import DamagedIndex, OffsetIndex, TimeIndex
from moldau.storage.txn_index import AbortedTransaction, DamagedTransactionIndex, TransactionIndex
from tests.unit.storage.helpers import FaultyDisk

BASE = 1000
# First entries of a real index pair: batches of three records, 15088 bytes each.
OFFSET_BYTES = bytes.fromhex("0000000500003af000000008000075e00000000b0000b0d0")
TIME_BYTES = bytes.fromhex("000001a1dd43756b00000005000001a1dd43756c00000008000001a1dd43756d0000000b")


def offset_index(path: Path, entries: int = 3) -> OffsetIndex:
    index = OffsetIndex(PosixDisk(), str(path / "0.index"), BASE, 1 << 20, True)
    for number in range(1, entries + 1):
        index.append(BASE + 3 * number + 2, number * 15088)
    return index


def time_index(path: Path, entries: int = 3) -> TimeIndex:
    index = TimeIndex(PosixDisk(), str(path / "0.timeindex"), BASE, 1 << 20, True)
    for number in range(1, entries + 1):
        index.maybe_append(0x1A1DD43756A + number, BASE + 3 * number + 2)
    return index


def test_files_have_the_bytes_kafka_writes(tmp_path: Path) -> None:
    offset_index(tmp_path).write()
    time_index(tmp_path).write()
    assert (tmp_path / "0.index").read_bytes() == OFFSET_BYTES
    assert (tmp_path / "0.timeindex").read_bytes() == TIME_BYTES


def test_only_new_entries_are_written_the_second_time(tmp_path: Path) -> None:
    index, times = offset_index(tmp_path, 2), time_index(tmp_path, 2)
    for _ in range(2):
        index.write()
        times.write()
    index.append(BASE + 11, 3 * 15088)
    times.maybe_append(0x1A1DD43756D, BASE + 11)
    index.write()
    times.write()
    assert (tmp_path / "0.index").read_bytes() == OFFSET_BYTES
    assert (tmp_path / "0.timeindex").read_bytes() == TIME_BYTES


def test_an_index_is_looked_up_in_its_file(tmp_path: Path) -> None:
    offset_index(tmp_path).write()
    index = OffsetIndex(PosixDisk(), str(tmp_path / "0.index"), BASE, 1 << 20, False)
    index.load(1 << 20)
    lookups = {BASE: 0, BASE + 4: 0, BASE + 5: 15088, BASE + 7: 15088, BASE + 11: 45264, BASE + 2**40: 45264}
    assert {offset: index.lookup(offset).position for offset in lookups} == lookups
    assert [index.last_before(position).position for position in (0, 15088, 45263, 1 << 30)] == [0, 15088, 30176, 45264]
    assert index.count_all() == 3 and len(index.offsets) == 0, "nothing of it is in memory"


def test_what_is_appended_goes_on_where_the_file_ends(tmp_path: Path) -> None:
    offset_index(tmp_path, 2).write()
    time_index(tmp_path, 2).write()
    index = OffsetIndex(PosixDisk(), str(tmp_path / "0.index"), BASE, 1 << 20, False)
    times = TimeIndex(PosixDisk(), str(tmp_path / "0.timeindex"), BASE, 1 << 20, False)
    index.load(1 << 20)
    times.load(1 << 20)
    index.append(BASE + 11, 3 * 15088)
    assert not times.maybe_append(0x1A1DD43756C, BASE + 11), "not later than what the file has"
    assert times.maybe_append(0x1A1DD43756D, BASE + 11)
    assert [index.lookup(BASE + n).position for n in (4, 5, 8, 11)] == [0, 15088, 30176, 45264]
    assert [times.lookup(0x1A1DD43756A + n).offset - BASE for n in range(4)] == [0, 5, 8, 11]
    index.write()
    times.write()
    assert (tmp_path / "0.index").read_bytes() == OFFSET_BYTES
    assert (tmp_path / "0.timeindex").read_bytes() == TIME_BYTES


def test_a_write_that_failed_halfway_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    """Half of its entries twice, in a file of the right size, would be out of order somewhere in the middle."""
    disk = FaultyDisk()
    index = OffsetIndex(disk, str(tmp_path / "0.index"), BASE, 1 << 20, True)
    for number in range(1, 4):
        index.append(BASE + 3 * number + 2, number * 15088)
    disk.bytes_left = 16
    with pytest.raises(OSError, match="No space"):
        index.write()
    disk.bytes_left = None
    index.write()
    assert (tmp_path / "0.index").read_bytes() == OFFSET_BYTES


def test_times_are_found(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert index.lookup(5).offset == BASE
    assert index.lookup(0x1A1DD43756B).offset == BASE + 5
    assert index.lookup(0x1A1DD437570).offset == BASE + 11
    assert (index.last_timestamp(), index.last_offset()) == (0x1A1DD43756D, BASE + 11)


def test_a_timestamp_that_has_not_grown_adds_nothing(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert not index.maybe_append(0x1A1DD43756D, BASE + 20)
    assert not time_index(tmp_path, 0).maybe_append(-1, BASE)


@pytest.mark.parametrize("released", [False, True])
def test_cutting_drops_entries_of_batches_that_hold_the_offset(tmp_path: Path, released: bool) -> None:
    index, times = offset_index(tmp_path), time_index(tmp_path)
    index.write()
    times.write()
    if released:
        index.release()
        times.release()
        assert len(index.offsets) == len(times.offsets) == 0
    index.truncate(BASE + 8, 1 << 20)  # the last offset of the second entry's batch
    times.truncate(BASE + 8, 1 << 20)
    assert index.entries() == [(5, 15088)]
    assert (tmp_path / "0.index").read_bytes() == OFFSET_BYTES[:8]
    assert (tmp_path / "0.timeindex").read_bytes() == TIME_BYTES[:12]


def test_full_indexes_say_so(tmp_path: Path) -> None:
    index = OffsetIndex(PosixDisk(), str(tmp_path / "i"), 0, 17, True)
    index.append(1, 1)
    assert not index.is_full
    index.append(2, 2)
    assert index.is_full
    times = TimeIndex(PosixDisk(), str(tmp_path / "t"), 0, 36, True)
    times.maybe_append(1, 1)
    assert not times.is_full
    times.maybe_append(2, 2)
    assert times.is_full


@pytest.mark.parametrize(
    "data",
    [OFFSET_BYTES[:-1], OFFSET_BYTES + bytes(8), OFFSET_BYTES[8:] + OFFSET_BYTES[:8], OFFSET_BYTES[:8] * 2, bytes(80)],
)
def test_a_damaged_offset_index_is_noticed(tmp_path: Path, data: bytes) -> None:
    """At its end when it is opened, elsewhere when somebody comes near."""
    (tmp_path / "0.index").write_bytes(data)
    index = OffsetIndex(PosixDisk(), str(tmp_path / "0.index"), BASE, 1 << 20, False)
    with pytest.raises(DamagedIndex):
        index.load(1 << 20)
        index.lookup(BASE + 11)


def test_an_index_that_points_beyond_its_segment_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "0.index").write_bytes(OFFSET_BYTES)
    with pytest.raises(DamagedIndex):
        OffsetIndex(PosixDisk(), str(tmp_path / "0.index"), BASE, 1 << 20, False).load(45264)


@pytest.mark.parametrize("data", [TIME_BYTES[:-5], TIME_BYTES + bytes(12), bytes(24), b"\xff" * 12])
def test_a_damaged_time_index_is_noticed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "0.timeindex").write_bytes(data)
    with pytest.raises(DamagedIndex):
        TimeIndex(PosixDisk(), str(tmp_path / "0.timeindex"), BASE, 1 << 20, False).load(1 << 20)


@pytest.mark.parametrize(("data", "timestamp"), [(b"", -1), (bytes(8) + b"\x00\x00\x00\x05", 0)])
def test_a_time_index_without_times_is_none_that_is_damaged(tmp_path: Path, data: bytes, timestamp: int) -> None:
    (tmp_path / "0.timeindex").write_bytes(data)
    index = TimeIndex(PosixDisk(), str(tmp_path / "0.timeindex"), BASE, 1 << 20, False)
    index.load(1 << 20)
    assert index.last_timestamp() == timestamp


def test_a_rebuilt_index_replaces_the_file(tmp_path: Path) -> None:
    (tmp_path / "0.index").write_bytes(bytes(1000))
    offset_index(tmp_path).write()
    assert (tmp_path / "0.index").read_bytes() == OFFSET_BYTES


def test_aborted_transactions_have_the_bytes_kafka_writes(tmp_path: Path) -> None:
    index = TransactionIndex(PosixDisk(), str(tmp_path / "3.txnindex"), 3, False)
    assert not (tmp_path / "3.txnindex").exists()
    index.append(AbortedTransaction(8, 4, 6, 7))
    expected = "00000000000000000008000000000000000400000000000000060000000000000007"
    assert (tmp_path / "3.txnindex").read_bytes() == bytes.fromhex(expected)
    again = TransactionIndex(PosixDisk(), str(tmp_path / "3.txnindex"), 3, True)
    assert again.load() == [AbortedTransaction(8, 4, 6, 7)]


def test_aborted_transactions_are_collected_by_overlap(tmp_path: Path) -> None:
    index = TransactionIndex(PosixDisk(), str(tmp_path / "x"), 0, False)
    for entry in (
        AbortedTransaction(1, 0, 10, 11),
        AbortedTransaction(2, 5, 15, 12),
        AbortedTransaction(3, 18, 35, 32),
    ):
        index.append(entry)
    found: list[AbortedTransaction] = []
    assert not index.collect(11, 50, found)
    assert [entry.producer_id for entry in found] == [2, 3]
    found = []
    assert index.collect(0, 12, found), "all transactions that could matter were decided by then"
    assert [entry.producer_id for entry in found] == [1, 2]


@pytest.mark.parametrize("released", [False, True])
def test_cutting_the_transaction_index(tmp_path: Path, released: bool) -> None:
    index = TransactionIndex(PosixDisk(), str(tmp_path / "x"), 0, False)
    index.append(AbortedTransaction(1, 0, 10, 11))
    index.append(AbortedTransaction(2, 5, 15, 16))
    if released:
        index.release()
    index.truncate(15)
    assert index.load() == [AbortedTransaction(1, 0, 10, 11)]
    assert (tmp_path / "x").stat().st_size == 34
    index.reset()
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("count", "released"), [(50, 0), (50, 20), (50, 50), (500, 499), (500, 500)])
def test_aborted_transactions_are_found_wherever_a_reader_begins(tmp_path: Path, count: int, released: int) -> None:
    """Against looking at all of them, for many that overlap; some of them are in the file only."""
    index = TransactionIndex(PosixDisk(), str(tmp_path / "x"), 0, False)
    firsts = [max(0, 10 * n - 7 * (n % 5)) for n in range(count)]
    # Nothing that is still open then begins before the last stable offset.
    stable = [min([10 * n + 10, *firsts[n + 1 :]]) for n in range(count)]
    entries = [AbortedTransaction(n, firsts[n], 10 * n + 9, stable[n]) for n in range(count)]
    for number, entry in enumerate(entries):
        if number == released:
            index.release()
        index.append(entry)
    if released == count:
        index.release()
    assert len(index.entries) == count - released
    for start in range(0, 10 * count + 10, 3):
        end = start + 25
        found: list[AbortedTransaction] = []
        index.collect(start, end, found)
        wanted = [entry for entry in entries if entry.last_offset >= start and entry.first_offset < end]
        assert [one for one in wanted if one not in found] == []
        assert all(one in wanted for one in found)


OUT_OF_ORDER = AbortedTransaction(1, 3, 20, 21).encode() + AbortedTransaction(2, 3, 10, 22).encode()


@pytest.mark.parametrize("data", [bytes(33), b"\x00\x05" + bytes(32), bytes(34), OUT_OF_ORDER])
def test_a_damaged_transaction_index_is_noticed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(DamagedTransactionIndex):
        TransactionIndex(PosixDisk(), str(tmp_path / "x"), 3, True).load()
