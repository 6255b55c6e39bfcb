"""Puts segments with full indexes into the folders of partitions, as years of appends would have left them."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from moldau.records import batch
from moldau.records.builder import BatchBuilder
from moldau.records.crc import crc32c
from moldau.storage.checkpoints import format_lines
from moldau.storage.producer_snapshots import encode_snapshot
from moldau.storage.producer_state import ProducerState

ENTRIES = 100_000
"""A batch and an entry of each index for each of them."""
BETWEEN_MS = 10
HOUR_MS = 3_600_000
OLD_MS = 240 * HOUR_MS


class FullSegment:
    """A closed segment, then an empty one. `timestamp` is when the record of an offset was written."""

    def __init__(self, folder: Path, age_ms: int = 0) -> None:
        folder.mkdir()
        self._folder = folder
        self._first_ms = int(time.time() * 1000) - HOUR_MS - age_ms
        size = self._write_log(folder / f"{0:020d}.log")
        entry, time_entry = struct.Struct(">ii"), struct.Struct(">qi")
        offsets = range(1, ENTRIES)
        (folder / f"{0:020d}.index").write_bytes(b"".join([entry.pack(i, i * size) for i in offsets]))
        times = b"".join([time_entry.pack(self.timestamp(i), i) for i in offsets])
        (folder / f"{0:020d}.timeindex").write_bytes(times)
        for suffix in ("log", "index", "timeindex"):
            (folder / f"{ENTRIES:020d}.{suffix}").touch()
        (folder / f"{ENTRIES:020d}.snapshot").write_bytes(encode_snapshot(ProducerState()))
        (folder / "leader-epoch-checkpoint").write_bytes(format_lines(["0 0"]))

    def timestamp(self, offset: int) -> int:
        return self._first_ms + offset * BETWEEN_MS

    def _write_log(self, path: Path) -> int:
        """Returns the size of a batch."""
        builder = BatchBuilder(codec=0)
        builder.append(0, None, b"v")
        data = bytearray(builder.build())
        data[12:16] = bytes(4)  # the leader epoch
        with path.open("wb", buffering=1 << 20) as file:
            for offset in range(ENTRIES):
                timestamp = self.timestamp(offset)
                struct.pack_into(">q", data, 0, offset)
                struct.pack_into(">qq", data, batch.BASE_TIMESTAMP, timestamp, timestamp)
                struct.pack_into(">I", data, batch.CRC, crc32c(bytes(data[batch.ATTRIBUTES :])))
                file.write(data)
        return len(data)

    def put_into(self, partition: Path) -> None:
        """In place of what is there; partitions share what does not change."""
        for path in partition.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in self._folder.iterdir():
            if path.name.startswith(f"{0:020d}"):
                os.link(path, partition / path.name)
            else:
                (partition / path.name).write_bytes(path.read_bytes())
