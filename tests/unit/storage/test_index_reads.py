"""How much of its files a log reads to look something up, what it keeps of them, and what it does when they are wrong.

Bytes and calls are counted, not seconds.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from moldau.protocol.errors import KafkaError
from moldau.records.batch import split_batches
from moldau.server.posix_disk import PosixDisk, PosixFile
from moldau.sim.kernel.disk import SimDisk
from moldau.storage.index import STRETCH_ENTRIES, DamagedIndex, OffsetIndex, TimeIndex
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_manager import LogManager
from moldau.storage.recovery import load_log
from moldau.storage.retention_run import SEGMENTS_PER_TURN
from moldau.storage.txn_index import AbortedTransaction, TransactionIndex
from tests.unit.storage.helpers import (
    NOW_MS,
    TOPIC_ID,
    append,
    append_marker,
    batch,
    config,
    content,
    names,
    new_log,
    read_all,
    reopen,
)

ENTRIES = 200_000
BATCH_BYTES = 5000  # 1 GiB of these has that many entries
SMALL = config(segment_bytes=1000, index_interval_bytes=100)


class CountingFile(PosixFile):
    def read(self, position: int, size: int) -> bytes:
        data = super().read(position, size)
        assert isinstance(self.disk, CountingDisk)
        self.disk.note(self.path, data)
        return data


class CountingDisk(PosixDisk):
    """Notes every read."""

    file_class = CountingFile

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, int]] = []

    def note(self, path: str, data: bytes) -> None:
        self.reads.append((path, len(data)))

    def read_at(self, path: str, position: int, size: int) -> bytes:
        data = super().read_at(path, position, size)
        self.note(path, data)
        return data

    def read_file(self, path: str) -> bytes:
        data = super().read_file(path)
        self.note(path, data)
        return data

    def bytes_of(self, *suffixes: str) -> int:
        return sum(size for path, size in self.reads if path.endswith(suffixes))


def open_again(log: Log, disk: PosixDisk) -> Log:
    """After a clean stop."""
    return load_log(
        disk,
        LogDirectory(log.log_directory.path),
        log.directory,
        "topic",
        0,
        config=log.config,
        now_ms=NOW_MS,
        recovery_point=log.log_end_offset,
        clean=True,
    )


def closed(path: Path, count: int = 60) -> Log:
    """A log of several segments, with one record a batch and a timestamp that rises, after a clean stop."""
    log = new_log(path, SMALL)
    for number in range(count):
        append(log, bytes(20), timestamp=NOW_MS + number)
    log.close(NOW_MS)
    assert len(log.segments) > 4
    return log


def index_path(log: Log, number: int, suffix: str) -> Path:
    return Path(log.segments[number].path(suffix))


# Large indexes


def test_an_index_of_any_size_is_opened_with_its_last_entry_and_looked_up_with_a_few_reads(tmp_path: Path) -> None:
    disk = CountingDisk()
    offsets = OffsetIndex(disk, str(tmp_path / "x.index"), 0, 10 << 20, True)
    times = TimeIndex(disk, str(tmp_path / "x.timeindex"), 0, 10 << 20, True)
    rng = random.Random(1)
    position = 0
    for number in range(ENTRIES):
        position += rng.randint(1, 2 * BATCH_BYTES)
        offsets.append(5 * number, position)
        times.maybe_append(NOW_MS + 3 * number, 5 * number)
    offsets.write()
    times.write()
    for index in (offsets, times):
        index.release()
        assert len(index.offsets) == 0
    offsets = OffsetIndex(disk, str(tmp_path / "x.index"), 0, 10 << 20, False)
    times = TimeIndex(disk, str(tmp_path / "x.timeindex"), 0, 10 << 20, False)
    offsets.load(2 << 30)
    times.load(2 << 30)
    assert (times.last_timestamp(), times.last_offset()) == (NOW_MS + 3 * (ENTRIES - 1), 5 * (ENTRIES - 1))
    assert offsets.last().position == position
    assert sum(size for _, size in disk.reads) < 100
    disk.reads.clear()
    for number in range(0, ENTRIES, 997):
        place = offsets.lookup(5 * number + 3)
        assert place.last_offset == 5 * number
        assert offsets.last_before(place.position).position == place.position
        assert times.lookup(NOW_MS + 3 * number + 1).offset == 5 * number
    lookups = 3 * len(range(0, ENTRIES, 997))
    assert len(disk.reads) < 4 * lookups
    assert sum(size for _, size in disk.reads) < 4 * lookups * 12 * STRETCH_ENTRIES


class Indexes:
    """The same entries twice: in memory, and in a file of which nothing is kept."""

    def __init__(self, steps: list[tuple[int, int, int]], in_memory: int) -> None:
        self.disk = SimDisk()
        self.memory = OffsetIndex(self.disk, "m.index", 7, 1 << 20, True)
        self.file = OffsetIndex(self.disk, "f.index", 7, 1 << 20, True)
        self.times_memory = TimeIndex(self.disk, "m.timeindex", 7, 1 << 20, True)
        self.times_file = TimeIndex(self.disk, "f.timeindex", 7, 1 << 20, True)
        self.offset, self.position, self.timestamp = 7, 0, -1
        for number, (offset_step, position_step, time_step) in enumerate(steps):
            if number == len(steps) - in_memory:
                self._release()
            self.offset += offset_step
            self.position += position_step
            self.timestamp += time_step
            for offsets in (self.memory, self.file):
                offsets.append(self.offset, self.position)
            for times in (self.times_memory, self.times_file):
                times.maybe_append(self.timestamp, self.offset)
        if in_memory == 0:
            self._release()

    def _release(self) -> None:
        self.file.write()
        self.file.release()
        self.times_file.write()
        self.times_file.release()


def steps_of(rng: random.Random) -> list[tuple[int, int, int]]:
    """How far each entry is from the one before: evenly, or with jumps that make every guess wrong."""
    far = rng.choice([1, 1, 1000, 10**6])
    steps = []
    for _ in range(rng.choice([0, 1, 2, 60, 64, 65, 128, 129, 500, 900])):
        jump = far if rng.random() < 0.02 else 1
        time_step = rng.choice([0, 0, 1, 2, 1000]) * rng.choice([1, jump * 1000])
        steps.append((rng.randint(1, 50) * min(jump, 1000), rng.randint(61, 900) * min(jump, 100), time_step))
    return steps


@pytest.mark.parametrize("seed", range(60))
def test_a_lookup_in_the_file_finds_what_one_in_memory_finds(seed: int) -> None:
    rng = random.Random(seed)
    steps = steps_of(rng)
    both = Indexes(steps, min(len(steps), rng.choice([0, 0, 1, 5])))
    for _ in range(40):
        offset = rng.randint(0, both.offset + 10)
        position = rng.randint(0, both.position + 10)
        timestamp = rng.randint(-1, both.timestamp + 10)
        if steps:  # and exactly at an entry
            number = rng.randrange(len(steps))
            offset = rng.choice([offset, 7 + both.memory.offsets[number]])
            position = rng.choice([position, both.memory.positions[number]])
        assert both.file.lookup(offset).position == both.memory.lookup(offset).position
        assert both.file.last_before(position).position == both.memory.last_before(position).position
        behind, wanted = both.file.first_behind(position), both.memory.first_behind(position)
        assert (behind and behind.last_offset) == (wanted and wanted.last_offset)
        assert both.times_file.lookup(timestamp).offset == both.times_memory.lookup(timestamp).offset
    assert both.file.last().position == both.memory.last().position
    assert both.file.entries() == both.memory.entries()
    assert both.times_file.entries() == both.times_memory.entries()
    cut = rng.randint(7, both.offset + 10)
    behind = both.memory.lookup(cut)
    for index in (both.file, both.memory, both.times_file, both.times_memory):
        index.truncate(cut, behind.position + 1)
    assert both.file.entries() == both.memory.entries()
    assert both.times_file.entries() == both.times_memory.entries()
    both.file.write()
    both.memory.write()
    assert both.disk.read_file("f.index") == both.disk.read_file("m.index")


@pytest.mark.parametrize("seed", range(40))
def test_a_lookup_ends_whatever_is_in_the_file(seed: int) -> None:
    """Somewhere, or with a word about the damage; never in a circle, and never outside of the file."""
    rng = random.Random(seed)
    both = Indexes([(3, 5000, 2)] * rng.randint(1, 700), 0)
    content = bytearray(both.disk.read_file("f.index"))
    for _ in range(rng.randint(1, 20)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    both.disk.write_file("f.index", bytes(content), sync=False)
    for offset in range(0, both.offset, 17):
        try:
            place = both.file.lookup(offset)
            assert 0 <= place.position <= both.position
            assert place.position == 0 or place.last_offset <= offset
        except DamagedIndex:
            pass


# Logs after a restart


def test_after_a_restart_timestamps_cost_a_few_bytes_a_segment(tmp_path: Path) -> None:
    log = closed(tmp_path)
    disk = CountingDisk()
    again = open_again(log, disk)
    disk.reads.clear()
    last = log.log_end_offset - 1
    assert again.offset_of_max_timestamp(log.log_end_offset) == (last, NOW_MS + last, 0)
    segments = len(again.segments)
    assert disk.bytes_of(".timeindex") < 12 * segments + 12 * STRETCH_ENTRIES * 3
    assert {path for path, _ in disk.reads if path.endswith(".log")} == {again.segments[-1].path(".log")}
    disk.reads.clear()
    assert again.offset_for_timestamp(NOW_MS + 10**6, log.log_end_offset) is None
    assert disk.reads == [], "a segment's largest timestamp is asked for once"
    assert all(segment.time_entries is None or not segment.time_entries.offsets for segment in again.segments)


def test_a_start_and_the_first_retention_run_read_a_few_bytes_of_each_log(tmp_path: Path) -> None:
    settings = config(segment_bytes=1 << 30, index_interval_bytes=1)
    manager = LogManager(PosixDisk(), [str(tmp_path)], lambda _: settings)
    manager.load(NOW_MS)
    logs = 70
    for partition in range(logs):
        log = manager.create("topic", partition, TOPIC_ID, NOW_MS)
        for number in range(300):
            append(log, timestamp=NOW_MS + number)
        log.roll(NOW_MS)
    manager.shutdown(NOW_MS)
    disk = CountingDisk()
    manager = LogManager(disk, [str(tmp_path)], lambda _: settings)
    manager.load(NOW_MS)
    assert disk.bytes_of(".log", "index") == 0
    manager.retention.begin()
    turns = 0
    while not manager.retention.is_over:
        disk.reads.clear()
        assert manager.retention.go_on(NOW_MS + 1000, lambda log: log.log_end_offset) == 0
        assert disk.bytes_of(".timeindex") <= SEGMENTS_PER_TURN * 12
        assert disk.bytes_of(".log", ".index") == 0
        turns += 1
    assert turns == -(-logs // SEGMENTS_PER_TURN)
    disk.reads.clear()
    manager.apply_retention(NOW_MS + 1000, lambda log: log.log_end_offset)
    assert disk.reads == []


def test_a_consumer_of_old_data_reads_little_of_the_index_and_leaves_nothing_in_memory(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(index_interval_bytes=1))
    for number in range(3000):
        append(log, timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    log.close(NOW_MS)
    size = index_path(log, 0, ".index").stat().st_size
    disk = CountingDisk()
    again = open_again(log, disk)
    for offset in range(0, 3000, 100):
        disk.reads.clear()
        records = again.read(offset, 500, 3000, True).records
        assert records is not None and records.size > 300
        assert disk.bytes_of(".index") < size // 3
        again.housekeeping(NOW_MS)
        index = again.segments[0].offset_entries
        assert index is not None and index.count_all() == 2999 and len(index.offsets) == 0


def test_a_consumer_that_goes_on_where_its_last_read_ended_looks_up_the_next_end_only(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(index_interval_bytes=1))
    for number in range(3000):
        append(log, timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    log.close(NOW_MS)
    disk = CountingDisk()
    again = open_again(log, disk)
    offset = reads = 0
    while offset < 2900:
        records = again.read(offset, 2000, 3000, True).records
        assert records is not None
        offset += len(split_batches(content(records), 0, records.size))
        reads += 1
    assert sum(path.endswith(".index") for path, _ in disk.reads) < 1.5 * reads


def test_where_a_read_ended_is_forgotten_when_the_log_is_cut(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(index_interval_bytes=1))
    for number in range(300):
        append(log, timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    records = log.read(100, 2000, 300, True).records
    assert records is not None
    end = 100 + len(split_batches(content(records), 0, records.size))
    log.truncate_to(90, NOW_MS)
    for number in range(90, 300):
        append(log, bytes(number), timestamp=NOW_MS + number)
    assert read_all(log, end)[0] == (end, bytes(end))


def test_where_every_batch_has_an_entry_none_is_read_to_be_found(tmp_path: Path) -> None:
    disk = CountingDisk()
    log = new_log(tmp_path, config(index_interval_bytes=1), disk)
    for _ in range(50):
        append(log, b"one", b"two")
    log.active.forget_recent()
    offset = 4
    while offset < 100:
        disk.reads.clear()
        records = log.read(offset, 500, 100, True).records
        assert records is not None and disk.reads == []
        offset += 2 * len(split_batches(content(records), 0, records.size))
    # The first batch of a segment never has an entry: whether the second begins with an offset has to be looked up.
    for offset in (0, 2):
        log.active.forget_recent()
        disk.reads.clear()
        assert log.read(offset, 500, 100, True).records is not None
        assert len(disk.reads) > 0


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_is_found_by_each_of_its_offsets_whichever_batches_have_entries(tmp_path: Path, seed: int) -> None:
    """Large and small batches in turn, cuts, stops and lost indexes: compared with a walk over the whole segment."""
    rng = random.Random(seed)
    log = new_log(tmp_path, config(index_interval_bytes=300))
    for _ in range(60):
        action = rng.random()
        if action < 0.7:
            sizes = (200, 400) if rng.random() < 0.8 else (1, 20)
            for _ in range(rng.randint(1, 8)):
                append(log, *[bytes(rng.randint(*sizes)) for _ in range(rng.randint(1, 3))])
        elif action < 0.8:
            log.truncate_to(rng.randint(log.log_end_offset // 2, log.log_end_offset), NOW_MS)
        elif action < 0.85:
            log.close(NOW_MS)
            log = open_again(log, PosixDisk())
        elif action < 0.9:
            log.active.rebuild_indexes("a test wants it")
        log.active.forget_recent()
        expected = walk_over(log)
        found = [log.active.find_batch(offset) for offset in range(log.log_end_offset)]
        assert found == expected


def walk_over(log: Log) -> list[tuple[int, int]]:
    """(position, size) of the first batch that ends at or after each offset, in the only segment. A cut may leave
    offsets without a batch."""
    data = Path(log.active.path(".log")).read_bytes()[: log.active.size]
    places: list[tuple[int, int]] = []
    position = 0
    for header in split_batches(data, 0, len(data)):
        places += [(position, header.size)] * (header.last_offset + 1 - len(places))
        position += header.size
    return places + [(-1, 0)] * (log.log_end_offset - len(places))


def test_the_active_segment_goes_on_where_its_index_files_end(tmp_path: Path) -> None:
    """Byte for byte what one run writes, whether or not it was stopped in between."""
    settings = config(index_interval_bytes=100)
    whole, parts = new_log(tmp_path / "whole", settings), new_log(tmp_path / "parts", settings)
    for number in range(40):
        if number % 10 == 0 and number:
            parts.close(NOW_MS)
            parts = open_again(parts, PosixDisk())
            # An entry is due so many bytes after the last one, which a start does not know: let it be known.
            parts.active.bytes_since_index_entry = whole.active.bytes_since_index_entry
        for log in (whole, parts):
            append(log, bytes(20), timestamp=NOW_MS + number)
    for log in (whole, parts):
        log.close(NOW_MS)
    assert index_path(whole, 0, ".index").read_bytes() == index_path(parts, 0, ".index").read_bytes()
    assert read_all(open_again(parts, PosixDisk()), max_bytes=1) == read_all(open_again(whole, PosixDisk()))


# Records without a time


@pytest.mark.parametrize(("timestamp", "entries"), [(0, 1), (-1, 0)])
def test_records_of_1970_or_without_a_timestamp_are_not_read_to_learn_that(
    tmp_path: Path, timestamp: int, entries: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_log(tmp_path, SMALL)
    for _ in range(60):
        append(log, bytes(20), timestamp=timestamp)
    log.close(NOW_MS)
    for number in range(len(log.segments)):
        # What Kafka writes: an entry when the largest timestamp grows, and it begins with -1.
        assert index_path(log, number, ".timeindex").stat().st_size == 12 * entries
    disk = CountingDisk()
    again = open_again(log, disk)
    disk.reads.clear()
    assert again.offset_for_timestamp(NOW_MS, 60) is None
    headers = [path for path, _ in disk.reads if path.endswith(".log")]
    assert disk.bytes_of(".log") == 61 * len(headers) and len(headers) <= 3 * len(again.segments)
    assert [segment.max_timestamp for segment in again.segments] == [timestamp] * len(again.segments)
    assert "rebuilding" not in caplog.text
    found = again.offset_for_timestamp(0, 60)
    assert found == ((0, 0, 0) if timestamp == 0 else None)


@pytest.mark.parametrize("damage", [b"", bytes(12)])
@pytest.mark.parametrize("first_without", [False, True])
def test_a_lost_time_index_is_not_taken_for_one_of_records_without_time(
    tmp_path: Path, damage: bytes, first_without: bool
) -> None:
    log = new_log(tmp_path, config(index_interval_bytes=100))
    for number in range(30):
        append(log, bytes(20), timestamp=-1 if first_without and number == 0 else NOW_MS + number)
    log.roll(NOW_MS)
    log.close(NOW_MS)
    index_path(log, 0, ".timeindex").write_bytes(damage)
    assert open_again(log, PosixDisk()).segments[0].largest_timestamp() == NOW_MS + 29


# Damage in the middle, which nobody looks for


def all_answers(log: Log) -> list[object]:
    """What readers see, by offset and by time."""
    end = log.log_end_offset
    answers: list[object] = [read_all(log, max_bytes=1), read_all(log, max_bytes=250)]
    answers.extend(first_batch(log, offset) for offset in range(end))
    answers.extend(log.offset_for_timestamp(NOW_MS + number, end) for number in range(end + 1))
    return answers


def first_batch(log: Log, offset: int) -> bytes:
    """Of a read that has room for a few; where it ends is not a question of right and wrong, as long as it is whole."""
    data = content(log.read(offset, 500, log.log_end_offset, True).records)
    headers = split_batches(data, 0, len(data))
    assert headers[-1].end == len(data)
    return data[: headers[0].end]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_wrong_somewhere_never_makes_a_read_wrong(tmp_path: Path, suffix: str, seed: int) -> None:
    rng = random.Random(seed)
    log = new_log(tmp_path, config(index_interval_bytes=1))
    for number in range(60):
        # Values that look like batches, as those of whoever keeps segments in a topic.
        value = content_of_a_batch(number) * 3 if number % 3 == 0 else bytes(rng.randint(0, 60))
        append(log, value, timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    log.close(NOW_MS)
    expected = all_answers(open_again(log, PosixDisk()))
    path = index_path(log, 0, suffix)
    good = path.read_bytes()
    for _ in range(4):
        path.write_bytes(damaged(good, 8 if suffix == ".index" else 12, rng))
        assert all_answers(open_again(log, PosixDisk())) == expected
        path.write_bytes(good)


def content_of_a_batch(number: int) -> bytes:
    return batch((b"nested",), NOW_MS + number, base_offset=number)


def damaged(good: bytes, entry_size: int, rng: random.Random) -> bytes:
    """Zeros, swapped or doubled entries, single bytes: anywhere but at the end."""
    data = bytearray(good)
    count = len(good) // entry_size
    first, second = rng.randrange(count - 1), rng.randrange(count - 1)
    kind = rng.choice(["zeros", "swap", "double", "bytes"])
    if kind == "zeros":
        for at in range(min(first, second) * entry_size, (max(first, second) + 1) * entry_size):
            data[at] = 0
    elif kind == "swap":
        one = data[first * entry_size : (first + 1) * entry_size]
        data[first * entry_size : (first + 1) * entry_size] = data[second * entry_size : (second + 1) * entry_size]
        data[second * entry_size : (second + 1) * entry_size] = one
    elif kind == "double":
        data[first * entry_size : (first + 1) * entry_size] = data[second * entry_size : (second + 1) * entry_size]
    else:
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange((count - 1) * entry_size)] ^= 1 << rng.randrange(8)
    return bytes(data)


def test_an_entry_that_sends_readers_far_back_is_found_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They would arrive at the right place, by way of everything in between, each time."""
    log = new_log(tmp_path, config(index_interval_bytes=1))
    for number in range(400):
        append(log, bytes(20), timestamp=NOW_MS + number)
    log.roll(NOW_MS)
    log.close(NOW_MS)
    path = index_path(log, 0, ".index")
    data = bytearray(path.read_bytes())
    for entry in range(100, 300):  # every offset that is looked up in between lies behind entry 99 then
        data[8 * entry : 8 * entry + 4] = (399 - 300 + entry - 100 + 100).to_bytes(4, "big")
    path.write_bytes(data)
    again = open_again(log, PosixDisk())
    assert read_all(again, 150, 100)[0] == (150, bytes(20))
    assert "rebuilding" in caplog.text


