"""Reads the records of a share partition that are to have dead letters, in no turn that waits for the medium."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.node.cold_requests import ColdWait
from moldau.node.share.acknowledgement import Letters
from moldau.node.share.dead_letter_records import Source
from moldau.protocol.records_data import FileRecords
from moldau.records.batch import CorruptBatch, split_batches
from moldau.records.walk import Record, read_records
from moldau.replication.partition import NO_EPOCH, Partition
from moldau.storage.disk import ColdRead, File

log = logging.getLogger("moldau.node")

READ_BYTES_MAX: Final = 1 << 20
COPIED_BYTES_MAX: Final = 4 << 20
"""What was decompressed; one batch may have more."""
READ_UNCOMMITTED: Final = 0


class NotCommittedYet(Exception):
    """A new leader does not know yet that these records are committed."""


class LetterSource:
    """One read from the first of some letters on; `on_ready` is called when what was cold is in memory."""

    def __init__(
        self, partition: Partition, leader_epoch: int, due: list[Letters], on_ready: Callable[[], None]
    ) -> None:
        self._partition = partition
        self._leader_epoch = leader_epoch
        self._due = due
        self._on_ready = on_ready
        self._wait: ColdWait | None = None
        self._was_read: bytes | OSError | None = None

    def read(self) -> Source | None:
        """None while something is cold. Raises KafkaError when this broker does not lead or its disk fails, and
        NotCommittedYet."""
        owner = self._partition.check_leader(self._leader_epoch)
        first = self._due[0].first
        if self._was_read is not None:
            if isinstance(self._was_read, OSError):
                raise owner.storage_failure(self._was_read) from self._was_read
            return self._copy(self._was_read)
        if first < owner.log_start_offset:
            return Source({}, set(), owner.log_start_offset - 1)
        if first >= owner.log_end_offset:
            return Source({}, set(), self._due[-1].last)
        if first >= self._partition.high_watermark.offset:
            raise NotCommittedYet
        if self._wait is None:
            self._wait = ColdWait(owner.disk, self._on_ready)
        wait = self._wait
        wait.begin_try()
        try:
            partition = self._partition
            found = partition.read(first, READ_BYTES_MAX, True, READ_UNCOMMITTED, self._leader_epoch, NO_EPOCH).records
        except ColdRead as cold:
            wait.bring(cold)
            return None
        finally:
            wait.end_try()
        if not isinstance(found, FileRecords) or found.size == 0:
            return Source({}, set(), first)
        file = found.file
        assert isinstance(file, File)
        try:
            data = file.read_now(found.position, found.size)
        except OSError as error:
            raise owner.storage_failure(error) from error
        if data is not None:
            return self._copy(bytes(data))
        file.read_later(found.position, found.size, self._on_read)
        return None

    def _on_read(self, outcome: bytes | OSError) -> None:
        self._was_read = outcome
        self._on_ready()

    def abandon(self) -> None:
        if self._wait is not None:
            self._wait.abandon()

    def _copy(self, data: bytes) -> Source:
        wanted = {offset for letters in self._due for offset in range(letters.first, letters.last + 1)}
        first, covered_to = self._due[0].first, self._due[0].first - 1
        records: dict[int, Record] = {}
        markers: set[int] = set()
        copied = 0
        for header in split_batches(data, 0, len(data)):
            base, last = int(header.base_offset), int(header.last_offset)
            if last < first:
                continue
            if copied >= COPIED_BYTES_MAX:
                break
            covered_to = last
            if header.is_control:
                markers.update(range(base, last + 1))
                continue
            if wanted.isdisjoint(range(base, last + 1)):
                continue
            try:
                found = read_records(data, header)
            except CorruptBatch as error:
                log.error("%s-%d: cannot read records from offset %d on: %s", *self._place, base, error)
                continue
            for record in found:
                copied += len(record.key or b"") + len(record.value or b"")
                if record.offset in wanted:
                    records[record.offset] = record
        return Source(records, markers, max(covered_to, first))

    @property
    def _place(self) -> tuple[str, int]:
        return self._partition.topic, self._partition.index
