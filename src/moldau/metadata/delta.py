"""What a batch of metadata records changes; `replay` is the only code that turns records into state.

A delta starts from an image, takes records one by one and makes the next image. Whoever follows the metadata (replica
manager, coordinators, caches) reads from the delta what is new and from the image what holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.metadata.image import ConfigResource, MetadataImage, QuotaEntity, ScramCredential
from moldau.metadata.model import (
    TOPIC_RESOURCE,
    BrokerRegistration,
    ControllerRegistration,
    PartitionRegistration,
    TopicImage,
)
from moldau.protocol.primitives import Message
from moldau.protocol.stored import metadata_records as r


class TopicDelta:
    """One topic that was created or whose partitions changed: `before` is None for a new one."""

    __slots__ = ("before", "changed_partitions", "name", "topic_id")

    def __init__(self, name: str, topic_id: bytes, before: TopicImage | None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.before = before
        self.changed_partitions: dict[int, PartitionRegistration] = {}

    def partition(self, index: int) -> PartitionRegistration | None:
        changed = self.changed_partitions.get(index)
        if changed is not None or self.before is None:
            return changed
        return self.before.partitions.get(index)

    def all_partitions(self) -> dict[int, PartitionRegistration]:
        return {**(self.before.partitions if self.before is not None else {}), **self.changed_partitions}


class MetadataDelta:
    """The changes from `base` on. `changed_*` name what differs; a value None says that it is gone."""

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.changed_topics: dict[bytes, TopicDelta] = {}
        self.deleted_topics: dict[bytes, TopicImage] = {}
        self.changed_brokers: dict[int, BrokerRegistration | None] = {}
        self.changed_controllers: dict[int, ControllerRegistration | None] = {}
        self.changed_features: dict[str, int] = {}
        """0 where the feature is not finalized any more."""
        self.changed_configs: dict[ConfigResource, dict[str, str | None]] = {}
        self.changed_quotas: dict[QuotaEntity, dict[str, float | None]] = {}
        self.changed_acls: dict[bytes, r.AccessControlEntryRecord | None] = {}
        self.changed_scram: dict[tuple[int, str], ScramCredential | None] = {}
        self.changed_tokens: dict[str, r.DelegationTokenRecord | None] = {}
        self.next_producer_id: int | None = None
        self._new_names: dict[str, bytes] = {}

    def replay(self, record: Message) -> None:
        _REPLAY[type(record)](self, record)

    # Topics

    def _topic(self, topic_id: bytes) -> TopicDelta:
        delta = self.changed_topics.get(topic_id)
        if delta is None:
            topic = self.base.topics_by_id.get(topic_id)
            if topic is None or topic_id in self.deleted_topics:
                raise ValueError(f"a record names topic id {topic_id.hex()}, which does not exist")
            delta = self.changed_topics[topic_id] = TopicDelta(topic.name, topic_id, topic)
        return delta

    def _topic_record(self, record: r.TopicRecord) -> None:
        self.changed_topics[record.topic_id] = TopicDelta(record.name, record.topic_id, None)
        self._new_names[record.name] = record.topic_id

    def _partition_record(self, record: r.PartitionRecord) -> None:
        partitions = self._topic(record.topic_id).changed_partitions
        partitions[record.partition_id] = PartitionRegistration.from_record(record)

    def _partition_change(self, record: r.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        partition = topic.partition(record.partition_id)
        if partition is None:
            raise ValueError(f"a record names partition {topic.name}-{record.partition_id}, which does not exist")
        topic.changed_partitions[record.partition_id] = partition.merge(record)

    def _remove_topic(self, record: r.RemoveTopicRecord) -> None:
        name = self._topic(record.topic_id).name
        del self.changed_topics[record.topic_id]
        if self._new_names.get(name) == record.topic_id:
            del self._new_names[name]
        before = self.base.topics_by_id.get(record.topic_id)
        if before is not None:
            self.deleted_topics[record.topic_id] = before
        resource = (TOPIC_RESOURCE, name)
        for key in self._config(resource):
            self.changed_configs.setdefault(resource, {})[key] = None

    def _clear_elr(self, record: r.ClearElrRecord) -> None:
        """An empty name means every topic."""
        if record.topic_name:
            found = self._id_of(record.topic_name)
            ids = [] if found is None else [found]
        else:
            ids = [i for i in {**self.base.topics_by_id, **self.changed_topics} if i not in self.deleted_topics]
        for topic_id in ids:
            topic = self.changed_topics.get(topic_id)
            image = self.base.topics_by_id.get(topic_id)
            partitions = topic.all_partitions() if topic is not None else image.partitions if image is not None else {}
            for index, partition in partitions.items():
                if partition.elr or partition.last_known_elr:
                    change = r.PartitionChangeRecord(index, topic_id, eligible_leader_replicas=[], last_known_elr=[])
                    self._topic(topic_id).changed_partitions[index] = partition.merge(change)

    def _id_of(self, name: str) -> bytes | None:
        if name in self._new_names:
            return self._new_names[name]
        topic = self.base.topics_by_name.get(name)
        return None if topic is None or topic.topic_id in self.deleted_topics else topic.topic_id

    # Brokers and controllers

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        if broker_id in self.changed_brokers:
            broker = self.changed_brokers[broker_id]
        else:
            broker = self.base.brokers.get(broker_id)
        if broker is None:
            raise ValueError(f"a record names broker {broker_id}, which is not registered")
        if broker.broker_epoch != epoch:
            raise ValueError(f"a record names epoch {epoch} of broker {broker_id}, which has {broker.broker_epoch}")
        return broker

    def _register_broker(self, record: r.RegisterBrokerRecord) -> None:
        before = self.base.brokers.get(record.broker_id)
        before = self.changed_brokers.get(record.broker_id, before)
        self.changed_brokers[record.broker_id] = BrokerRegistration.from_record(record, before)

    def _unregister_broker(self, record: r.UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        self.changed_brokers[record.broker_id] = None

    def _broker_change(self, record: r.BrokerRegistrationChangeRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self.changed_brokers[record.broker_id] = self._broker(record.broker_id, record.broker_epoch).with_changes(
            fenced=None if record.fenced == 0 else record.fenced > 0,
            in_controlled_shutdown=True if record.in_controlled_shutdown > 0 else None,
            log_dirs=tuple(sorted(record.log_dirs)) if record.log_dirs else None,
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        )

    def _fence_broker(self, record: r.FenceBrokerRecord) -> None:
        self.changed_brokers[record.id] = self._broker(record.id, record.epoch).with_changes(fenced=True)

    def _unfence_broker(self, record: r.UnfenceBrokerRecord) -> None:
        self.changed_brokers[record.id] = self._broker(record.id, record.epoch).with_changes(fenced=False)

    def _register_controller(self, record: r.RegisterControllerRecord) -> None:
        self.changed_controllers[record.controller_id] = ControllerRegistration(record)

    # Settings

    def _config(self, resource: ConfigResource) -> dict[str, str]:
        """The overrides of a resource as they are by now."""
        values = dict(self.base.configs.get(resource, {}))
        for key, value in self.changed_configs.get(resource, {}).items():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        return values

    def _config_record(self, record: r.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        self.changed_configs.setdefault(resource, {})[record.name] = record.value

    def _feature_level(self, record: r.FeatureLevelRecord) -> None:
        self.changed_features[record.name] = record.feature_level

    def _client_quota(self, record: r.ClientQuotaRecord) -> None:
        entity = tuple(sorted((e.entity_type, e.entity_name) for e in record.entity))
        self.changed_quotas.setdefault(entity, {})[record.key] = None if record.remove else record.value

    def _producer_ids(self, record: r.ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    # Security

    def _access_control(self, record: r.AccessControlEntryRecord) -> None:
        self.changed_acls[record.id] = record

    def _remove_access_control(self, record: r.RemoveAccessControlEntryRecord) -> None:
        self.changed_acls[record.id] = None

    def _scram(self, record: r.UserScramCredentialRecord) -> None:
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        self.changed_scram[record.mechanism, record.name] = credential

    def _remove_scram(self, record: r.RemoveUserScramCredentialRecord) -> None:
        self.changed_scram[record.mechanism, record.name] = None

    def _token(self, record: r.DelegationTokenRecord) -> None:
        self.changed_tokens[record.token_id] = record

    def _remove_token(self, record: r.RemoveDelegationTokenRecord) -> None:
        self.changed_tokens[record.token_id] = None

    def _nothing(self, record: Message) -> None:
        """Records that change no state: no-ops, the migration state; transactions are the loader's."""

    # The next image

    def apply(self, offset: int, epoch: int, timestamp_ms: int) -> MetadataImage:
        base, image = self.base, MetadataImage()
        image.offset, image.epoch, image.timestamp_ms = offset, epoch, timestamp_ms
        image.topics_by_id, image.topics_by_name = self._apply_topics()
        image.brokers = _merged(base.brokers, self.changed_brokers)
        image.controllers = _merged(base.controllers, self.changed_controllers)
        image.features = _merged(base.features, {k: v or None for k, v in self.changed_features.items()})
        image.configs = _merged_nested(base.configs, self.changed_configs)
        image.client_quotas = _merged_nested(base.client_quotas, self.changed_quotas)
        image.acls = base.acls.with_changes(self.changed_acls)
        image.scram = _merged(base.scram, self.changed_scram)
        image.tokens = _merged(base.tokens, self.changed_tokens)
        image.next_producer_id = base.next_producer_id if self.next_producer_id is None else self.next_producer_id
        return image

    def _apply_topics(self) -> tuple[dict[bytes, TopicImage], dict[str, TopicImage]]:
        base = self.base
        if not self.changed_topics and not self.deleted_topics:
            return base.topics_by_id, base.topics_by_name
        by_id, by_name = dict(base.topics_by_id), dict(base.topics_by_name)
        for topic_id, deleted in self.deleted_topics.items():
            del by_id[topic_id]
            del by_name[deleted.name]
        for topic_id, delta in self.changed_topics.items():
            topic = TopicImage(delta.name, topic_id, delta.all_partitions())
            by_id[topic_id] = topic
            by_name[delta.name] = topic
        return by_id, by_name


