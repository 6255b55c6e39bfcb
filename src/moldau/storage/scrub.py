"""Reads old segments again at a low rate and reports what is not what was written, before somebody needs it.

A pass visits every flushed segment of every log, from a log chosen at random on, so that restarts do not always leave
the same ones out; it takes a day at least. The disk's threads read, and leave nothing in the page cache that was not
there before; the node's own turn checks a piece at a time.
Damage is reported with file, position and offset, once, and counted; nothing is changed.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable

from moldau.records.clocks import NEVER_MS
from moldau.storage.batch_check import check_batches
from moldau.storage.checkpoints import Partition
from moldau.storage.disk import File
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.segment import LOG_SUFFIX, Segment

logger = logging.getLogger("moldau.storage")

PIECE_BYTES = 128 << 10
BATCH_BYTES_MAX = 128 << 20  # more than a request may have; a damaged size must not make the node read a gigabyte
FIRST_PASS_DELAY_MS = 60_000
PASS_MS_MIN = 86_400_000
FINDINGS_MAX = 1000


class Place:
    """Where the pass stands: inside one segment."""

    def __init__(self, log: Log, segment: Segment, end_offset: int, file: File) -> None:
        self.log = log
        self.segment = segment
        self.size = segment.size
        self.file = file
        self.position = 0
        self.next_offset = segment.base_offset
        self.end_offset = end_offset
        self.wanted_bytes = PIECE_BYTES

    def is_valid(self) -> bool:
        """Whether the log still has this segment, and it is still what it was."""
        log = self.log
        if log.closed or log.log_directory.failed:
            return False
        number = bisect_left(log.base_offsets, self.segment.base_offset)
        return (
            number < len(log.segments) - 1 and log.segments[number] is self.segment and self.segment.size == self.size
        )


class Scrub:
    """See the module. `poll` when its deadline comes; `on_deadline` is told when that is earlier than it said."""

    def __init__(self, logs: LogManager, bytes_per_second: int) -> None:
        self.logs = logs
        self.bytes_per_second = bytes_per_second
        self.pass_ms_min = PASS_MS_MIN
        self.on_deadline: Callable[[int], None] | None = None
        # For metrics.
        self.bytes_total = 0
        self.passes_total = 0
        self.damaged_total = 0
        self.findings: dict[tuple[str, int], str] = {}  # by file and position
        self._place: Place | None = None
        self._reading = False
        self._read_began_ms = 0
        self._next_ms = -1
        self._in_pass = False
        self._pass_started_ms = 0
        self._waiting: list[Partition] = []  # logs that this pass has not come to, the next one last
        self._base_offset = 0  # segments of the current log from here on are still to be read

    def change_rate(self, bytes_per_second: int) -> None:
        """0 stops it; a pass that was stopped goes on where it was."""
        self.bytes_per_second = bytes_per_second
        if self.on_deadline is not None and bytes_per_second > 0 and self._next_ms >= 0:
            self.on_deadline(self._next_ms)

    def poll(self, now_ms: int) -> int:
        """Reads the next piece if it is time; returns when to look again."""
        if self.bytes_per_second <= 0 or self._reading:
            return NEVER_MS
        if self._next_ms < 0:
            self._next_ms = now_ms + FIRST_PASS_DELAY_MS
        elif now_ms >= self._next_ms:
            self._read_next(now_ms)
        return NEVER_MS if self._reading else self._next_ms

    def _read_next(self, now_ms: int) -> None:
        if not self._in_pass:
            self._begin_pass(now_ms)
        place = self._place
        if place is not None and not place.is_valid():
            self._leave()
            place = None
        if place is None:
            place = self._find_segment()
        if place is None:
            self._in_pass = False
            self.passes_total += 1
            self._next_ms = max(self._pass_started_ms + self.pass_ms_min, now_ms + 1)
            return
        self._place = place
        self._reading = True
        self._read_began_ms = now_ms
        place.wanted_bytes = min(place.wanted_bytes, place.size - place.position)
        self.logs.disk.read_later(
            place.file,
            place.position,
            place.wanted_bytes,
            lambda outcome: self._on_read(place, outcome),
            keep=False,
        )

    def _begin_pass(self, now_ms: int) -> None:
        self._in_pass = True
        self._pass_started_ms = now_ms
        partitions = sorted(self.logs.logs, reverse=True)
        first = self.logs.random_below(len(partitions)) if partitions else 0
        self._waiting = partitions[first:] + partitions[:first]
        self._base_offset = 0

    def _find_segment(self) -> Place | None:
        """The next segment that is closed and flushed."""
        while self._waiting:
            log = self.logs.logs.get(self._waiting[-1])
            if log is not None and not log.closed and not log.log_directory.failed:
                for number in range(bisect_left(log.base_offsets, self._base_offset), len(log.segments) - 1):
                    segment = log.segments[number]
                    if log.base_offsets[number + 1] > log.recovery_point:
                        break
                    self._base_offset = segment.base_offset + 1
                    try:
                        file = self.logs.disk.open(segment.path(LOG_SUFFIX))
                    except OSError as error:
                        self._report(segment.path(LOG_SUFFIX), 0, segment.base_offset, f"cannot be opened: {error}")
                        continue
                    if segment.size > 0:
                        return Place(log, segment, log.base_offsets[number + 1], file)
            self._waiting.pop()
            self._base_offset = 0
        return None

    def _on_read(self, place: Place, outcome: bytes | OSError) -> None:
        self._reading = False
        if not place.is_valid():
            self._leave()
            self._rest(0)
        elif isinstance(outcome, OSError):
            # A sector that cannot be read is what this is looking for; the rest of the disk may be well.
            self._report_at(place, place.next_offset, f"cannot be read: {outcome}")
            self._leave()
            self._rest(0)
        else:
            self._check(place, outcome)
            self._rest(len(outcome))

    def _check(self, place: Place, data: bytes) -> None:
        checked = check_batches(data, place.next_offset, place.end_offset)
        place.position += checked.size
        place.next_offset = checked.next_offset
        wanted_bytes, place.wanted_bytes = place.wanted_bytes, PIECE_BYTES
        self.bytes_total += checked.size
        if checked.problem:
            self._report_at(place, place.next_offset, checked.problem)
            # Where the next batch begins is known only if the size of this one can be believed.
            place.position = place.position + checked.batch_size if checked.batch_size > 0 else place.size
        elif len(data) < wanted_bytes:
            self._report_at(place, place.next_offset, f"the file should have {place.size} bytes and has fewer")
            place.position = place.size
        elif checked.size == 0:
            rest = place.size - place.position
            if checked.batch_size <= len(data) or checked.batch_size > min(rest, BATCH_BYTES_MAX):
                self._report_at(place, place.next_offset, f"the last {rest} bytes are no whole batch")
                place.position = place.size
            else:
                place.wanted_bytes = checked.batch_size
        if place.position >= place.size:
            self._leave()

    def _leave(self) -> None:
        if self._place is not None:
            self._place.file.close()
            self._place = None

    def _rest(self, size: int) -> None:
        """Sets the time of the next piece, and says so. Pieces begin as far apart as the rate wants."""
        self._next_ms = self._read_began_ms + size * 1000 // max(self.bytes_per_second, 1)
        if self.on_deadline is not None and self.bytes_per_second > 0:
            self.on_deadline(self._next_ms)

    def _report_at(self, place: Place, offset: int, problem: str) -> None:
        self._report(place.segment.path(LOG_SUFFIX), place.position, offset, problem)

    def _report(self, path: str, position: int, offset: int, problem: str) -> None:
        if (path, position) in self.findings:
            return
        self.damaged_total += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings[(path, position)] = f"{problem} at offset {offset}"
        logger.error(
            "%s is damaged at position %d, offset %d: %s. Restore the file from a copy, or delete the records up to "
            "there.",
            path,
            position,
            offset,
            problem,
        )
