"""An image as records, in the order in which Kafka writes a snapshot; and what two images have between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from moldau.metadata.delta import MetadataDelta, TopicDelta
from moldau.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    partition_version,
    register_broker_version,
    supports_controller_registration,
)
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BrokerRegistration, ControllerRegistration
from moldau.protocol.primitives import Message
from moldau.protocol.stored import metadata_records as r

VersionedRecord = tuple[Message, int]

K = TypeVar("K")
V = TypeVar("V")


def image_to_records(image: MetadataImage) -> list[VersionedRecord]:
    return list(iterate_records(image))


def iterate_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Features first, so that a reader knows the metadata.version of what follows. As an image never changes, whoever
    iterates may take its time."""
    yield from _features(image)
    for broker_id in sorted(image.brokers):
        yield broker_to_record(image.brokers[broker_id], image.metadata_version)
    if supports_controller_registration(image.metadata_version):
        for controller_id in sorted(image.controllers):
            yield _controller_record(image.controllers[controller_id]), 0
    yield from _topics(image)
    for (resource_type, resource_name), values in image.configs.items():
        for key, value in values.items():
            yield r.ConfigRecord(resource_type, resource_name, key, value), 0
    for entity, quotas in image.client_quotas.items():
        parts = [r.EntityData(kind, name) for kind, name in entity]
        for key, quota in quotas.items():
            yield r.ClientQuotaRecord(parts, key, quota, False), 0
    if image.next_producer_id > 0:
        yield r.ProducerIdsRecord(-1, -1, image.next_producer_id), 0
    for record in image.acls.values():
        yield record, 0
    for (mechanism, user), credential in image.scram.items():
        yield r.UserScramCredentialRecord(user, mechanism, *credential), 0
    for token in image.tokens.values():
        yield token, 0


def _features(image: MetadataImage) -> Iterator[VersionedRecord]:
    names = sorted(name for name in image.features if name not in (METADATA_VERSION, KRAFT_VERSION))
    if METADATA_VERSION in image.features:
        names.insert(0, METADATA_VERSION)
    for name in names:
        yield r.FeatureLevelRecord(name, image.features[name]), 0


def broker_to_record(broker: BrokerRegistration, metadata_version: int) -> VersionedRecord:
    version = register_broker_version(metadata_version)
    record = r.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.broker_epoch,
        end_points=[r.BrokerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in broker.end_points.values()],
        features=[r.BrokerFeature(name, low, high) for name, (low, high) in broker.features.items()],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
    if version >= 3:
        record.log_dirs = list(broker.log_dirs)
    if version >= 4 and broker.cordoned_log_dirs is not None:
        record.cordoned_log_dirs = list(broker.cordoned_log_dirs)
    return record, version


def _controller_record(controller: ControllerRegistration) -> r.RegisterControllerRecord:
    return r.RegisterControllerRecord(
        controller.controller_id,
        controller.incarnation_id,
        controller.zk_migration_ready,
        [r.ControllerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in controller.end_points.values()],
        [r.ControllerFeature(name, low, high) for name, (low, high) in controller.features.items()],
    )


def _topics(image: MetadataImage) -> Iterator[VersionedRecord]:
    version = partition_version(image.metadata_version)
    for topic in image.topics_by_id.values():
        yield r.TopicRecord(topic.name, topic.topic_id), 0
        for index in sorted(topic.partitions):
            yield topic.partitions[index].to_record(topic.topic_id, index, version), version


def delta_between(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """What a follower has to change that jumps from one image to another, as when it loads a snapshot."""
    delta = MetadataDelta(before)
    for topic_id, old in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            delta.deleted_topics[topic_id] = old
    for topic_id, topic in after.topics_by_id.items():
        old_topic = before.topics_by_id.get(topic_id)
        known = old_topic.partitions if old_topic is not None else {}
        change = TopicDelta(topic.name, topic_id, old_topic)
        change.changed_partitions = {i: p for i, p in topic.partitions.items() if known.get(i) != p}
        if old_topic is None or change.changed_partitions:
            delta.changed_topics[topic_id] = change
    delta.changed_brokers = _changes(before.brokers, after.brokers)
    delta.changed_controllers = _changes(before.controllers, after.controllers)
    delta.changed_features = {k: v or 0 for k, v in _changes(before.features, after.features).items()}
    for name in ("configs", "client_quotas"):
        old_map, new_map = getattr(before, name), getattr(after, name)
        target = delta.changed_configs if name == "configs" else delta.changed_quotas
        for key in {*old_map, *new_map}:
            inner = _changes(old_map.get(key, {}), new_map.get(key, {}))
            if inner:
                target[key] = inner
    delta.changed_acls = _changes(dict(before.acls.items()), dict(after.acls.items()))
    delta.changed_scram = _changes(before.scram, after.scram)
    delta.changed_tokens = _changes(before.tokens, after.tokens)
    if before.next_producer_id != after.next_producer_id:
        delta.next_producer_id = after.next_producer_id
    return delta


def _changes(before: dict[K, V], after: dict[K, V]) -> dict[K, V | None]:
    changes: dict[K, V | None] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if before.get(key) is not value and before.get(key) != value:
            changes[key] = value
    return changes
