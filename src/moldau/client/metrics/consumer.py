"""A consumer's metrics under Kafka's names: of polls, of fetches by topic and partition, of its place in a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.metrics.meters import RATIO_UNIT
from moldau.client.metrics.names import Metrics
from moldau.client.metrics.network import add_app_info, add_network, add_throttling, seconds_ago
from moldau.client.metrics.table import Rows, Table
from moldau.client.metrics.window import summarize

if TYPE_CHECKING:
    from moldau.client.config import ClientConfig
    from moldau.client.connection.cluster import Cluster
    from moldau.client.fetch.fetcher import Fetcher, PartitionState
    from moldau.client.metrics.membership import GroupMeter
    from moldau.client.metrics.reading import PollMeter, ReadMeter, ReadTopicMeter

FETCHES = "consumer-fetch-manager-metrics"


def consumer_metrics(
    config: ClientConfig,
    cluster: Cluster,
    fetcher: Fetcher,
    polls: PollMeter,
    started_wall_ms: int,
    group: GroupMeter | None,
) -> Metrics:
    table = Table(cluster.window, config.get_text("client.id"), cluster.network.now_ms())
    add_app_info(table, started_wall_ms)
    rows = table.rows("consumer-metrics")
    add_polls(rows, polls, table.now_ms)
    rows.put("commit-sync-time-ns-total", float(polls.commit_sync_ns))
    rows.put("committed-time-ns-total", float(polls.committed_ns))
    add_network(table, cluster, "consumer-metrics", "consumer-node-metrics")
    states = list(fetcher.partitions.values())
    _add_fetches(table, cluster, fetcher.meter, states)
    if group is not None:
        _add_group(table.rows("consumer-coordinator-metrics"), group, len(states), table.now_ms)
    return table.finish()


def add_polls(rows: Rows, polls: PollMeter, now_ms: int) -> None:
    rows.averages("time-between-poll", polls.between_ms)
    rows.put("last-poll-seconds-ago", seconds_ago(polls.started_ms, now_ms))
    rows.put("poll-idle-ratio-avg", summarize([polls.idle_ratios]).average / RATIO_UNIT)


def _add_fetches(table: Table, cluster: Cluster, meter: ReadMeter, states: list[PartitionState]) -> None:
    rows = table.rows(FETCHES)
    topics = list(meter.topics.items())
    rows.amounts("records-consumed", *(topic.records for _, topic in topics))
    rows.amounts("bytes-consumed", *(topic.bytes for _, topic in topics))
    rows.averages("fetch-size", meter.fetch_sizes)
    rows.put("records-per-request-avg", summarize([meter.records_per_request]).average)
    rows.count_of("fetch", rows.averages("fetch-latency", meter.latencies_ms))
    add_throttling(rows, cluster, "fetch-throttle-time")
    rows.put("records-lag-max", summarize(state.meter.lags for state in states).largest)
    rows.put("records-lead-min", summarize(state.meter.leads for state in states).smallest)
    for name, topic in topics:
        _add_topic(table.rows(FETCHES, topic=name), topic)
    for state in states:
        _add_partition(table.rows(FETCHES, topic=state.partition.topic, partition=state.partition.partition), state)


def _add_topic(rows: Rows, topic: ReadTopicMeter) -> None:
    rows.amounts("records-consumed", topic.records)
    rows.amounts("bytes-consumed", topic.bytes)
    rows.averages("fetch-size", topic.fetch_sizes)
    rows.put("records-per-request-avg", summarize([topic.records_per_request]).average)


def _add_partition(rows: Rows, state: PartitionState) -> None:
    rows.put("preferred-read-replica", float(state.preferred_replica))
    meter = state.meter
    if meter.lag is None or meter.lead is None:
        return
    lags, leads = summarize([meter.lags]), summarize([meter.leads])
    rows.put("records-lag", float(meter.lag))
    rows.put("records-lag-avg", lags.average)
    rows.put("records-lag-max", lags.largest)
    rows.put("records-lead", float(meter.lead))
    rows.put("records-lead-avg", leads.average)
    rows.put("records-lead-min", leads.smallest)


def _add_group(rows: Rows, group: GroupMeter, assigned: int, now_ms: int) -> None:
    rows.put("assigned-partitions", float(assigned))
    for name, tally in (("join", group.joins_ms), ("sync", group.syncs_ms)):
        rows.count_of(name, rows.averages(f"{name}-time", tally))
    rows.count_of("commit", rows.averages("commit-latency", group.commits_ms))
    for name in ("assigned", "revoked", "lost"):
        rows.averages(f"partition-{name}-latency", group.listener_ms[name])
    rows.per_hour("failed-rebalance", group.failed_rebalances)
    rebalances = rows.averages("rebalance-latency", group.rebalances_ms)
    rows.put("rebalance-latency-total", float(rebalances.total_amount))
    add_membership(rows, group, now_ms)
    rows.put("last-rebalance-seconds-ago", seconds_ago(group.rebalanced_ms, now_ms))


def add_membership(rows: Rows, group: GroupMeter, now_ms: int) -> None:
    """What members of share groups count as well."""
    rows.counts("heartbeat", group.heartbeats_ms)
    rows.put("heartbeat-response-time-max", summarize([group.heartbeats_ms]).largest)
    rows.put("last-heartbeat-seconds-ago", seconds_ago(group.heartbeat_sent_ms, now_ms))
    rows.per_hour("rebalance", group.rebalances_ms)
