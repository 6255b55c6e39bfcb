"""Reads the dead letters that are in a topic of a simulated node."""

from __future__ import annotations

from moldau.node.node import Node
from moldau.records.batch import split_batches
from moldau.records.walk import Record, read_records

TOPIC = "dlq.g"


def letters_in(node: Node, topic: str = TOPIC, index: int = 0) -> list[Record]:
    """What is committed."""
    partition = node.replicas.find(topic, index)
    if partition is None or partition.log is None:
        return []
    end = partition.high_watermark.offset
    found: list[Record] = []
    offset = partition.log.log_start_offset
    while offset < end:
        records = partition.log.read(offset, 1 << 20, end, True).records
        assert records is not None
        data = records.file.read(records.position, records.size)  # type: ignore[attr-defined]
        for header in split_batches(data, 0, len(data)):
            found += [record for record in read_records(data, header) if record.offset >= offset]
            last = int(header.last_offset)
        offset = last + 1
    return found


def headers_of(letter: Record) -> dict[str, str]:
    """Those that tell about the record, without what they begin with."""
    prefix = "__dlq.errors."
    return {
        name.removeprefix(prefix): (value or b"").decode() for name, value in letter.headers if name.startswith(prefix)
    }


def offsets_of(letters: list[Record]) -> list[int]:
    return [int(headers_of(letter)["offset"]) for letter in letters]