def test_an_index_that_is_gone_while_the_log_is_open_is_built_anew(tmp_path: Path) -> None:
    log = closed(tmp_path)
    again = open_again(log, PosixDisk())
    expected = all_answers(again)
    for number in range(len(log.segments) - 1):
        index_path(log, number, ".index").unlink()
        index_path(log, number, ".timeindex").write_bytes(b"")
    assert all_answers(again) == expected


def test_cutting_a_log_whose_index_is_wrong(tmp_path: Path) -> None:
    log = closed(tmp_path)
    path = index_path(log, 1, ".index")
    data = path.read_bytes()
    path.write_bytes(data[:-16] + data[-8:] + data[-8:])
    again = open_again(log, PosixDisk())
    cut = log.base_offsets[2] - 1
    again.truncate_to(cut, NOW_MS)
    for number in range(20):
        append(again, bytes(20), timestamp=NOW_MS + cut + number)
    assert [offset for offset, _ in read_all(again, max_bytes=1)] == list(range(cut + 20))
    again.close(NOW_MS)
    assert [offset for offset, _ in read_all(reopen(again, clean=True), max_bytes=1)] == list(range(cut + 20))


def test_a_segment_that_is_damaged_itself_is_told_of(tmp_path: Path) -> None:
    log = closed(tmp_path)
    index_path(log, 0, ".timeindex").write_bytes(b"")
    path = index_path(log, 0, ".log")
    path.write_bytes(path.read_bytes()[:90] + b"\xff" * (path.stat().st_size - 90))
    again = open_again(log, PosixDisk())
    for _ in range(2):  # what was learned before the damage does not count
        with pytest.raises(KafkaError):
            again.offset_of_max_timestamp(log.log_end_offset)
    assert not again.log_directory.failed
    again.close(NOW_MS)
    assert index_path(log, 0, ".timeindex").read_bytes() == b"", "nor is it written down"


