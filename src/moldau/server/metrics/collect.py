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

from moldau.metrics.request_stats import RequestStats
from moldau.net.listener_group import ListenerGroup
from moldau.net.turns import Turns
from moldau.node.node import Node
from moldau.server.metrics.authorizer import authorizer_metrics
from moldau.server.metrics.connections import connection_metrics
from moldau.server.metrics.log_upkeep import cleaner_metrics, directory_metrics, scrub_metrics
from moldau.server.metrics.logins import login_metrics
from moldau.server.metrics.loop import clock_metrics, turn_metrics
from moldau.server.metrics.metric import Metric
from moldau.server.metrics.mutations import mutation_metrics
from moldau.server.metrics.quotas import quota_metrics
from moldau.server.metrics.requests import request_metrics
from moldau.server.metrics.shares import share_coordinator_metrics, share_metrics, share_partition_metrics
from moldau.server.metrics.topics import topic_metrics

TOPICS_MAX = 1000


class Sources:
    """Where the numbers are. Only the node is always there."""

    def __init__(
        self,
        node: Node,
        *,
        turns: Turns | None = None,
        listener_groups: Sequence[ListenerGroup] = (),
        request_stats: Callable[[], list[RequestStats]] | None = None,
    ) -> None:
        self.node = node
        self.turns = turns
        self.listener_groups = listener_groups
        self.request_stats = request_stats


def collect(sources: Sources, now_ms: int, now_s: float) -> Iterator[Metric | None]:
    """`now_s` is of the clock that requests are timed with."""
    node = sources.node
    if sources.turns is not None:
        yield from turn_metrics(sources.turns)
    yield from clock_metrics(node.wall)
    if sources.request_stats is not None:
        yield from request_metrics(sources.request_stats(), now_s)
    yield from connection_metrics(sources.listener_groups, now_ms)
    yield from login_metrics(sources.listener_groups)
    yield None
    yield from quota_metrics(node.quotas, now_ms)
    yield from mutation_metrics(node.metadata.active_controller, now_ms)
    yield from authorizer_metrics(node, now_ms)
    if node.is_broker:
        yield None
        yield from broker_metrics(node, now_ms)


def broker_metrics(node: Node, now_ms: int) -> Iterator[Metric | None]:
    yield from topic_metrics(node.replicas.context.counts, TOPICS_MAX)
    yield from cleaner_metrics(node.cleaner, now_ms)
    yield from scrub_metrics(node.scrub)
    yield from directory_metrics(node.logs, node.cleaner)
    yield None
    yield from share_metrics(node.shares)
    yield from share_partition_metrics(node.shares)
    yield from share_coordinator_metrics(node.coordinators)
