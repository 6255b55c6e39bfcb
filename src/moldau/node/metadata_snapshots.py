"""Snapshots of the metadata: when one is due, and what is in it; also the records of the format step."""

from __future__ import annotations

import logging

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.features import LATEST_METADATA_VERSION, METADATA_VERSION, default_feature_levels
from moldau.metadata.image import MetadataImage
from moldau.metadata.snapshot import image_to_records
from moldau.node.metadata_log import MetadataLog
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    FeatureLevelRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.replica import Raft
from moldau.raft.snapshots import snapshot_bytes, snapshot_values
from moldau.storage.disk import Disk

logger = logging.getLogger("moldau.metadata")


class SnapshotWriter:
    """Writes one snapshot at a time, after enough bytes or enough time."""

    def __init__(self, config: BrokerConfig, log: MetadataLog, raft: Raft, now_ms: int) -> None:
        self._log = log
        self._raft = raft
        self._bytes_between = config.get_int("metadata.log.max.record.bytes.between.snapshots")
        self._interval_ms = config.get_int("metadata.log.max.snapshot.interval.ms")
        self._last_ms = now_ms
        self._bytes_at_last = log.log.size_bytes
        self._writing = False

    def is_due(self, now_ms: int) -> bool:
        written = self._log.log.size_bytes - self._bytes_at_last
        late = 0 < self._interval_ms <= now_ms - self._last_ms
        return not self._writing and (late or written >= self._bytes_between)

    def write(self, image: MetadataImage, in_transaction: bool, now_ms: int) -> None:
        """Nothing happens when the latest snapshot has all of the image already."""
        self._last_ms, self._bytes_at_last = now_ms, self._log.log.size_bytes
        if self._writing or image.is_empty or in_transaction or image.offset >= self._raft.high_watermark:
            return
        latest = self._log.latest_snapshot()
        snapshot = OffsetAndEpoch(image.offset + 1, image.epoch)
        if latest is not None and latest.offset >= snapshot.offset:
            return
        values = [encode_metadata_record(record, version) for record, version in image_to_records(image)]
        version, voters = self._raft.voter_history.voters_before(snapshot.offset)
        data = snapshot_bytes(values, snapshot.epoch, image.timestamp_ms, version, voters, now_ms)
        self._writing = True

        def on_written(error: OSError | None) -> None:
            self._writing = False
            if error is not None:
                logger.error("a snapshot of the metadata could not be written, it is tried again later: %s", error)
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
