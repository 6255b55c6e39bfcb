"""A file of our own beside the newest producer snapshot: the batches by which retries are known, and who was seen when.

Apache Kafka's snapshot has one batch of a producer where five are known in memory, and the client's timestamps alone.
This file belongs to the snapshot of its offset and checksum; beside any other, or when it is damaged or missing, it
counts for nothing. Apache Kafka takes no notice of it.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from moldau.records.crc import crc32c
from moldau.storage.producer_state import ProducedBatch, ProducerEntry, ProducerState

FILE = "moldau.producers"
VERSION = 1
HEAD = Struct(">hI")
OWNER = Struct(">qIi")
PRODUCER = Struct(">qhqB")
BATCH = Struct(">iiqiq")


class DamagedWindow(Exception):
    """The file cannot be used."""


def encode(state: ProducerState, offset: int, snapshot: bytes) -> bytes:
    """What is missing in `snapshot`, the encoded snapshot of the same state."""
    parts = [OWNER.pack(offset, crc32c(snapshot), len(state.entries))]
    for entry in state.entries.values():
        parts.append(PRODUCER.pack(entry.producer_id, entry.epoch, entry.seen_ms, len(entry.batches)))
        for one in entry.batches:
            parts.append(
                BATCH.pack(one.first_sequence, one.last_sequence, one.last_offset, one.offset_delta, one.timestamp)
            )
    body = b"".join(parts)
    return HEAD.pack(VERSION, crc32c(body)) + body


def restore(entries: list[ProducerEntry], data: bytes, offset: int, snapshot: bytes, now_ms: int) -> None:
    """Gives the entries of `snapshot` what it does not have, if `data` belongs to it."""
    try:
        version, crc = HEAD.unpack_from(data)
        if version != VERSION or crc != crc32c(memoryview(data)[HEAD.size :]):
            raise DamagedWindow("it has another version or a wrong checksum")
        owner_offset, owner_crc, count = OWNER.unpack_from(data, HEAD.size)
        if owner_offset == offset and owner_crc == crc32c(snapshot):
            _restore(entries, data, count, now_ms)
    except StructError as error:
        raise DamagedWindow(str(error)) from error


def _restore(entries: list[ProducerEntry], data: bytes, count: int, now_ms: int) -> None:
    by_id = {entry.producer_id: entry for entry in entries}
    position = HEAD.size + OWNER.size
    for _ in range(count):
        producer_id, epoch, seen_ms, size = PRODUCER.unpack_from(data, position)
        position += PRODUCER.size
        batches = [ProducedBatch(*BATCH.unpack_from(data, position + index * BATCH.size)) for index in range(size)]
        position += size * BATCH.size
        entry = by_id.get(producer_id)
        if entry is not None and entry.epoch == epoch:
            entry.seen_ms = min(seen_ms, now_ms)  # the clock may have been set back
            entry.batches = batches
