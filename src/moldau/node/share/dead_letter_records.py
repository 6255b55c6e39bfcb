"""Dead letters as records: where the record lies, why it is dead, and what it was if the group wants that copied."""

from __future__ import annotations

from typing import Final

from moldau.node.share.acknowledgement import Letters
from moldau.node.share.record_states import REJECTED
from moldau.records.builder import BatchBuilder, record_size
from moldau.records.walk import Record

TOPIC_HEADER: Final = "__dlq.errors.topic"
PARTITION_HEADER: Final = "__dlq.errors.partition"
OFFSET_HEADER: Final = "__dlq.errors.offset"
GROUP_HEADER: Final = "__dlq.errors.group"
COUNT_HEADER: Final = "__dlq.errors.delivery.count"
MESSAGE_HEADER: Final = "__dlq.errors.message"

REJECTED_TEXT: Final = "rejected by client"
TOO_OFTEN_TEXT: Final = "delivery count exceeded"
NOT_READABLE: Final = "; the record was not copied: it is not readable any more"
TOO_LARGE: Final = "; the record was not copied: it is too large for the topic"

Headers = list[tuple[str, bytes | None]]


class Source:
    """What the log has of records that are given up, up to `covered_to`: those that can be copied, by offset, and the
    offsets of transaction markers, which a member has locked with the records around them and which are no letters.
    What is neither cannot be read any more."""

    def __init__(self, records: dict[int, Record], markers: set[int], covered_to: int) -> None:
        self.records = records
        self.markers = markers
        self.covered_to = covered_to


class LetterBatch:
    """One batch of dead letters and whose they are."""

    def __init__(self, data: bytes, letters: list[Letters], size: int, with_copies: bool) -> None:
        self.data = data
        self.letters = letters
        self.size = size
        """How many letters there are."""
        self.with_copies = with_copies


def headers_of(group_id: str, topic: str, index: int, offset: int, letters: Letters, more: str) -> Headers:
    text = REJECTED_TEXT if letters.cause == REJECTED else TOO_OFTEN_TEXT
    return [
        (TOPIC_HEADER, topic.encode()),
        (PARTITION_HEADER, b"%d" % index),
        (OFFSET_HEADER, b"%d" % offset),
        (GROUP_HEADER, group_id.encode()),
        (COUNT_HEADER, b"%d" % letters.count),
        (MESSAGE_HEADER, (text + more).encode()),
    ]


def build_letters(
    group_id: str,
    topic: str,
    index: int,
    *,
    due: list[Letters],
    source: Source,
    copies: bool,
    bytes_max: int,
    wall_ms: int,
) -> LetterBatch:
    """As many as one batch of that size holds, one at least: a record that does not fit is not copied."""
    builder = BatchBuilder()
    built: list[Letters] = []
    size = 0
    with_copies = False
    for letters in due:
        for offset in range(letters.first, letters.last + 1):
            if offset > source.covered_to:
                return LetterBatch(builder.build(), built, size, with_copies)
            if offset in source.markers:
                note_built(built, offset, letters)
                continue
            record = source.records.get(offset) if copies else None
            more = NOT_READABLE if copies and record is None else ""
            key, value = (None, None) if record is None else (record.key, record.value)
            headers = headers_of(group_id, topic, index, offset, letters, more)
            if record is not None:
                headers = record.headers + headers
            if builder.uncompressed_size + record_size(0, size, key, value, headers) > bytes_max:
                if size > 0:
                    return LetterBatch(builder.build(), built, size, with_copies)
                if record is not None:
                    record, key, value = None, None, None
                    headers = headers_of(group_id, topic, index, offset, letters, TOO_LARGE)
            builder.append(wall_ms, key, value, headers)
            with_copies = with_copies or record is not None
            size += 1
            note_built(built, offset, letters)
    return LetterBatch(builder.build(), built, size, with_copies)


def note_built(built: list[Letters], offset: int, letters: Letters) -> None:
    if built and built[-1].last + 1 == offset and built[-1].cause == letters.cause:
        built[-1].last = offset
    else:
        built.append(Letters(offset, offset, letters.count, letters.cause))
