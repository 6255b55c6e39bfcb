"""The background scrub finds what is damaged in old segments, says where, and keeps to its rate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.server.posix_disk import PosixDisk
from moldau.storage import scrub as scrub_module
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.scrub import FIRST_PASS_DELAY_MS, Scrub
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append, config

SETTINGS = config(segment_bytes=2000)


class Setting:
    """Two logs with several segments, and a scrub over them on a clock that jumps from deadline to deadline."""

    def __init__(self, tmp_path: Path, bytes_per_second: int = 1 << 20) -> None:
        self.disk = PosixDisk()
        self.logs = LogManager(self.disk, [str(tmp_path)], lambda topic: SETTINGS)
        self.logs.load(NOW_MS)
        self.now_ms = NOW_MS
        for topic in ("a", "b"):
            log = self.logs.create(topic, 0, TOPIC_ID, NOW_MS)
            for number in range(60):
                append(log, b"%d" % number + bytes(100))
        self.scrub = Scrub(self.logs, bytes_per_second)

    def log(self, topic: str) -> Log:
        return self.logs.logs[(topic, 0)]

    def run_pass(self) -> int:
        """Until a pass is over; returns how long it took."""
        passes = self.scrub.passes_total
        self.scrub.poll(self.now_ms)
        started_ms = self.now_ms = self.now_ms + FIRST_PASS_DELAY_MS
        for _ in range(10_000):
            deadline_ms = self.scrub.poll(self.now_ms)
            if self.scrub.passes_total > passes:
                return self.now_ms - started_ms
            self.now_ms = max(self.now_ms, deadline_ms)
        raise AssertionError("the pass does not end")

    def closed_bytes(self) -> int:
        return sum(segment.size for log in self.logs.logs.values() for segment in log.segments[:-1])


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    created = Setting(tmp_path)
    yield created
    created.disk.close()


def damage(log: Log, number: int, position: int, data: bytes | None = None) -> str:
    """Flips a bit, or writes `data` over what is there."""
    path = Path(log.segments[number].path(".log"))
    content = bytearray(path.read_bytes())
    if data is None:
        content[position] ^= 4
    else:
        content[position : position + len(data)] = data
    path.write_bytes(content)
    return str(path)


def batch_at(log: Log, number: int, offset: int) -> int:
    return log.segments[number].find_batch(offset)[0]


def test_a_pass_reads_every_closed_segment_once(setting: Setting) -> None:
    assert all(len(log.segments) > 3 for log in setting.logs.logs.values())
    setting.run_pass()
    assert setting.scrub.bytes_total == setting.closed_bytes()
    assert setting.scrub.findings == {}


@pytest.mark.parametrize("piece", [100, 1000, 1 << 20])
def test_a_flipped_bit_is_reported_with_file_position_and_offset(
    setting: Setting, piece: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a batch that is larger than a piece, and with sound batches behind it."""
    monkeypatch.setattr(scrub_module, "PIECE_BYTES", piece)
    log = setting.log("b")
    offset = log.base_offsets[2] + 3
    position = batch_at(log, 2, offset)
    path = damage(log, 2, position + 70)
    other = damage(setting.log("a"), 0, 70)
    setting.run_pass()
    assert set(setting.scrub.findings) == {(path, position), (other, 0)}
    assert setting.scrub.damaged_total == 2
    message = next(record.getMessage() for record in caplog.records if path in record.getMessage())
    assert f"position {position}, offset {offset}: wrong checksum" in message
    setting.scrub.pass_ms_min = 0
    setting.run_pass()
    assert setting.scrub.damaged_total == 2, "known damage is not reported again"


def test_bytes_that_are_no_batch_end_the_segment_and_not_the_pass(setting: Setting) -> None:
    log = setting.log("a")
    position = batch_at(log, 1, log.base_offsets[1] + 2)
    path = damage(log, 1, position, bytes(61))
    setting.run_pass()
    assert set(setting.scrub.findings) == {(path, position)}


def test_a_file_that_is_too_short_or_gone_is_reported(setting: Setting) -> None:
    short = Path(setting.log("a").segments[0].path(".log"))
    short.write_bytes(short.read_bytes()[:-10])
    gone = Path(setting.log("b").segments[0].path(".log"))
    setting.log("b").segments[0].close_files()
    gone.unlink()
    setting.run_pass()
    assert {path for path, _ in setting.scrub.findings} == {str(short), str(gone)}


def test_it_keeps_to_its_rate(tmp_path: Path) -> None:
    setting = Setting(tmp_path, bytes_per_second=1000)
    assert setting.run_pass() == pytest.approx(setting.closed_bytes(), rel=0.2)
    setting.disk.close()


def test_it_can_be_switched_off_and_on(setting: Setting) -> None:
    setting.scrub.change_rate(0)
    assert setting.scrub.poll(NOW_MS + 10 * FIRST_PASS_DELAY_MS) > NOW_MS * 2
    setting.scrub.change_rate(1000)
    setting.run_pass()
    assert setting.scrub.bytes_total == setting.closed_bytes()


def test_small_logs_are_read_once_a_day(setting: Setting) -> None:
    setting.run_pass()
    read = setting.scrub.bytes_total
    day_ms = 86_400_000
    assert setting.scrub.poll(setting.now_ms) > setting.now_ms + day_ms // 2
    setting.now_ms += day_ms
    setting.run_pass()
    assert setting.scrub.bytes_total == 2 * read


def test_segments_that_go_meanwhile_are_no_damage(setting: Setting) -> None:
    scrub = setting.scrub
    scrub.poll(setting.now_ms)
    setting.now_ms += FIRST_PASS_DELAY_MS
    for step in range(200):
        setting.now_ms = max(setting.now_ms, scrub.poll(setting.now_ms))
        if step == 3:
            setting.log("a").truncate_fully_and_start_at(100, NOW_MS)
            setting.logs.delete("b", 0, NOW_MS)
        if scrub.passes_total:
            break
    assert scrub.passes_total == 1
    assert scrub.findings == {}
