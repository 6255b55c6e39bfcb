"""Stored records: producer snapshot (generated).

Written by tools/generate_messages.py from schemas/stored/producer_snapshot.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class ProducerSnapshot(Message):
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("crc", "producer_entries")

    def __init__(
        self,
        crc: int = 0,
        producer_entries: list[ProducerEntry] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.crc: int = crc
        self.producer_entries: list[ProducerEntry] = [] if producer_entries is None else producer_entries
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ProducerSnapshot:
        if version != 1:
            raise DecodeError(no_such_version("ProducerSnapshot", version))
        crc = reader.uint32()
        producer_entries: list[ProducerEntry] = []
        count = reader.array_length(46)
        for _ in range(count):
            producer_entries.append(ProducerEntry.decode(reader, version))
        return ProducerSnapshot(crc, producer_entries)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 1:
            raise EncodeError(no_such_version("ProducerSnapshot", version))
        writer.uint32(self.crc)
        writer.array_length(len(self.producer_entries))
        for producer_entries_element in self.producer_entries:
            producer_entries_element.encode(writer, version)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ProducerEntry(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "producer_id",
        "epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "timestamp",
        "coordinator_epoch",
        "current_txn_first_offset",
    )

    def __init__(
        self,
        producer_id: int = 0,
        epoch: int = 0,
        last_sequence: int = 0,
        last_offset: int = 0,
        offset_delta: int = 0,
        timestamp: int = 0,
        coordinator_epoch: int = 0,
        current_txn_first_offset: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        self.epoch: int = epoch
        self.last_sequence: int = last_sequence
        self.last_offset: int = last_offset
        self.offset_delta: int = offset_delta
        self.timestamp: int = timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_first_offset: int = current_txn_first_offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ProducerEntry:
        producer_id = reader.int64()
        epoch = reader.int16()
        last_sequence = reader.int32()
        last_offset = reader.int64()
        offset_delta = reader.int32()
        timestamp = reader.int64()
        coordinator_epoch = reader.int32()
        current_txn_first_offset = reader.int64()
        return ProducerEntry(
            producer_id,
            epoch,
            last_sequence,
            last_offset,
            offset_delta,
            timestamp,
            coordinator_epoch,
            current_txn_first_offset,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        writer.int16(self.epoch)
        writer.int32(self.last_sequence)
        writer.int64(self.last_offset)
        writer.int32(self.offset_delta)
        writer.int64(self.timestamp)
        writer.int32(self.coordinator_epoch)
        writer.int64(self.current_txn_first_offset)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
