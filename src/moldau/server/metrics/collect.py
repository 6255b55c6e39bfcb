"""All metrics of a node, one after the other.

The numbers belong to the objects they describe; the modules beside this one only know where they are. Where Kafka has
the same number, the name is the one that its JMX bean gets with the usual rules of the Prometheus JMX exporter
(`kafka.log:type=LogCleaner,name=max-clean-time-secs` is `kafka_log_logcleaner_max_clean_time_secs`), so that dashboards
fit; what only Moldau has begins with `moldau_`.

With thousands of partitions all of it takes longer than a turn of the event loop may: collecting yields None wherever
others may have their turn in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from moldau.metrics.recent_values import RecentValues
from moldau.metrics.request_stats import RequestStats
from moldau.metrics.traffic import Traffic
from moldau.net.listener_group import ListenerGroup
from moldau.net.turns import Turns
from moldau.node.node import Node
from moldau.server.metrics.authorizer import authorizer_metrics
from moldau.server.metrics.certificates import certificate_metrics
from moldau.server.metrics.connections import connection_metrics
from moldau.server.metrics.controller import PartitionCounts, controller_metrics, metadata_metrics
from moldau.server.metrics.following import following_metrics
from moldau.server.metrics.groups import group_metrics, share_coordinator_metrics, transaction_metrics
from moldau.server.metrics.hosted import Hosted
from moldau.server.metrics.lag import LagCollector
from moldau.server.metrics.limits import PARTITIONS, TOPICS, LeftOut, RowLimits
from moldau.server.metrics.log_upkeep import cleaner_metrics, directory_metrics, scrub_metrics
from moldau.server.metrics.logins import login_metrics
from moldau.server.metrics.logs import directory_state_metrics, flush_metrics, log_metrics
from moldau.server.metrics.loop import clock_metrics, turn_metrics
from moldau.server.metrics.metric import Metric
from moldau.server.metrics.mutations import mutation_metrics
from moldau.server.metrics.offsets import broker_list_metrics, offset_metrics
from moldau.server.metrics.process import process_metrics
from moldau.server.metrics.quotas import quota_metrics
from moldau.server.metrics.raft import raft_channel_metrics, raft_metrics
from moldau.server.metrics.rates import Rates
from moldau.server.metrics.replicas import isr_metrics, partition_metrics
from moldau.server.metrics.requests import event_metrics, request_metrics
from moldau.server.metrics.server import forwarding_metrics, idle_metrics, state_metrics
from moldau.server.metrics.shares import share_metrics, share_partition_metrics
from moldau.server.metrics.sockets import socket_metrics
from moldau.server.metrics.telemetry import ExportCounts, telemetry_metrics
from moldau.server.metrics.topics import topic_metrics
from moldau.server.metrics.waiting import session_metrics, waiting_metrics


class Sources:
    """Where the numbers are, and what is remembered from one scrape to the next. Only the node is always there.

    `outboxes` are what connections to other nodes have carried; `started_s` is of the clock that requests are timed
    with.
    """

    def __init__(
        self,
        node: Node,
        *,
        turns: Turns | None = None,
        listener_groups: Sequence[ListenerGroup] = (),
        request_stats: Callable[[], list[RequestStats]] | None = None,
        outboxes: Sequence[dict[str, Traffic]] = (),
        flush_times: RecentValues | None = None,
        exported: ExportCounts | None = None,
        started_s: float = 0.0,
    ) -> None:
        self.node = node
        self.turns = turns
        self.listener_groups = listener_groups
        self.request_stats = request_stats
        self.outboxes = outboxes
        self.flush_times = flush_times
        self.exported = exported
        self.started_s = started_s
        self.is_stopping = False
        self.limits = RowLimits(node.config)
        self.rates = Rates()
        self.partition_counts = PartitionCounts()


def collect(sources: Sources, now_ms: int, now_s: float) -> Iterator[Metric | None]:
    """`now_s` is of the clock that requests are timed with."""
    node = sources.node
    if sources.turns is not None:
        yield from turn_metrics(sources.turns)
        yield from idle_metrics(node, sources.turns, sources.listener_groups, now_s - sources.started_s)
        yield from process_metrics()
    yield from clock_metrics(node.wall)
    yield None
    if sources.request_stats is not None:
        yield from request_metrics(sources.request_stats(), now_s)
        if node.config.is_controller:
            yield from event_metrics(sources.request_stats(), now_s)
    yield from connection_metrics(sources.listener_groups, now_ms)
    yield from login_metrics(sources.listener_groups)
    yield from certificate_metrics(sources.listener_groups)
    yield from socket_metrics(sources.listener_groups, sources.rates, now_s)
    yield None
    yield from quota_metrics(node.quotas, now_ms)
    yield from mutation_metrics(node.metadata.active_controller, now_ms)
    yield from authorizer_metrics(node, now_ms)
    yield from raft_metrics(node, sources.rates, now_ms, now_s)
    yield from raft_channel_metrics(sources.outboxes, sources.rates, now_s)
    if node.config.is_controller:
        yield None
        yield from controller_metrics(node, sources.partition_counts, now_ms)
    if node.is_broker:
        yield None
        yield from broker_metrics(sources, now_ms, now_s)


def broker_metrics(sources: Sources, now_ms: int, now_s: float) -> Iterator[Metric | None]:
    node, limits, left_out = sources.node, sources.limits, LeftOut()
    yield from state_metrics(node, sources.is_stopping)
    yield from metadata_metrics(node, now_ms)
    yield from forwarding_metrics(node, now_ms)
    counts = node.replicas.context.counts
    left_out.add(TOPICS, max(0, len(counts.topics) - limits.topics_max))
    yield from topic_metrics(counts, limits.topics_max)
    yield from isr_metrics(counts)
    hosted = Hosted(limits.partitions_max)
    for _ in hosted.gather(node.replicas):
        yield None
    left_out.add(PARTITIONS, hosted.left_out)
    yield from partition_metrics(node, hosted, now_ms)
    yield from log_metrics(node, hosted)
    yield from offset_metrics(node, hosted, limits)
    yield from following_metrics(node.fetchers, limits.partitions_max, sources.rates, now_s)
    yield from waiting_metrics(node.waiting)
    yield from session_metrics(node.fetch_sessions)
    yield from log_upkeep_metrics(sources, now_ms, now_s)
    yield from group_metrics(node.coordinators, sources.rates, now_ms, now_s)
    yield from transaction_metrics(node, now_ms)
    yield from share_metrics(node.shares)
    yield from share_partition_metrics(node.shares)
    yield from share_coordinator_metrics(node.coordinators, now_ms)
    yield None
    yield from broker_list_metrics(node)
    yield from LagCollector(node, limits, left_out, now_ms).collect()
    yield from telemetry_metrics(node.telemetry, sources.exported)
    yield left_out.metric()


def log_upkeep_metrics(sources: Sources, now_ms: int, now_s: float) -> Iterator[Metric | None]:
    node = sources.node
    yield from directory_state_metrics(node)
    if sources.flush_times is not None:
        yield from flush_metrics(sources.flush_times, now_s)
    yield from cleaner_metrics(node.cleaner, now_ms)
    yield from scrub_metrics(node.scrub)
    yield from directory_metrics(node.logs, node.cleaner)
    yield None