# Aborted transactions


def aborting(path: Path) -> Log:
    """A log in which each segment has aborted and committed transactions of two producers that overlap."""
    log = new_log(path, SMALL)
    for number in range(40):
        for producer_id in (1, 2):
            append(
                log, bytes(10), producer_id=producer_id, epoch=number // 20, sequence=number % 20, transactional=True
            )
        append_marker(log, 1, number // 20, commit=number % 3 == 0)
        if number % 4 == 3:
            append_marker(log, 2, number // 20, commit=False)
    assert len([name for name in names(log) if name.endswith(".txnindex")]) > 4
    return log


def aborted_everywhere(log: Log) -> list[object]:
    end = log.log_end_offset
    return [log.aborted_transactions(start, start + length) for start in range(0, end, 3) for length in (1, 10, end)]


def test_transaction_indexes_are_not_read_at_the_start_and_not_kept(tmp_path: Path) -> None:
    log = aborting(tmp_path)
    expected = aborted_everywhere(log)
    for segment in log.segments[:-1]:
        assert segment.transactions is None or segment.transactions.entries == []
    log.close(NOW_MS)
    disk = CountingDisk()
    again = open_again(log, disk)
    assert disk.bytes_of(".txnindex") == 0
    assert aborted_everywhere(again) == expected
    for segment in again.segments[:-1]:
        assert segment.transactions is None or segment.transactions.entries == []


def test_a_reader_of_committed_records_reads_a_stretch_of_a_large_transaction_index(tmp_path: Path) -> None:
    disk = CountingDisk()
    index = TransactionIndex(disk, str(tmp_path / "x.txnindex"), 0, False)
    count = 20_000
    data = b"".join(AbortedTransaction(n, 10 * n, 10 * n + 9, 10 * n + 10).encode() for n in range(count))
    (tmp_path / "x.txnindex").write_bytes(data)
    index = TransactionIndex(disk, str(tmp_path / "x.txnindex"), 0, True)
    for start in (0, 77_777, 10 * count - 5):
        disk.reads.clear()
        found: list[AbortedTransaction] = []
        index.collect(start, start + 40, found)
        wanted = [n for n in range(count) if 10 * n + 9 >= start and 10 * n < start + 40]
        assert [entry.producer_id for entry in found] == wanted
        assert sum(size for _, size in disk.reads) < len(data) // 10
        assert index.entries == []


@pytest.mark.parametrize("damage", ["gone", "version", "order", "odd"])
def test_a_damaged_transaction_index_is_built_anew_when_it_is_read(tmp_path: Path, damage: str) -> None:
    log = aborting(tmp_path)
    expected = aborted_everywhere(log)
    log.close(NOW_MS)
    again = open_again(log, PosixDisk())
    files = {path: path.read_bytes() for path in Path(log.directory).glob("*.txnindex")}
    for path, data in files.items():
        entry = len(data) // 34 // 2 * 34
        if damage == "gone":
            path.unlink()
        elif damage == "version":
            path.write_bytes(data[:entry] + b"\x07\x07" + data[entry + 2 :])
        elif damage == "order":
            path.write_bytes(data + data[:34])
        else:
            path.write_bytes(data[:-1])
    assert aborted_everywhere(again) == expected
    again.close(NOW_MS)
    assert {path: path.read_bytes() for path in Path(log.directory).glob("*.txnindex")} == files


def test_a_log_with_a_damaged_transaction_index_is_cut_and_goes_on(tmp_path: Path) -> None:
    log = aborting(tmp_path)
    log.close(NOW_MS)
    again = open_again(log, PosixDisk())
    number = next(n for n, segment in reversed(list(enumerate(log.segments))) if segment.transaction_index_exists)
    path = index_path(log, number, ".txnindex")
    path.write_bytes(path.read_bytes()[:-1])
    cut = log.segments[number].base_offset + 2
    expected = open_again(log, PosixDisk())
    before = [one for one in expected.collect_aborted(0, log.log_end_offset) if one.last_offset < cut]
    again.truncate_to(cut, NOW_MS)
    assert again.collect_aborted(0, log.log_end_offset) == before
    append(again, bytes(10), producer_id=9, epoch=0, sequence=0, transactional=True)
    append_marker(again, 9, 0, commit=False)
    after = again.collect_aborted(0, log.log_end_offset)
    assert after[:-1] == before and (after[-1].producer_id, after[-1].first_offset) == (9, cut)
    again.close(NOW_MS)
    assert reopen(again, clean=True).collect_aborted(0, log.log_end_offset) == after


# Retention in parts


def test_a_retention_run_takes_a_few_segments_a_turn(tmp_path: Path) -> None:
    settings = config(segment_bytes=200, retention_bytes=0)
    manager = LogManager(PosixDisk(), [str(tmp_path)], lambda _: settings)
    manager.load(NOW_MS)
    logs = [manager.create("topic", partition, TOPIC_ID, NOW_MS) for partition in range(3)]
    for log in logs:
        for _ in range(2 * SEGMENTS_PER_TURN):
            append(log, bytes(20))
            log.roll(NOW_MS)
    manager.retention.begin()
    manager.delete("topic", 1, NOW_MS)
    deleted = []
    while not manager.retention.is_over:
        manager.retention.begin()  # the next time may come while it is under way
        deleted.append(manager.retention.go_on(NOW_MS, lambda log: log.log_end_offset))
    assert max(deleted) == SEGMENTS_PER_TURN
    assert sum(deleted) == 4 * SEGMENTS_PER_TURN
    assert [len(log.segments) for log in logs] == [1, 2 * SEGMENTS_PER_TURN + 1, 1], "one was deleted in the meantime"
    assert manager.retention.go_on(NOW_MS, lambda log: log.log_end_offset) == 0


def test_housekeeping_begins_a_retention_run_and_goes_on_with_it(tmp_path: Path) -> None:
    settings = config(segment_bytes=200, retention_bytes=0)
    manager = LogManager(PosixDisk(), [str(tmp_path)], lambda _: settings)
    manager.load(NOW_MS)
    log = manager.create("topic", 0, TOPIC_ID, NOW_MS)
    for _ in range(2 * SEGMENTS_PER_TURN):
        append(log, bytes(20))
    now_ms = NOW_MS + manager.first_retention_delay_ms
    manager.housekeeping(now_ms, lambda one: one.log_end_offset)
    assert log.log_start_offset > 0 and not manager.retention.is_over
    for second in range(1, 4):
        manager.housekeeping(now_ms + 1000 * second, lambda one: one.log_end_offset)
    assert log.log_start_offset == log.log_end_offset
    assert manager.retention.is_over
