"""Snapshots of the metadata: when one is due, and what is in it; also the records of the format step."""

from __future__ import annotations

import logging
from itertools import islice
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.features import LATEST_METADATA_VERSION, METADATA_VERSION, default_feature_levels
from moldau.metadata.image import MetadataImage
from moldau.metadata.snapshot import iterate_records
from moldau.node.metadata_log import MetadataLog
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    FeatureLevelRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.replica import Raft
from moldau.raft.snapshots import SnapshotBuilder, snapshot_values
from moldau.records.clocks import NEVER_MS
from moldau.storage.disk import Disk

logger = logging.getLogger("moldau.metadata")

RECORDS_PER_TURN: Final = 200
PAUSE_MS: Final = 5
"""Between two turns of a snapshot, for everybody else: it takes as long as it takes."""


class SnapshotInProgress:
    """A snapshot of which some records are encoded."""

    def __init__(self, image: MetadataImage, raft: Raft, now_ms: int) -> None:
        self.id = OffsetAndEpoch(image.offset + 1, image.epoch)
        version, voters = raft.voter_history.voters_before(self.id.offset)
        self._builder = SnapshotBuilder(image.epoch, image.timestamp_ms, version, voters, raft.wall.at(now_ms))
        self._records = iterate_records(image)
        self.encoded = 0

    def step(self) -> bytes | None:
        """Encodes some more; the whole snapshot when there are none left."""
        count = 0
        for record, version in islice(self._records, RECORDS_PER_TURN):
            self._builder.append(encode_metadata_record(record, version))
            count += 1
        self.encoded += count
        return None if count == RECORDS_PER_TURN else self._builder.finish()


class SnapshotWriter:
    """Writes one snapshot at a time, after enough bytes or enough time. A large one is encoded in many turns, so that
    nobody waits for it; what it holds is the image as it was in the first of them."""

    def __init__(self, config: BrokerConfig, log: MetadataLog, raft: Raft, now_ms: int) -> None:
        self._log = log
        self._raft = raft
        self._bytes_between = config.get_int("metadata.log.max.record.bytes.between.snapshots")
        self._interval_ms = config.get_int("metadata.log.max.snapshot.interval.ms")
        self._last_ms = now_ms
        self._bytes_at_last = log.log.size_bytes
        self.records_total = 0
        """Records that were encoded, of all snapshots together."""
        self._writing = False
        self._in_progress: SnapshotInProgress | None = None
        self._next_step_ms = NEVER_MS

    def is_due(self, now_ms: int) -> bool:
        written = self._log.log.size_bytes - self._bytes_at_last
        late = 0 < self._interval_ms <= now_ms - self._last_ms
        return not self._writing and (late or written >= self._bytes_between)

    def write(self, image: MetadataImage, in_transaction: bool, now_ms: int) -> None:
        """Begins a snapshot. Nothing happens when the latest one has all of the image already, nor when it is too
        early; then it stays due."""
        if self._writing or in_transaction or image.offset >= self._raft.high_watermark:
            return
        self._last_ms, self._bytes_at_last = now_ms, self._log.log.size_bytes
        latest = self._log.latest_snapshot()
        if image.is_empty or (latest is not None and latest.offset >= image.offset + 1):
            return
        self._writing = True
        self._in_progress = SnapshotInProgress(image, self._raft, now_ms)
        self._next_step_ms = now_ms
        self.poll(now_ms)

    def poll(self, now_ms: int) -> int:
        """Goes on with what was begun; returns when to call it again."""
        snapshot = self._in_progress
        if snapshot is None:
            return NEVER_MS
        if now_ms < self._next_step_ms:
            return self._next_step_ms
        before = snapshot.encoded
        data = snapshot.step()
        self.records_total += snapshot.encoded - before
        if data is None:
            self._next_step_ms = now_ms + PAUSE_MS
            return self._next_step_ms
        self._in_progress = None
        self._write(snapshot.id, data, now_ms)
        return NEVER_MS

    def _write(self, snapshot: OffsetAndEpoch, data: bytes, now_ms: int) -> None:
        def on_written(error: OSError | None) -> None:
            self._writing = False
            if error is not None:
                logger.error("cannot write a metadata snapshot, trying again later: %s", error)
            else:
                self._log.clean(now_ms)

        self._log.write_snapshot(snapshot, data, on_written)


def read_snapshot_records(log: MetadataLog, snapshot: OffsetAndEpoch) -> list[Message]:
    data = log.read_snapshot(snapshot, 0, log.snapshot_size(snapshot))
    return [decode_metadata_record(value) for value in snapshot_values(data, f"snapshot {snapshot.offset}")]


def read_bootstrap_records(disk: Disk, directory: str) -> list[Message]:
    """What the format step wrote; without its file the levels of this release."""
    path = f"{directory.rstrip('/')}/bootstrap.checkpoint"
    if disk.exists(path):
        return [decode_metadata_record(value) for value in snapshot_values(disk.read_file(path), path)]
    levels = {METADATA_VERSION: LATEST_METADATA_VERSION, **default_feature_levels(LATEST_METADATA_VERSION)}
    return [FeatureLevelRecord(name, level) for name, level in levels.items()]
