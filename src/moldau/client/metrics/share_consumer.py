"""A share consumer's metrics under Kafka's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.metrics.consumer import add_membership, add_polls
from moldau.client.metrics.names import Metrics
from moldau.client.metrics.network import add_app_info, add_network, add_throttling
from moldau.client.metrics.table import Table

if TYPE_CHECKING:
    from moldau.client.config import ClientConfig
    from moldau.client.connection.cluster import Cluster
    from moldau.client.metrics.membership import GroupMeter
    from moldau.client.metrics.reading import PollMeter, ShareMeter

PREFIX = "consumer-share"


def share_consumer_metrics(
    config: ClientConfig,
    cluster: Cluster,
    meter: ShareMeter,
    polls: PollMeter,
    started_wall_ms: int,
    group: GroupMeter,
) -> Metrics:
    table = Table(cluster.window, config.get_text("client.id"), cluster.network.now_ms())
    add_app_info(table, started_wall_ms)
    add_polls(table.rows(f"{PREFIX}-metrics"), polls, table.now_ms)
    # As Java's, whose share consumers have the network of consumers.
    add_network(table, cluster, "consumer-metrics", "consumer-node-metrics")
    add_membership(table.rows(f"{PREFIX}-coordinator-metrics"), group, table.now_ms)
    rows = table.rows(f"{PREFIX}-fetch-manager-metrics")
    rows.amount_of("bytes-consumed", rows.averages("fetch-size", meter.fetch_sizes))
    rows.averages("records-per-request", meter.records_per_request)
    rows.amounts("records-consumed", meter.records)
    rows.amounts("acknowledgements-send", meter.acknowledgements)
    rows.amounts("acknowledgements-error", meter.failed_acknowledgements)
    rows.count_of("fetch", rows.averages("fetch-latency", meter.latencies_ms))
    add_throttling(rows, cluster, "fetch-throttle-time")
    return table.finish()