def _merged(base: dict[Any, Any], changes: dict[Any, Any]) -> dict[Any, Any]:
    if not changes:
        return base
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _merged_nested(base: dict[Any, dict[str, Any]], changes: dict[Any, dict[str, Any]]) -> dict[Any, dict[str, Any]]:
    if not changes:
        return base
    merged = dict(base)
    for key, inner in changes.items():
        values = _merged(merged.get(key, {}), inner)
        if values:
            merged[key] = values
        else:
            merged.pop(key, None)
    return merged


_REPLAY: dict[type[Message], Callable[[MetadataDelta, Any], None]] = {
    r.RegisterBrokerRecord: MetadataDelta._register_broker,
    r.UnregisterBrokerRecord: MetadataDelta._unregister_broker,
    r.TopicRecord: MetadataDelta._topic_record,
    r.PartitionRecord: MetadataDelta._partition_record,
    r.ConfigRecord: MetadataDelta._config_record,
    r.PartitionChangeRecord: MetadataDelta._partition_change,
    r.FenceBrokerRecord: MetadataDelta._fence_broker,
    r.UnfenceBrokerRecord: MetadataDelta._unfence_broker,
    r.RemoveTopicRecord: MetadataDelta._remove_topic,
    r.DelegationTokenRecord: MetadataDelta._token,
    r.UserScramCredentialRecord: MetadataDelta._scram,
    r.FeatureLevelRecord: MetadataDelta._feature_level,
    r.ClientQuotaRecord: MetadataDelta._client_quota,
    r.ProducerIdsRecord: MetadataDelta._producer_ids,
    r.BrokerRegistrationChangeRecord: MetadataDelta._broker_change,
    r.AccessControlEntryRecord: MetadataDelta._access_control,
    r.RemoveAccessControlEntryRecord: MetadataDelta._remove_access_control,
    r.NoOpRecord: MetadataDelta._nothing,
    r.ZkMigrationStateRecord: MetadataDelta._nothing,
    r.RemoveUserScramCredentialRecord: MetadataDelta._remove_scram,
    r.BeginTransactionRecord: MetadataDelta._nothing,
    r.EndTransactionRecord: MetadataDelta._nothing,
    r.AbortTransactionRecord: MetadataDelta._nothing,
    r.RemoveDelegationTokenRecord: MetadataDelta._remove_token,
    r.RegisterControllerRecord: MetadataDelta._register_controller,
    r.ClearElrRecord: MetadataDelta._clear_elr,
}
