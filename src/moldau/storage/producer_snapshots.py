"""Files with the producer state at some offset (.snapshot), so that a start need not read the whole log.

One is taken at each roll and at a clean stop. A damaged one is deleted and the one before it used. The format is Apache
Kafka's and has the last batch of a producer; beside the newest one a file of our own has what is missing there: the
other batches by which a retry is known, when the producer was last heard of, and which finished transactions were not
replicated yet (`producer_window.py`).
"""

from __future__ import annotations

import logging
from struct import Struct

from moldau.records.clocks import WallClock
from moldau.records.crc import crc32c
from moldau.storage import producer_window
from moldau.storage.disk import Disk
from moldau.storage.producer_state import ProducedBatch, ProducerEntry, ProducerState, first_sequence_of

HEAD = Struct(">hIi")
CRC = Struct(">I")
ENTRY = Struct(">qhiqiqiq")
CURRENT_VERSION = 1
CRC_END = 6
SUFFIX = ".snapshot"

logger = logging.getLogger("moldau.storage")


class DamagedSnapshot(Exception):
    """The file is no snapshot that can be used."""


def encode_snapshot(state: ProducerState) -> bytes:
    parts = [b""]
    for entry in sorted(state.entries.values(), key=_producer_id):
        parts.append(
            ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.last_offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    body = len(state.entries).to_bytes(4, "big") + b"".join(parts)
    return CURRENT_VERSION.to_bytes(2, "big") + CRC.pack(crc32c(body)) + body


def _producer_id(entry: ProducerEntry) -> int:
    return entry.producer_id


def decode_snapshot(data: bytes, path: str) -> list[ProducerEntry]:
    if len(data) < HEAD.size:
        raise DamagedSnapshot(f"{path} has only {len(data)} bytes")
    version, crc, count = HEAD.unpack_from(data)
    if version != CURRENT_VERSION:
        raise DamagedSnapshot(f"{path} has version {version}, known is {CURRENT_VERSION}")
    if crc32c(memoryview(data)[CRC_END:]) != crc:
        raise DamagedSnapshot(f"{path} has a wrong checksum")
    if HEAD.size + count * ENTRY.size != len(data):
        raise DamagedSnapshot(f"{path} promises {count} producers and has {len(data)} bytes")
    entries = []
    for fields in ENTRY.iter_unpack(memoryview(data)[HEAD.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = fields
        entry = ProducerEntry(producer_id)
        entry.epoch = epoch
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.transaction_first_offset = first_offset
        if last_offset >= 0:
            first_sequence = first_sequence_of(last_sequence, delta)
            entry.batches.append(ProducedBatch(first_sequence, last_sequence, last_offset, delta, timestamp))
        entries.append(entry)
    return entries


class ProducerSnapshots:
    """The snapshot files in the directory of one log. `last_offset` is where the state was last written or read."""

    __slots__ = ("directory", "disk", "has_window", "last_offset", "offsets", "wall")

    def __init__(
        self, disk: Disk, directory: str, offsets: list[int], wall: WallClock, has_window: bool = False
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.wall = wall
        self.offsets = sorted(offsets)
        self.has_window = has_window
        self.last_offset = 0

    def path(self, offset: int) -> str:
        return f"{self.directory}/{offset:020d}{SUFFIX}"

    def take(self, state: ProducerState) -> bool:
        """Writes the state down if it has moved since the last time."""
        offset = state.end_offset
        if offset <= self.last_offset:
            return False
        snapshot = encode_snapshot(state)
        if state.entries or state.unreplicated:
            # First, so that a crash in between leaves the snapshot before and more to replay, and not a window of one.
            window = producer_window.encode(state, offset, snapshot, self.wall)
            self.disk.replace_file(f"{self.directory}/{producer_window.FILE}", window)
            self.has_window = True
        self.disk.replace_file(self.path(offset), snapshot)
        self.last_offset = offset
        if offset not in self.offsets:
            self.offsets.append(offset)
            self.offsets.sort()
        return True

    def latest(self) -> int:
        return self.offsets[-1] if self.offsets else -1

    def restore(
        self, state: ProducerState, log_start_offset: int, end_offset: int, now_ms: int, expiration_ms: int
    ) -> list[str]:
        """Sets `state` to the newest usable snapshot in (log_start_offset, end_offset]. Returns the files of those that
        are of no use any more; the caller removes them."""
        useless: list[str] = []
        for offset in self.offsets[:]:
            if offset > end_offset or offset <= log_start_offset:
                self.offsets.remove(offset)
                useless.append(self.path(offset))
        while self.offsets:
            offset = self.offsets[-1]
            try:
                snapshot = self.disk.read_file(self.path(offset))
                entries = decode_snapshot(snapshot, self.path(offset))
            except (DamagedSnapshot, FileNotFoundError) as error:
                logger.warning("cannot load a producer snapshot, trying an older one: %s", error)
                self.offsets.remove(offset)
                useless.append(self.path(offset))
                continue
            unreplicated = self._restore_windows(entries, offset, snapshot, now_ms)
            state.restore(entries, offset)
            state.unreplicated = unreplicated
            if expiration_ms >= 0:
                state.expire(now_ms, expiration_ms)
            self.last_offset = offset
            return useless
        state.clear(log_start_offset)
        self.last_offset = log_start_offset
        return useless

    def _restore_windows(
        self, entries: list[ProducerEntry], offset: int, snapshot: bytes, now_ms: int
    ) -> dict[int, int]:
        """Returns the finished transactions that were not replicated."""
        for entry in entries:
            entry.seen_ms = now_ms  # unless more is known
        if self.has_window:
            path = f"{self.directory}/{producer_window.FILE}"
            try:
                window = self.disk.read_file(path)
                return producer_window.restore(entries, window, offset, snapshot, now_ms, self.wall)
            except (producer_window.DamagedWindow, FileNotFoundError) as error:
                logger.warning("cannot read %s, only the last batch of each producer is known: %s", path, error)
        return {}

    def remove(self, offset: int) -> None:
        """At a start."""
        self.disk.blocking().remove(self.path(offset))
        if offset in self.offsets:
            self.offsets.remove(offset)

    def forget(self, offset: int) -> str | None:
        """Takes a snapshot out of the list and says which file it is; the caller removes that later."""
        if offset not in self.offsets:
            return None
        self.offsets.remove(offset)
        return self.path(offset)

    def forget_above(self, offset: int) -> list[str]:
        """The log was truncated there: takes what is above out of the list and says which files that are."""
        paths = [self.path(known) for known in self.offsets if known > offset]
        self.offsets = [known for known in self.offsets if known <= offset]
        self.last_offset = min(self.last_offset, self.latest() if self.offsets else 0)
        return paths

    def keep_only(self, base_offsets: list[int]) -> None:
        """Removes snapshots that stand at no segment's start, except for the newest."""
        wanted = set(base_offsets)
        for offset in self.offsets[:-1]:
            if offset not in wanted:
                self.remove(offset)
