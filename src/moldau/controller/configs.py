"""Settings of topics, brokers, groups and client-metrics subscriptions: alter and incremental alter."""

from __future__ import annotations

from collections import Counter

from moldau.config.broker_config import find_broker_key
from moldau.config.client_metrics_keys import CLIENT_METRICS_KEYS
from moldau.config.definitions import LIST, ConfigKey, split_list
from moldau.config.describe import describe_new_topic
from moldau.config.dynamic import (
    check_dead_letter_prefix,
    validate_broker_configs,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from moldau.config.group_keys import DEAD_LETTER_TOPIC_KEY, GROUP_KEYS
from moldau.config.resources import check_altered_resource, check_topic_name
from moldau.config.topic_keys import TOPIC_KEYS
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import partition_version
from moldau.metadata.model import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    TopicImage,
)
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_configs_response as plain
from moldau.protocol.messages import incremental_alter_configs_response as incremental
from moldau.protocol.messages.alter_configs_request import AlterConfigsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicConfigs
from moldau.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from moldau.protocol.stored.metadata_records import ClearElrRecord, ConfigRecord, PartitionChangeRecord

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

MIN_ISR = "min.insync.replicas"

Change = tuple[str, int, str | None]
"""Key, operation, value."""


class Configs:
    def __init__(self, state: ControllerState) -> None:
        self.state = state

    def described_for_creation(self, overrides: dict[str, str]) -> list[CreatableTopicConfigs]:
        """What the response to CreateTopics says about the settings of a new topic."""
        rows = describe_new_topic(overrides, self.state.dynamic_config)
        return [CreatableTopicConfigs(row.name, row.value, row.read_only, row.source, row.sensitive) for row in rows]

    # Requests

    def incremental_alter(self, request: IncrementalAlterConfigsRequest) -> Result:
        counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
        records: list[VersionedRecord] = []
        response = incremental.IncrementalAlterConfigsResponse()
        for resource in request.resources:
            kind, name = resource.resource_type, resource.resource_name
            row = incremental.AlterConfigsResourceResponse(0, None, kind, name)
            try:
                _check_once(counts[kind, name])
                changes = [(c.name, c.config_operation, c.value) for c in resource.configs]
                records += self.changes(kind, name, changes)
            except KafkaError as error:
                row.error_code, row.error_message = error.code, error.message
            response.responses.append(row)
        return Result([] if request.validate_only else records, response)

    def alter(self, request: AlterConfigsRequest) -> Result:
        """The old way: what the request does not name is deleted."""
        counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
        records: list[VersionedRecord] = []
        response = plain.AlterConfigsResponse()
        for resource in request.resources:
            kind, name = resource.resource_type, resource.resource_name
            row = plain.AlterConfigsResourceResponse(0, None, kind, name)
            try:
                _check_once(counts[kind, name])
                changes: list[Change] = [(c.name, SET, c.value) for c in resource.configs]
                given = {c.name for c in resource.configs}
                changes += [(key, DELETE, None) for key in self.state.image.config(kind, name) if key not in given]
                records += self.changes(kind, name, changes)
            except KafkaError as error:
                row.error_code, row.error_message = error.code, error.message
            response.responses.append(row)
        return Result([] if request.validate_only else records, response)

    # One resource

    def changes(self, kind: int, name: str, changes: list[Change], is_new: bool = False) -> list[VersionedRecord]:
        """The records that bring a resource from what it has to what is asked for; raises when it must not be so."""
        self._check_exists(kind, name, is_new)
        current = self.state.image.config(kind, name)
        values: dict[str, str | None] = dict(current)
        seen: set[str] = set()
        for key, operation, value in changes:
            if key in seen:
                raise KafkaError(errors.INVALID_CONFIG, f"Error due to duplicate config keys: {key}")
            seen.add(key)
            self._change_one(kind, key, operation, value, values)
        self._check_min_isr(kind, name, seen, values)
        check_altered_resource(kind, name)
        self._validate(kind, name, values, {key for key, operation, _ in changes if operation != DELETE})
        records: list[VersionedRecord] = []
        for key in [key for key, _, _ in changes]:
            if values.get(key) != current.get(key):
                records.append((ConfigRecord(kind, name, key, values.get(key)), 0))
        if any(isinstance(record, ConfigRecord) and record.name == MIN_ISR for record, _ in records):
            records += self._clear_elr(kind, name, values.get(MIN_ISR))
        return records

    def _change_one(
        self, kind: int, key: str, operation: int, value: str | None, values: dict[str, str | None]
    ) -> None:
        if operation not in _OPERATIONS:
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown config operation {operation}")
        if operation == DELETE:
            values.pop(key, None)
            return
        if operation == SET:
            values[key] = value
            return
        definition = self._key(kind, key)
        if definition is None or definition.type != LIST:
            message = f"Can't {_OPERATIONS[operation]} to key {key} because its type is not LIST."
            raise KafkaError(errors.INVALID_CONFIG, message)
        before = values.get(key)
        if before is None:
            before = self._default(kind, definition)
        items = split_list(before)
        wanted = split_list(value or "")
        if operation == APPEND:
            items += [item for item in wanted if item not in items]
        else:
            items = [item for item in items if item not in wanted]
        values[key] = ",".join(items)

    def _key(self, kind: int, key: str) -> ConfigKey | None:
        if kind == TOPIC_RESOURCE:
            return TOPIC_KEYS.get(key)
        if kind == BROKER_RESOURCE:
            return find_broker_key(key)
        return GROUP_KEYS.get(key) if kind == GROUP_RESOURCE else CLIENT_METRICS_KEYS.get(key)

    def _default(self, kind: int, definition: ConfigKey) -> str:
        """What an append starts from: the value the key would have without an override."""
        for synonym in definition.synonyms if kind == TOPIC_RESOURCE else ():
            dynamic = self.state.image.broker_defaults().get(synonym)
            if dynamic is not None:
                return dynamic
            if self.state.config.is_given(synonym):
                return ",".join(self.state.config.get_list(synonym))
        return definition.default or ""

    def _check_exists(self, kind: int, name: str, is_new: bool) -> None:
        if kind == TOPIC_RESOURCE and not is_new and name and self.state.image.topic(name) is None:
            check_topic_name(name)
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if kind == BROKER_RESOURCE and name.isdecimal():
            known = int(name) in self.state.image.brokers or int(name) in self.state.image.controllers
            if not known:
                raise KafkaError(errors.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")
        if kind == BROKER_LOGGER_RESOURCE:
            raise KafkaError(errors.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")

    def _check_min_isr(self, kind: int, name: str, changed: set[str], values: dict[str, str | None]) -> None:
        """With eligible leader replicas, one value must hold for the whole cluster."""
        if kind != BROKER_RESOURCE or MIN_ISR not in changed or not self.state.image.elr_enabled:
            return
        if name:
            raise KafkaError(errors.INVALID_CONFIG, f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
        if MIN_ISR not in values:
            raise KafkaError(errors.INVALID_CONFIG, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")

    def _validate(self, kind: int, name: str, values: dict[str, str | None], added: set[str]) -> None:
        # A stored key that this release does not know must not stop every other change.
        if kind == TOPIC_RESOURCE:
            validate_topic_configs({k: v for k, v in values.items() if k in TOPIC_KEYS or k in added})
        elif kind == BROKER_RESOURCE:
            if name in ("", str(self.state.node_id)):
                self.state.dynamic_config.validate(values, bool(name))
            else:
                validate_broker_configs(values, bool(name))
        elif kind == GROUP_RESOURCE:
            known = {k: v for k, v in values.items() if k in GROUP_KEYS or k in added}
            validate_group_configs(known, self.state.config)
            if DEAD_LETTER_TOPIC_KEY in added:
                check_dead_letter_prefix(values.get(DEAD_LETTER_TOPIC_KEY), self.state.config)
        elif kind == CLIENT_METRICS_RESOURCE:
            validate_client_metrics_configs(values)

    def _clear_elr(self, kind: int, name: str, minimum: str | None) -> list[VersionedRecord]:
        """Whoever was eligible under another minimum is not any more; `minimum` is what holds from now on."""
        image = self.state.image
        if not image.elr_enabled or kind not in (TOPIC_RESOURCE, BROKER_RESOURCE):
            return []
        if kind == TOPIC_RESOURCE:
            topic = image.topics_by_name.get(name)
            kept = [] if topic is None else self._still_eligible(topic, minimum)
            return [(ClearElrRecord(name), 0), *kept]
        records: list[VersionedRecord] = [(ClearElrRecord(""), 0)]
        for topic in image.topics_by_id.values():
            own = image.config(TOPIC_RESOURCE, topic.name).get(MIN_ISR)
            records += self._still_eligible(topic, minimum if own is None else own)
        return records

    def _still_eligible(self, topic: TopicImage, minimum: str | None) -> list[VersionedRecord]:
        """Where the ISR is below the new minimum too, nothing was committed without those who are eligible, and nothing
        is: they stay so. Without that the partition would have to wait for an unclean election. (Kafka leaves it
        waiting.)"""
        version = partition_version(self.state.image.metadata_version)
        wanted = self.state.min_insync_replicas("") if minimum is None else int(minimum)
        records: list[VersionedRecord] = []
        for index, partition in topic.partitions.items():
            is_below = len(partition.isr) < min(wanted, len(partition.replicas))
            if is_below and (partition.elr or partition.last_known_elr):
                record = PartitionChangeRecord(index, topic.topic_id)
                record.eligible_leader_replicas = list(partition.elr)
                record.last_known_elr = list(partition.last_known_elr)
                records.append((record, version))
        return records


def _check_once(count: int) -> None:
    if count > 1:
        raise KafkaError(errors.INVALID_REQUEST, "Each resource must appear at most once.")
