"""Random operations on a log, held against a list: nothing appears, nothing is lost, offsets never lie."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest

from moldau.protocol.errors import OFFSET_OUT_OF_RANGE, KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import split_batches
from moldau.storage.log import Log
from tests.unit.storage.helpers import NOW_MS, append, batch, config, content, new_log, read_all, records_in, reopen


class Model:
    """What the log should hold: batches as (base offset, values, timestamp, epoch)."""

    def __init__(self, seed: int, path: Path) -> None:
        self.random = random.Random(seed)
        settings = config(
            segment_bytes=self.random.choice([400, 1000, 5000]),
            index_interval_bytes=self.random.choice([0, 100, 400]),
            segment_ms=self.random.choice([50, 10**9]),
            retention_ms=-1,
        )
        self.log: Log = new_log(path, settings)
        self.batches: list[tuple[int, list[bytes], int, int]] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.sequence = 0
        self.time = 0

    def records(self) -> list[tuple[int, bytes]]:
        return [
            (base + number, value)
            for base, values, _, _ in self.batches
            for number, value in enumerate(values)
            if base + number >= self.start
        ]

    def step(self) -> None:
        operations = [self.append] * 12 + [self.follow, self.read, self.read, self.find_time, self.roll, self.flush]
        operations += [self.truncate, self.advance_start, self.retain, self.stop_cleanly, self.crash, self.tear]
        self.random.choice(operations)()

    def append(self) -> None:
        values = [self.random.randbytes(self.random.randrange(60)) for _ in range(self.random.randrange(1, 5))]
        self.time += self.random.randrange(-5, 20)
        if self.random.random() < 0.1:
            self.epoch += 1
        result = append(self.log, *values, timestamp=NOW_MS + self.time, leader_epoch=self.epoch)
        assert (result.first_offset, result.last_offset) == (self.end, self.end + len(values) - 1)
        self.batches.append((self.end, values, self.time, self.epoch))
        self.end += len(values)

    def follow(self) -> None:
        base = self.end + self.random.choice([0, 0, 3])
        data = batch([b"f"], NOW_MS + self.time, base_offset=base, leader_epoch=self.epoch)
        self.log.append_as_follower(MemoryRecords(data), NOW_MS)
        self.batches.append((base, [b"f"], self.time, self.epoch))
        self.end = base + 1

    def read(self) -> None:
        offset = self.random.randint(self.start - 1, self.end + 1)
        bound = self.random.choice([self.end, *[base for base, _, _, _ in self.batches]])
        limit = self.random.choice([1, 200, 700, 1 << 20])
        if not self.start <= offset <= self.end:
            with pytest.raises(KafkaError) as caught:
                self.log.read(offset, limit, bound, True)
            assert caught.value.code == OFFSET_OUT_OF_RANGE
            return
        data = content(self.log.read(offset, limit, bound, True).records)
        expected = [record for record in self.records() if offset <= record[0] < bound]
        found = [(record.offset, record.value) for record in records_in(data) if record.offset >= offset]
        assert found == expected[: len(found)]
        assert bool(found) == bool(expected)
        assert len(data) <= limit or len(split_batches(data, 0, len(data))) == 1

    def find_time(self) -> None:
        target = self.random.randint(-10, self.time + 10)
        expected = [
            (base + number, NOW_MS + time + number, epoch)
            for base, values, time, epoch in self.batches
            for number in range(len(values))
            if time + number >= target and base + number >= self.start
        ]
        found = self.log.offset_for_timestamp(NOW_MS + target, self.end)
        assert found == (expected[0] if expected else None)

    def roll(self) -> None:
        self.log.roll(NOW_MS)

    def flush(self) -> None:
        self.log.flush()

    def truncate(self) -> None:
        if self.batches and self.random.random() < 0.5:
            base = self.random.choice(self.batches[-6:])[0]
            if base >= self.start:
                self.log.truncate_to(base)
                self.batches = [entry for entry in self.batches if entry[0] < base]
                self.end = base

    def advance_start(self) -> None:
        self.start = self.random.randint(self.start, min(self.end, self.start + 5))
        self.log.advance_log_start(self.start)

    def retain(self) -> None:
        self.log.config.retention_bytes = self.log.size_bytes * 2 // 3
        self.log.apply_retention(NOW_MS, self.end)
        self.log.config.retention_bytes = -1
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        self.log.housekeeping(NOW_MS)

    def stop_cleanly(self) -> None:
        self.log.close(NOW_MS)
        self.log = reopen(self.log, clean=True)

    def crash(self) -> None:
        self.log = reopen(self.log)
        end = self.log.log_end_offset
        if end < self.end:
            # A truncation to behind a gap in the offsets is not in the data: the log ends with its last batch then.
            assert all(base + len(values) <= end for base, values, _, _ in self.batches)
            self.end = end

    def tear(self) -> None:
        """A crash in the middle of an append: half a batch is at the end of the file."""
        data = batch([b"torn" * 10], base_offset=self.end)
        path = Path(self.log.active.path(".log"))
        with open(path, "ab") as file:
            file.write(data[: self.random.randrange(1, len(data))])
        self.crash()

    def check(self) -> None:
        log = self.log
        self.batches = [entry for entry in self.batches if entry[0] + len(entry[1]) > self.start]
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.size_bytes == sum(segment.size for segment in log.segments)
        assert log.base_offsets == sorted(set(log.base_offsets))
        assert log.recovery_point <= log.log_end_offset
        for base, _, _, epoch in self.batches:
            if base >= self.start:
                assert log.leader_epochs.epoch_for_offset(base) == epoch


@pytest.mark.parametrize("seed", range(25))
def test_a_log_behaves_like_a_list(seed: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="moldau-log-"))
    try:
        model = Model(seed, folder)
        for _ in range(80):
            model.step()
            model.check()
        assert read_all(model.log) == model.records()
        assert read_all(model.log, max_bytes=1) == model.records()
    finally:
        shutil.rmtree(folder)
