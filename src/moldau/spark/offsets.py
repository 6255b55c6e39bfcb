"""Offsets by partition in the JSON of Spark's Kafka connector, which is also what lies in a checkpoint.

`{"orders":{"0":123,"1":45}}`: topics and partitions in ascending order, because Spark compares offsets as text. In the
offsets of options -2 stands for the earliest and -1 for the latest.

What a stream puts into its checkpoint also names the topics' ids, as entries without partitions:
`{"orders":{"0":123},"orders@8XtTtTDNR2CgsPGrTNVtyg":{}}`. A topic that was deleted and created again has the same name
and another id; without it, a query would go on in the middle of the new topic and lose what lies before. `@` is in no
topic's name, and whoever reads the usual format finds no partitions there, so that Spark's connector reads such a
checkpoint too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moldau.client.results import TopicPartition
from moldau.protocol.integers import LONG_MAX

__all__ = [
    "EARLIEST_OFFSET",
    "LATEST_OFFSET",
    "OffsetsError",
    "StreamOffsets",
    "TopicPartition",
    "offsets_from_object",
    "offsets_to_json",
    "offsets_to_object",
    "parse_offsets",
    "parse_partitions",
]

# How the JSON of the options says earliest and latest.
EARLIEST_OFFSET = -2
LATEST_OFFSET = -1

ID_MARK = "@"
PARTITION_MAX = 0x7FFFFFFF

Offsets = dict[TopicPartition, int]


class OffsetsError(ValueError):
    """The text is not a JSON of offsets; the message is a sentence that says what is expected."""


@dataclass
class StreamOffsets:
    """Where a stream stands: the next offset of each partition, and which topics these are."""

    offsets: Offsets
    # The id of each topic as 22 characters; a topic is missing whose checkpoint does not tell.
    topic_ids: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def from_object(data: object) -> StreamOffsets:
        """Takes what Spark kept; the offsets of Spark's own connector are the same without ids."""
        if not isinstance(data, Mapping):
            raise OffsetsError(_expected(data))
        ids: dict[str, str] = {}
        plain: dict[str, object] = {}
        for name, rows in data.items():
            topic, mark, topic_id = str(name).partition(ID_MARK)
            if mark:
                ids[topic] = topic_id
            else:
                plain[topic] = rows
        return StreamOffsets(offsets_from_object(plain), ids)

    def to_object(self) -> dict[str, dict[str, int]]:
        """A dict in canonical order, for json.dumps()."""
        found = offsets_to_object(self.offsets)
        for topic, topic_id in sorted(self.topic_ids.items()):
            if topic in found:
                found[f"{topic}{ID_MARK}{topic_id}"] = {}
        return found

    def to_json(self) -> str:
        return json.dumps(self.to_object(), separators=(",", ":"))

    @property
    def topics(self) -> set[str]:
        return {partition.topic for partition in self.offsets}


def offsets_to_object(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """{"topic": {"0": 123}} with topics by name and partitions by number."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps(offsets_to_object(offsets), separators=(",", ":"))


def offsets_from_object(data: object, what: str = "offset", lowest: int = EARLIEST_OFFSET) -> Offsets:
    """The other direction; numbers may be written as text. Raises OffsetsError."""
    if not isinstance(data, Mapping):
        raise OffsetsError(_expected(data, what))
    offsets: Offsets = {}
    for topic, rows in data.items():
        if not isinstance(rows, Mapping):
            raise OffsetsError(_expected(data, what))
        for partition, value in rows.items():
            number = _whole(partition, 0, PARTITION_MAX, f"partition of topic {topic}")
            item = TopicPartition(str(topic), number)
            offsets[item] = _whole(value, lowest, LONG_MAX, f"{what} of {item}")
    return offsets


def parse_offsets(text: str, what: str = "offset", lowest: int = EARLIEST_OFFSET) -> Offsets:
    """`{"topic":{"0":123}}` as the options startingOffsets, startingOffsetsByTimestamp and so on have it."""
    return offsets_from_object(
        _load(text, f'{{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}} with one {what} each'), what, lowest
    )


def parse_partitions(text: str) -> list[TopicPartition]:
    """`{"topicA":[0,1],"topicB":[2,4]}`, as the option assign has it."""
    example = '{"topicA":[0,1],"topicB":[2,4]}'
    data = _load(text, example)
    partitions: list[TopicPartition] = []
    for topic, numbers in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(numbers, list):
            raise OffsetsError(f"The partitions of topic {topic} are no list: write them as {example}.")
        for number in numbers:
            partitions.append(
                TopicPartition(str(topic), _whole(number, 0, PARTITION_MAX, f"partition of topic {topic}"))
            )
    if not partitions:
        raise OffsetsError(f"{text!r} names no partition: write them as {example}.")
    return sorted(set(partitions))


def topics_of(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted({partition.topic for partition in partitions})


def _load(text: str, example: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise OffsetsError(f"{text!r} is no JSON: write it as {example}.") from None


def _whole(value: object, lowest: int, highest: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise OffsetsError(f"The {what} is {value!r}: it must be a whole number.")
    try:
        number = int(value)
    except ValueError:
        raise OffsetsError(f"The {what} is {value!r}: it must be a whole number.") from None
    if not lowest <= number <= highest:
        raise OffsetsError(f"The {what} is {number}: it must be from {lowest} to {highest}.")
    return number


def _expected(data: object, what: str = "offset") -> str:
    return f'{data!r} is not of the form {{"topic":{{"0":123}}}}, one {what} for each partition.'
