"""What an append to a log did, and what a read of it found."""

from __future__ import annotations

from moldau.protocol.records_data import FileRecords


class AppendResult:
    """What an append did; for a retried batch (`duplicate`) what the first append of it had done."""

    def __init__(
        self, first_offset: int, last_offset: int, append_time_ms: int, max_timestamp: int, log_start_offset: int
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        self.max_timestamp = max_timestamp
        self.log_start_offset = log_start_offset
        self.duplicate = False
        self.record_errors: list[tuple[int, str]] | None = None


class ReadResult:
    """Whole batches of one segment. `end_offset` is not below the last offset + 1 of what was read."""

    def __init__(self, records: FileRecords | None, segment_base_offset: int, position: int, end_offset: int) -> None:
        self.records = records
        self.segment_base_offset = segment_base_offset
        self.position = position
        self.end_offset = end_offset

    @property
    def size(self) -> int:
        return self.records.size if self.records is not None else 0
