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
from moldau.records.batch import BatchHeader, CorruptBatch, check_crc, split_batches
from moldau.records.builder import SNAPSHOT_FOOTER

RECORDS_PER_BATCH = 1024


def snapshot_bytes(
    values: list[bytes],
    epoch: int,
    last_contained_log_timestamp_ms: int,
    kraft_version: int,
    voters: VoterSet | None,
    now_ms: int,
) -> bytes:
    head = [header_record(last_contained_log_timestamp_ms)]
    if kraft_version >= 1 and voters is not None:
        head += [version_record(kraft_version), voters_record(voters)]
    parts = [control_batch(0, epoch, now_ms, head)]
    offset = len(head)
    for start in range(0, len(values), RECORDS_PER_BATCH):
        chunk = values[start : start + RECORDS_PER_BATCH]
        parts.append(metadata_batch(offset, epoch, now_ms, chunk))
        offset += len(chunk)
    parts.append(control_batch(offset, epoch, now_ms, [footer_record()]))
    return b"".join(parts)


def snapshot_values(data: bytes, name: str) -> list[bytes]:
    """The metadata records of a snapshot; raises ValueError when it is damaged or has no end."""
    return [value for header in check_snapshot(data, name) for value in metadata_values(data, header)]


def check_snapshot(data: bytes, name: str) -> list[BatchHeader]:
    """The batches of a snapshot that is whole; raises ValueError for any other."""
    try:
        batches = split_batches(data, 0, len(data))
    except CorruptBatch as error:
        raise ValueError(f"{name} is damaged: {error}") from error
    if not batches or int(batches[-1].end) != len(data) or not all(check_crc(data, header) for header in batches):
        raise ValueError(f"{name} is damaged")
    controls = control_records(data)
    if not controls or controls[-1][1] != SNAPSHOT_FOOTER:
        raise ValueError(f"{name} has no footer: it was not written to its end")
    return batches
