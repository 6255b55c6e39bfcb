"""Deltas, images and metadata transactions."""

from __future__ import annotations

import pytest

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.model import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, PartitionRegistration
from moldau.protocol.primitives import Message
from moldau.protocol.stored import metadata_records as r

TOPIC = b"t" * 16


def apply(image: MetadataImage, *records: Message) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(image.offset + len(records), 1, 0)


def topic_records() -> list[Message]:
    partition = r.PartitionRecord(0, TOPIC, [1, 2], [1, 2], leader=1, leader_epoch=0, partition_epoch=0)
    partition.directories = [b"a" * 16, b"b" * 16]
    return [r.TopicRecord("t", TOPIC), partition]


def test_an_image_does_not_change_when_the_next_one_is_made() -> None:
    before = apply(MetadataImage(), *topic_records())
    after = apply(before, r.PartitionChangeRecord(0, TOPIC, isr=[1], leader=1))
    assert before.topics_by_id[TOPIC].partitions[0].isr == (1, 2)
    assert after.topics_by_id[TOPIC].partitions[0].isr == (1,)
    assert after.configs is before.configs


def test_naming_a_leader_raises_both_epochs_and_anything_else_one() -> None:
    image = apply(MetadataImage(), *topic_records())
    image = apply(image, r.PartitionChangeRecord(0, TOPIC, leader=2), r.PartitionChangeRecord(0, TOPIC, isr=[2]))
    partition = image.topics_by_id[TOPIC].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 1, 2)


def test_new_replicas_have_no_directory_until_one_is_assigned() -> None:
    image = apply(MetadataImage(), *topic_records(), r.PartitionChangeRecord(0, TOPIC, replicas=[2, 3]))
    assert image.topics_by_id[TOPIC].partitions[0].directories == (b"b" * 16, UNASSIGNED_DIRECTORY)


def test_clear_elr_raises_the_partition_epoch_only_where_there_is_something_to_clear() -> None:
    image = apply(MetadataImage(), *topic_records())
    change = r.PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[2], last_known_elr=[2])
    image = apply(image, change)
    for expected in (2, 2):
        image = apply(image, r.ClearElrRecord(""))
        partition = image.topics_by_id[TOPIC].partitions[0]
        assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == ((), (), expected)


def test_a_topic_created_and_deleted_in_one_batch_leaves_nothing() -> None:
    delta = MetadataDelta(MetadataImage())
    for record in (*topic_records(), r.ConfigRecord(2, "t", "retention.ms", "1"), r.RemoveTopicRecord(TOPIC)):
        delta.replay(record)
    image = delta.apply(3, 1, 0)
    assert not image.topics_by_id and not image.topics_by_name and not image.configs
    assert not delta.changed_topics and not delta.deleted_topics


def test_a_topic_deleted_and_created_again_under_its_name_is_a_new_one() -> None:
    before = apply(MetadataImage(), *topic_records())
    other = b"u" * 16
    image = apply(before, r.RemoveTopicRecord(TOPIC), r.TopicRecord("t", other))
    assert image.topics_by_name["t"].topic_id == other
    assert list(image.topics_by_id) == [other]


def test_a_record_about_an_unknown_topic_or_broker_is_a_broken_log() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        apply(MetadataImage(), r.PartitionChangeRecord(0, TOPIC))
    with pytest.raises(ValueError, match="not registered"):
        apply(MetadataImage(), r.BrokerRegistrationChangeRecord(1, 1, 1))


def test_a_config_without_a_value_is_gone() -> None:
    image = apply(MetadataImage(), r.ConfigRecord(2, "t", "a", "1"), r.ConfigRecord(2, "t", "b", "2"))
    image = apply(image, r.ConfigRecord(2, "t", "a", None))
    assert image.configs == {(2, "t"): {"b": "2"}}
    assert apply(image, r.ConfigRecord(2, "t", "b", None)).configs == {}


def test_old_fence_and_unfence_records_still_count() -> None:
    image = apply(MetadataImage(), r.RegisterBrokerRecord(1, broker_epoch=5), r.UnfenceBrokerRecord(1, 5))
    assert not image.brokers[1].fenced
    assert apply(image, r.FenceBrokerRecord(1, 5)).brokers[1].fenced
    assert not apply(image, r.UnregisterBrokerRecord(1, 5)).brokers


def test_records_of_an_open_transaction_are_not_visible() -> None:
    images: list[MetadataImage] = []
    loader = MetadataLoader(lambda delta, image: images.append(image))
    loader.load_batch([r.BeginTransactionRecord("x"), r.ConfigRecord(2, "t", "a", "1")], 1, 1, 0)
    loader.load_batch([r.ConfigRecord(2, "t", "b", "1")], 2, 1, 0)
    assert loader.image.configs == {}
    loader.load_batch([r.EndTransactionRecord()], 3, 1, 0)
    assert loader.image.configs == {(2, "t"): {"a": "1", "b": "1"}}
    assert [bool(image.configs) for image in images] == [False, True]


def test_records_of_an_aborted_transaction_are_dropped() -> None:
    loader = MetadataLoader(lambda delta, image: None)
    loader.load_batch([r.BeginTransactionRecord("x"), r.ConfigRecord(2, "t", "a", "1")], 1, 1, 0)
    loader.load_batch([r.AbortTransactionRecord("no"), r.ConfigRecord(2, "t", "b", "1")], 2, 1, 0)
    assert loader.image.configs == {(2, "t"): {"b": "1"}}
    assert loader.image.offset == 2


def test_loading_a_snapshot_tells_what_is_gone() -> None:
    deltas: list[MetadataDelta] = []
    loader = MetadataLoader(lambda delta, image: deltas.append(delta))
    loader.load_batch([*topic_records(), r.ConfigRecord(2, "t", "a", "1")], 2, 1, 0)
    loader.load_snapshot([r.TopicRecord("u", b"u" * 16)], 9, 1, 0)
    assert list(deltas[-1].deleted_topics) == [TOPIC]
    assert list(deltas[-1].changed_topics) == [b"u" * 16]
    assert deltas[-1].changed_configs == {(2, "t"): {"a": None}}


def test_a_lost_directory_is_not_online_and_an_unassigned_one_is() -> None:
    image = apply(MetadataImage(), r.RegisterBrokerRecord(1, broker_epoch=5, log_dirs=[b"a" * 16]))
    broker = image.brokers[1]
    assert broker.has_online_dir(b"a" * 16) and broker.has_online_dir(UNASSIGNED_DIRECTORY)
    assert not broker.has_online_dir(LOST_DIRECTORY) and not broker.has_online_dir(b"b" * 16)
    assert broker.default_dir() == b"a" * 16


def test_a_partition_record_round_trips() -> None:
    partition = PartitionRegistration((1, 2), (b"a" * 16, b"b" * 16), (1,), leader=1, elr=(2,), last_known_elr=(1,))
    record = partition.to_record(TOPIC, 0, 2)
    assert PartitionRegistration.from_record(record) == partition
