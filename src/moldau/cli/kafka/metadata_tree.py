"""The metadata of a cluster as a tree of directories and files, under the names of Kafka's metadata shell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from moldau.protocol.uuids import uuid_to_text
from moldau.storage.inspect.json_text import json_text

if TYPE_CHECKING:
    from moldau.metadata.image import MetadataImage
    from moldau.metadata.model import BrokerRegistration, ControllerRegistration, PartitionRegistration, TopicImage
    from moldau.server.offline_metadata import OfflineMetadata

RESOURCE_KINDS = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class Node:
    """A directory with children, or a file with text."""

    def __init__(self, text: str = "", children: dict[str, Node] | None = None) -> None:
        self.text = text
        self.children = children

    def walk(self, path: str) -> Iterator[tuple[str, Node]]:
        """This node and all below it, with their paths."""
        yield path, self
        for name in sorted(self.children or {}):
            yield from (self.children or {})[name].walk(f"{path}/{name}")

    def tree_lines(self, depth: int = 0) -> Iterator[str]:
        indent = "  " * depth
        if self.children is None:
            yield from (indent + line for line in self.text.splitlines() or [""])
            return
        for name in sorted(self.children):
            child = self.children[name]
            if child.children is None and "\n" not in child.text:
                yield f"{indent}{name}: {child.text}"
            else:
                yield f"{indent}{name}:"
                yield from child.tree_lines(depth + 1)


def directory(children: dict[str, Node]) -> Node:
    return Node(children=children)


def file(value: object) -> Node:
    return Node(value if isinstance(value, str) else json_text(value))


def build_tree(metadata: OfflineMetadata) -> Node:
    return directory({"image": _image(metadata.image), "local": _local(metadata), "raft": _raft(metadata)})


def _local(metadata: OfflineMetadata) -> Node:
    from moldau import __version__

    snapshot = metadata.snapshot
    children = {"version": file(f"moldau {__version__}"), "logEndOffset": file(metadata.log_end_offset)}
    if snapshot is not None:
        children["snapshot"] = file(f"{snapshot.offset:020d}-{snapshot.epoch:010d}")
    return directory(children)


def _raft(metadata: OfflineMetadata) -> Node:
    voters: dict[str, Node] = {}
    for voter in metadata.voters.voters() if metadata.voters is not None else []:
        endpoints = {name: f"{host}:{port}" for name, host, port in voter.endpoints}
        shown = {"directoryId": uuid_to_text(voter.key.directory_id), "endpoints": endpoints}
        voters[str(voter.key.id)] = file(shown)
    return directory({"kraftVersion": file(metadata.kraft_version), "voters": directory(voters)})


def _image(image: MetadataImage) -> Node:
    return directory(
        {
            "provenance": file(
                {"offset": image.offset, "epoch": image.epoch, "lastContainedLogTimeMs": image.timestamp_ms}
            ),
            "features": directory({name: file(level) for name, level in image.features.items()}),
            "cluster": _cluster(image),
            "topics": _topics(image),
            "configs": _configs(image),
            "clientQuotas": _quotas(image),
            "producerIds": directory({"nextProducerId": file(image.next_producer_id)}),
            "acls": _acls(image),
            "scram": _scram(image),
            "delegationTokens": directory({name: file("(redacted)") for name in image.tokens}),
        }
    )


def _cluster(image: MetadataImage) -> Node:
    brokers = {str(each.broker_id): file(_broker(each)) for each in image.brokers.values()}
    controllers = {str(each.controller_id): file(_controller(each)) for each in image.controllers.values()}
    return directory({"brokers": directory(brokers), "controllers": directory(controllers)})


def _registration(registered: BrokerRegistration | ControllerRegistration) -> dict[str, object]:
    return {
        "incarnationId": uuid_to_text(registered.incarnation_id),
        "listeners": {name: f"{each.host}:{each.port}" for name, each in registered.end_points.items()},
        "supportedFeatures": {name: f"{span.low}-{span.high}" for name, span in registered.features.items()},
    }


def _broker(broker: BrokerRegistration) -> dict[str, object]:
    return {
        "epoch": broker.broker_epoch,
        **_registration(broker),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "directories": [uuid_to_text(each) for each in broker.log_dirs],
    }


def _controller(controller: ControllerRegistration) -> dict[str, object]:
    return _registration(controller)


def _topics(image: MetadataImage) -> Node:
    by_name = {topic.name: _topic(topic) for topic in image.topics_by_name.values()}
    by_id = {uuid_to_text(topic.topic_id): _topic(topic) for topic in image.topics_by_name.values()}
    return directory({"byName": directory(by_name), "byId": directory(by_id)})


def _topic(topic: TopicImage) -> Node:
    partitions = {str(index): file(_partition(each)) for index, each in topic.partitions.items()}
    return directory({"name": file(topic.name), "id": file(uuid_to_text(topic.topic_id)), **partitions})


def _partition(partition: PartitionRegistration) -> dict[str, object]:
    return {
        "replicas": list(partition.replicas),
        "directories": [uuid_to_text(each) for each in partition.directories],
        "isr": list(partition.isr),
        "removingReplicas": list(partition.removing_replicas),
        "addingReplicas": list(partition.adding_replicas),
        "elr": list(partition.elr),
        "lastKnownElr": list(partition.last_known_elr),
        "leader": partition.leader,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
    }


def _configs(image: MetadataImage) -> Node:
    kinds: dict[str, dict[str, Node]] = {}
    for (kind, name), values in image.configs.items():
        shown = directory({key: file(value) for key, value in values.items()})
        kinds.setdefault(RESOURCE_KINDS.get(kind, str(kind)), {})[name or "<default>"] = shown
    return _two_levels(kinds)


def _two_levels(levels: dict[str, dict[str, Node]]) -> Node:
    return directory({name: directory(children) for name, children in levels.items()})


def _entity(parts: Iterable[tuple[str, str | None]]) -> str:
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)


def _quotas(image: MetadataImage) -> Node:
    return directory(
        {
            _entity(entity): directory({key: file(value) for key, value in quotas.items()})
            for entity, quotas in image.client_quotas.items()
        }
    )


def _acls(image: MetadataImage) -> Node:
    return directory(
        {
            uuid_to_text(acl_id): file(
                {
                    "resourceType": record.resource_type,
                    "resourceName": record.resource_name,
                    "patternType": record.pattern_type,
                    "principal": record.principal,
                    "host": record.host,
                    "operation": record.operation,
                    "permissionType": record.permission_type,
                }
            )
            for acl_id, record in image.acls.items()
        }
    )


def _scram(image: MetadataImage) -> Node:
    kinds: dict[str, dict[str, Node]] = {}
    for (mechanism, user), credential in image.scram.items():
        # Keys are no business of whoever looks.
        kinds.setdefault(MECHANISMS.get(mechanism, str(mechanism)), {})[user] = file(
            {"iterations": credential.iterations, "salt": "(redacted)", "storedKey": "(redacted)"}
        )
    return _two_levels(kinds)
