"""The part of `kafka-dump-log` that prints producer snapshots and transaction indexes."""

from __future__ import annotations

import os
from typing import TextIO

from moldau.records.crc import crc32c
from moldau.storage.disk import Disk
from moldau.storage.inspect.index import base_offset_of
from moldau.storage.producer_snapshots import CRC_END, CURRENT_VERSION, ENTRY, HEAD
from moldau.storage.producer_state import first_sequence_of
from moldau.storage.txn_index import ENTRY as TRANSACTION


def dump_snapshot(disk: Disk, path: str, out: TextIO, err: TextIO) -> None:
    data = disk.read_file(path)
    wrong = snapshot_damage(data)
    if wrong:
        err.write(f"{wrong}\n")
        return
    _, _, count = HEAD.unpack_from(data)
    for fields in ENTRY.iter_unpack(data[HEAD.size : HEAD.size + count * ENTRY.size]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first_offset = fields
        first = "OptionalLong.empty" if first_offset < 0 else f"OptionalLong[{first_offset}]"
        out.write(
            f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch}"
            f" currentTxnFirstOffset: {first} lastTimestamp: {timestamp}"
        )
        if last_offset >= 0:
            out.write(
                f" firstSequence: {first_sequence_of(last_sequence, delta)} lastSequence: {last_sequence}"
                f" lastOffset: {last_offset} offsetDelta: {delta} timestamp: {timestamp}"
            )
        out.write("\n")


def snapshot_damage(data: bytes) -> str | None:
    """Why these bytes are no snapshot; None when they are one."""
    if len(data) >= 2 and int.from_bytes(data[:2], "big") != CURRENT_VERSION:
        version = int.from_bytes(data[:2], "big", signed=True)
        return f"Snapshot failed schema validation: Snapshot contained an unknown file version {version}"
    if len(data) < HEAD.size or HEAD.size + HEAD.unpack_from(data)[2] * ENTRY.size > len(data):
        return "Snapshot failed schema validation: null"
    stored, computed = HEAD.unpack_from(data)[1], crc32c(data[CRC_END:])
    if stored != computed:
        return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
    return None


def dump_transactions(disk: Disk, path: str, out: TextIO) -> None:
    base_offset_of(os.path.basename(path))
    data = disk.read_file(path) if disk.exists(path) else b""
    whole = len(data) // TRANSACTION.size * TRANSACTION.size
    for _, producer_id, first_offset, last_offset, last_stable_offset in TRANSACTION.iter_unpack(data[:whole]):
        out.write(
            f"version: 0 producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset}"
            f" lastStableOffset: {last_stable_offset}\n"
        )
