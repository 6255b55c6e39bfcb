"""The hash by which a group notices that its topics changed is the one that Apache Kafka computes."""

from __future__ import annotations

from moldau.coordinator.group.metadata_hash import group_hash, topic_hash
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BrokerRegistration, PartitionRegistration, TopicImage
from moldau.protocol.uuids import uuid_from_text


def make_image(racks: dict[int, str | None]) -> MetadataImage:
    image = MetadataImage()
    for broker_id, rack in racks.items():
        image.brokers[broker_id] = BrokerRegistration(
            broker_id,
            1,
            bytes(16),
            end_points={},
            features={},
            rack=rack,
            fenced=False,
            in_controlled_shutdown=False,
            log_dirs=(),
            cordoned_log_dirs=None,
        )
    return image


def add_topic(image: MetadataImage, name: str, topic_id: bytes, replicas: list[tuple[int, ...]]) -> TopicImage:
    partitions = {
        index: PartitionRegistration(some, tuple(bytes(16) for _ in some), some) for index, some in enumerate(replicas)
    }
    topic = TopicImage(name, topic_id, partitions)
    image.topics_by_name[name] = image.topics_by_id[topic_id] = topic
    return topic


ORDERS = uuid_from_text("s0RLWcbcSIGLlR8sf5rvbA")


def test_the_hash_of_a_real_group() -> None:
    """As Apache Kafka 4.3.1 wrote it for a group that reads one topic with four partitions."""
    image = make_image({1: None, 2: None, 3: None})
    add_topic(image, "orders", ORDERS, [(1,), (2,), (3,), (1,)])
    assert group_hash({"orders"}, {}, image) == 3769807392248461158


def test_no_topics_have_the_hash_zero() -> None:
    image = make_image({})
    assert group_hash(set(), {}, image) == 0
    assert group_hash({"not there"}, {}, image) == 0


def test_the_hash_sees_partitions_racks_and_ids() -> None:
    """But not in which order the replicas of a partition are named."""
    image = make_image({1: "a", 2: "b", 3: None})
    base = topic_hash(add_topic(image, "t", ORDERS, [(1, 2)]), image)
    assert topic_hash(add_topic(image, "t", ORDERS, [(2, 1)]), image) == base
    others = [
        topic_hash(add_topic(image, "t", ORDERS, [(1, 2), (1, 2)]), image),
        topic_hash(add_topic(image, "t", ORDERS, [(1, 3)]), image),
        topic_hash(add_topic(image, "t", bytes(16), [(1, 2)]), image),
        topic_hash(add_topic(image, "u", ORDERS, [(1, 2)]), image),
    ]
    assert len({base, *others}) == 5


def test_hashes_of_topics_are_remembered() -> None:
    image = make_image({})
    add_topic(image, "t", ORDERS, [()])
    cache: dict[str, int] = {}
    first = group_hash({"t"}, cache, image)
    assert set(cache) == {"t"}
    cache["t"] += 1
    assert group_hash({"t"}, cache, image) != first
