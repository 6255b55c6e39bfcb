"""The cluster as a controller knows it, and what it decided: the names of Kafka's KafkaController and ControllerStats.

Every controller tells the counts of topics and brokers, from the metadata log that it has replayed.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.metadata.image import MetadataImage
from moldau.metadata.model import NO_LEADER, BrokerRegistration, TopicImage
from moldau.node.node import Node
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric, meter

CONTROLLER = "kafka_controller_kafkacontroller"
STATS = "kafka_controller_controllerstats"
FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30
"""The values of BrokerRegistrationState."""


class PartitionCounts:
    """Of the whole cluster, kept until a topic changes."""

    def __init__(self) -> None:
        self._counted: dict[bytes, TopicImage] | None = None
        self.topics = 0
        self.partitions = 0
        self.leaderless = 0
        self.not_preferred = 0

    def count(self, image: MetadataImage) -> Iterator[None]:
        topics = image.topics_by_id
        if topics is self._counted:
            return
        partitions = leaderless = not_preferred = looked_at = 0
        for topic in topics.values():
            for partition in topic.partitions.values():
                leader = partition.leader
                if leader == NO_LEADER:
                    leaderless += 1
                if leader != partition.preferred_leader:
                    not_preferred += 1
            partitions += len(topic.partitions)
            looked_at += len(topic.partitions)
            if looked_at >= BLOCK_SIZE:
                looked_at = 0
                yield
        self.topics, self.partitions = len(topics), partitions
        self.leaderless, self.not_preferred = leaderless, not_preferred
        self._counted = topics


def controller_metrics(node: Node, counts: PartitionCounts, now_ms: int) -> Iterator[Metric | None]:
    for _ in counts.count(node.metadata.image):
        yield None
    metadata, image = node.metadata, node.metadata.image
    is_active = metadata.is_active_controller
    brokers = list(image.brokers.values())
    decided = metadata.counts
    for stem, about, value in (
        ("activecontrollercount", "1 on the active controller", int(is_active)),
        ("offlinepartitionscount", "Partitions without a leader", counts.leaderless),
        ("preferredreplicaimbalancecount", "Partitions that not their first replica leads", counts.not_preferred),
        ("globaltopiccount", "Topics of the cluster", counts.topics),
        ("globalpartitioncount", "Partitions of the cluster", counts.partitions),
        ("fencedbrokercount", "Registered brokers that are fenced", sum(one.fenced for one in brokers)),
        ("activebrokercount", "Registered brokers that are not fenced", sum(not one.fenced for one in brokers)),
        (
            "controlledshutdownbrokercount",
            "Brokers in controlled shutdown",
            sum(state_of(one) == IN_CONTROLLED_SHUTDOWN for one in brokers),
        ),
        ("metadataerrorcount", "Records that could not be applied; Moldau stops instead", 0),
        ("ignoredstaticvoters", "1 where controller.quorum.voters is set and not used", ignored_static_voters(node)),
        ("lastappliedrecordoffset", "The offset of the metadata that this node has applied", image.offset),
        ("lastcommittedrecordoffset", "The last committed offset of the metadata log", metadata.high_watermark - 1),
        ("lastappliedrecordtimestamp", "When the last applied metadata was written, in ms", image.timestamp_ms),
        (
            "lastappliedrecordlagms",
            "How old that is; 0 on the active controller",
            0 if is_active else applied_lag_ms(node, now_ms),
        ),
    ):
        yield Metric(f"{CONTROLLER}_{stem}", GAUGE, about, value)
    for stem, about, count in (
        (
            "timedoutbrokerheartbeatcount",
            "Brokers that this controller fenced because no heartbeat came in time",
            decided.timed_out_sessions,
        ),
        ("newactivecontrollerscount", "How often this node heard of a new active controller", decided.new_controllers),
        ("eventqueueoperationsstartedcount", "Requests and duties of the active controller", decided.operations),
        ("eventqueueoperationstimedoutcount", "Those that waited too long; Moldau's never wait", 0),
    ):
        yield Metric(f"{CONTROLLER}_{stem}", COUNTER, about, count)
    yield from broker_state_metrics(node, brokers, now_ms)
    about = "Leaders that were elected although they may lack records"
    yield meter(f"{STATS}_uncleanleaderelections", about, decided.unclean_elections)
    about = "Leaders that were elected from the eligible leader replicas (KIP-966)"
    yield meter(f"{STATS}_electionfromeligibleleaderreplicas", about, decided.elections_from_elr)


def broker_state_metrics(node: Node, brokers: list[BrokerRegistration], now_ms: int) -> list[Metric]:
    states = Metric(
        f"{CONTROLLER}_brokerregistrationstate",
        GAUGE,
        f"{FENCED} fenced, {IN_CONTROLLED_SHUTDOWN} in controlled shutdown, {ACTIVE} active",
    )
    for broker in brokers:
        states.values[(("broker", str(broker.broker_id)),)] = state_of(broker)
    heard = Metric(
        f"{CONTROLLER}_timesincelastheartbeatreceivedms", GAUGE, "Time since a broker's last heartbeat, in ms"
    )
    controller = node.metadata.active_controller
    if controller is not None:
        for broker_id, contact in controller.state.contacts.items():
            heard.values[(("broker", str(broker_id)),)] = max(0, now_ms - contact.last_heartbeat_ms)
    return [states, heard]


def state_of(broker: BrokerRegistration) -> int:
    if broker.fenced:
        return FENCED
    return IN_CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE


def applied_lag_ms(node: Node, now_ms: int) -> int:
    applied_ms = node.metadata.image.timestamp_ms
    return max(0, node.wall.at(now_ms) - applied_ms) if applied_ms >= 0 else 0


def ignored_static_voters(node: Node) -> int:
    return int(bool(node.config.voters) and node.metadata.kraft_version >= 1)


def metadata_metrics(node: Node, now_ms: int) -> list[Metric]:
    """What a broker knows of the metadata."""
    prefix = "kafka_server_broker_metadata_metrics"
    image = node.image
    return [
        Metric(f"{prefix}_{stem}", GAUGE, about, value)
        for stem, about, value in (
            ("last_applied_record_offset", "The offset of the metadata that this broker has applied", image.offset),
            ("last_applied_record_timestamp", "When that was written, in ms", image.timestamp_ms),
            ("last_applied_record_lag_ms", "How old that is, in ms", applied_lag_ms(node, now_ms)),
            ("metadata_load_error_count", "Metadata that could not be loaded; Moldau stops instead", 0),
            ("metadata_apply_error_count", "Metadata that could not be applied; Moldau stops instead", 0),
            (
                "ignored_static_voters",
                "1 where controller.quorum.voters is set and not used",
                ignored_static_voters(node),
            ),
        )
    ]
