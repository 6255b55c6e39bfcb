"""The hash of the topics that a group reads: when it changes, the group needs a new assignment (KIP-1101).

The numbers are those that Apache Kafka computes, so that a group does not rebalance when its coordinator changes from
one to the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from xxhash import xxh3_64_intdigest

from moldau.metadata.image import MetadataImage
from moldau.metadata.model import TopicImage

_int = Struct("<i").pack
_unsigned = Struct("<Q").pack


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    """Id, name, number of partitions, and for each partition the racks of its replicas; unsigned."""
    topic_id = topic.topic_id
    parts = [b"\x00", topic_id[7::-1], topic_id[:7:-1], _text(topic.name), _int(len(topic.partitions))]
    brokers = image.brokers
    for index in range(len(topic.partitions)):
        parts.append(_int(index))
        partition = topic.partitions.get(index)
        if partition is None:
            continue
        racks: list[str] = []
        for replica in partition.replicas:
            broker = brokers.get(replica)
            if broker is not None and broker.rack is not None:
                racks.append(broker.rack)
        for rack in sorted(racks):
            parts.append(_int(_length(rack)))
            parts.append(_text(rack))
    return xxh3_64_intdigest(b"".join(parts))


def group_hash(topics: Iterable[str], cache: dict[str, int], image: MetadataImage) -> int:
    """The hash of those topics that exist, as the signed number that is stored; 0 if there are none."""
    parts: list[bytes] = []
    for name in sorted(topics, key=_java_order):
        value = cache.get(name)
        if value is None:
            topic = image.topic(name)
            if topic is None:
                continue
            value = cache[name] = topic_hash(topic, image)
        parts.append(_unsigned(value))
    if not parts:
        return 0
    total = xxh3_64_intdigest(b"".join(parts))
    return total - (1 << 64) if total >> 63 else total


def _java_order(name: str) -> bytes:
    """Java compares strings by their UTF-16 units."""
    return name.encode("utf-16-be", "surrogatepass")


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _int(len(units) // 2)
