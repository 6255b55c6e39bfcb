"""Where a table stands in its topics: the next offset of each partition, and which topics these are.

A table's positions only move forward, and only in a commit that holds the rows in between. The text is the JSON of
Spark's offsets with the topics' ids, as spark/offsets.py has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from moldau.client.results import TopicPartition
from moldau.lake.errors import LakeError
from moldau.protocol.uuids import uuid_from_text
from moldau.spark.offsets import OffsetsError, StreamOffsets
from moldau.spark.planning import OffsetRange


@dataclass(frozen=True)
class Positions:
    """The next offsets; topic_ids has 22 characters for each topic whose brokers tell ids."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return StreamOffsets(dict(self.offsets), dict(self.topic_ids)).to_json()

    @staticmethod
    def from_json(text: str) -> Positions:
        try:
            found = StreamOffsets.from_object(json.loads(text))
        except (ValueError, OffsetsError) as error:
            raise LakeError(
                f"The table's offsets cannot be read: {error} Restore the table's last good version."
            ) from None
        return Positions(found.offsets, found.topic_ids)

    def advanced(self, ranges: Iterable[OffsetRange]) -> Positions:
        """The positions behind these ranges; LakeError if a range does not begin where the one before ends."""
        offsets = dict(self.offsets)
        ids = dict(self.topic_ids)
        for item in sorted(ranges):
            here = offsets.get(item.topic_partition)
            if here is not None and item.start != here:
                raise LakeError(
                    f"{item} does not follow offset {here}: this load would leave a gap or write rows twice."
                )
            offsets[item.topic_partition] = item.end
            if item.topic_id:
                ids[item.topic] = item.topic_id
        return Positions(offsets, ids)

    def without(self, topic: str) -> Positions:
        """The positions of all other topics."""
        return Positions(
            {item: offset for item, offset in self.offsets.items() if item.topic != topic},
            {name: topic_id for name, topic_id in self.topic_ids.items() if name != topic},
        )

    def changed_since(self, before: Positions) -> dict[TopicPartition, int]:
        """The offsets that differ from those before."""
        return {item: offset for item, offset in self.offsets.items() if before.offsets.get(item) != offset}

    def agrees_with(self, other: Positions, partitions: Iterable[TopicPartition]) -> bool:
        """Whether both say the same about these partitions."""
        return all(self.offsets.get(item) == other.offsets.get(item) for item in partitions)


def check_topic_ids(positions: Positions, current: Mapping[str, str], table: str) -> None:
    """Raises LakeError when a topic of the table is not the one that has its name now."""
    for topic, topic_id in positions.topic_ids.items():
        now = current.get(topic, "")
        if now and topic_id and fingerprint(now) != fingerprint(topic_id):
            raise LakeError(
                f"Topic {topic} was deleted and created again since {table} was loaded: its offsets"
                " mean other records now."
                " Load it into another table, or forget the old offsets with `moldau lake forget`."
            )


def fingerprint(topic_id: str) -> int:
    """63 bits of a topic's id, for formats that keep numbers only; 0 where there is no id."""
    return int.from_bytes(uuid_from_text(topic_id)[:8], "big") >> 1 if topic_id else 0
