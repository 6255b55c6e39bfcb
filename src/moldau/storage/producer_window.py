"""A file of our own beside the newest producer snapshot: what is known in memory and has no place in the snapshot.

Apache Kafka's snapshot has one batch of a producer where five are known, the client's timestamps alone, and nothing of
finished transactions that still hold back readers of committed records, because their markers are not replicated. What
the file says of producers belongs to the snapshot of its offset and checksum, and counts for nothing beside any other.
Its finished transactions count beside an older one too, if they end below it: none holds readers back for longer than
until the high watermark passes its marker. A damaged file counts for nothing. Apache Kafka takes no notice of it.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from moldau.records.clocks import WallClock
from moldau.records.crc import crc32c
from moldau.storage.producer_state import ProducedBatch, ProducerEntry, ProducerState

FILE = "moldau.producers"
VERSION = 2
HEAD = Struct(">hI")
OWNER = Struct(">qIii")
UNREPLICATED = Struct(">qq")
PRODUCER = Struct(">qhqB")
BATCH = Struct(">iiqiq")


class DamagedWindow(Exception):
    """The file cannot be used."""


def encode(state: ProducerState, offset: int, snapshot: bytes, wall: WallClock) -> bytes:
    """What is missing in `snapshot`, the encoded snapshot of the same state."""
    parts = [OWNER.pack(offset, crc32c(snapshot), len(state.unreplicated), len(state.entries))]
    for first_offset, last_offset in state.unreplicated.items():
        parts.append(UNREPLICATED.pack(first_offset, last_offset))
    for entry in state.entries.values():
        seen_ms = wall.at(entry.seen_ms)
        parts.append(PRODUCER.pack(entry.producer_id, entry.epoch, seen_ms, len(entry.batches)))
        for one in entry.batches:
            parts.append(
                BATCH.pack(one.first_sequence, one.last_sequence, one.last_offset, one.offset_delta, one.timestamp)
            )
    body = b"".join(parts)
    return HEAD.pack(VERSION, crc32c(body)) + body


def restore(
    entries: list[ProducerEntry], data: bytes, offset: int, snapshot: bytes, now_ms: int, wall: WallClock
) -> dict[int, int]:
    """Gives the entries of `snapshot` what it does not have, if `data` belongs to it. Returns the finished transactions
    below `offset` that were not replicated: first offset -> marker offset."""
    try:
        version, crc = HEAD.unpack_from(data)
        if version != VERSION or crc != crc32c(memoryview(data)[HEAD.size :]):
            raise DamagedWindow("it has another version or a wrong checksum")
        owner_offset, owner_crc, unreplicated_count, count = OWNER.unpack_from(data, HEAD.size)
        position = HEAD.size + OWNER.size
        unreplicated: dict[int, int] = {}
        for _ in range(unreplicated_count):
            first_offset, last_offset = UNREPLICATED.unpack_from(data, position)
            position += UNREPLICATED.size
            if last_offset < offset:
                unreplicated[first_offset] = last_offset
        if owner_offset == offset and owner_crc == crc32c(snapshot):
            _restore(entries, data, position, count, now_ms, wall)
        return unreplicated
    except StructError as error:
        raise DamagedWindow(str(error)) from error


def _restore(
    entries: list[ProducerEntry], data: bytes, position: int, count: int, now_ms: int, wall: WallClock
) -> None:
    by_id = {entry.producer_id: entry for entry in entries}
    for _ in range(count):
        producer_id, epoch, seen_ms, size = PRODUCER.unpack_from(data, position)
        position += PRODUCER.size
        batches = [ProducedBatch(*BATCH.unpack_from(data, position + index * BATCH.size)) for index in range(size)]
        position += size * BATCH.size
        entry = by_id.get(producer_id)
        if entry is not None and entry.epoch == epoch:
            # From here on it counts on the steady clock. The wall clock may have been set back.
            entry.seen_ms = min(now_ms, now_ms - (wall.at(now_ms) - seen_ms))
            entry.batches = batches
