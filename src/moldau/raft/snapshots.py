"""The content of a snapshot file: a header batch, metadata records, a footer batch; offsets count from 0.

With kraft.version 1 the header batch also holds the version and the voters. bootstrap.checkpoint has the same form.
"""

from __future__ import annotations

from moldau.raft.batches import (
    control_batch,
    control_records,
    footer_record,
    header_record,
    metadata_batch,
    metadata_values,
    version_record,
    voters_record,
)
from moldau.raft.voters import VoterSet
from moldau.records.batch import BatchHeader, CorruptBatch, has_valid_crc, split_batches
from moldau.records.builder import SNAPSHOT_FOOTER

RECORDS_PER_BATCH = 1024


class SnapshotBuilder:
    """Puts a snapshot together, some records at a time."""

    def __init__(
        self,
        epoch: int,
        last_contained_log_timestamp_ms: int,
        kraft_version: int,
        voters: VoterSet | None,
        wall_ms: int,
    ) -> None:
        self._epoch = epoch
        self._wall_ms = wall_ms
        head = [header_record(last_contained_log_timestamp_ms)]
        if kraft_version >= 1 and voters is not None:
            head += [version_record(kraft_version), voters_record(voters)]
        self._parts = [control_batch(0, epoch, wall_ms, head)]
        self._offset = len(head)
        self._values: list[bytes] = []

    def append(self, value: bytes) -> None:
        self._values.append(value)
        if len(self._values) == RECORDS_PER_BATCH:
            self._end_batch()

    def _end_batch(self) -> None:
        self._parts.append(metadata_batch(self._offset, self._epoch, self._wall_ms, self._values))
        self._offset += len(self._values)
        self._values = []

    def finish(self) -> bytes:
        if self._values:
            self._end_batch()
        self._parts.append(control_batch(self._offset, self._epoch, self._wall_ms, [footer_record()]))
        return b"".join(self._parts)


def snapshot_bytes(
    values: list[bytes],
    epoch: int,
    last_contained_log_timestamp_ms: int,
    kraft_version: int,
    voters: VoterSet | None,
    wall_ms: int,
) -> bytes:
    builder = SnapshotBuilder(epoch, last_contained_log_timestamp_ms, kraft_version, voters, wall_ms)
    for value in values:
        builder.append(value)
    return builder.finish()


def snapshot_values(data: bytes, name: str) -> list[bytes]:
    """The metadata records of a snapshot; raises ValueError when it is damaged or has no end."""
    return [value for header in check_snapshot(data, name) for value in metadata_values(data, header)]


def check_snapshot(data: bytes, name: str) -> list[BatchHeader]:
    """The batches of a snapshot that is whole; raises ValueError for any other."""
    try:
        batches = split_batches(data, 0, len(data))
    except CorruptBatch as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    if not batches or int(batches[-1].end) != len(data) or not all(has_valid_crc(data, header) for header in batches):
        raise ValueError(f"{name} is damaged")
    controls = control_records(data)
    if not controls or controls[-1][1] != SNAPSHOT_FOOTER:
        raise ValueError(f"{name} has no footer: it was not written to its end")
    return batches
