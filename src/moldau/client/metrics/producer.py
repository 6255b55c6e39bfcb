"""A producer's metrics under Kafka's names: in all, of each topic, of each broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.metrics.meters import RATIO_UNIT, ProduceMeter, TopicMeter
from moldau.client.metrics.names import Metrics
from moldau.client.metrics.network import add_app_info, add_network, add_throttling, ratio
from moldau.client.metrics.table import Rows, Table
from moldau.client.metrics.window import summarize

if TYPE_CHECKING:
    from moldau.client.config import ClientConfig
    from moldau.client.connection.cluster import Cluster

GROUP = "producer-metrics"
TRANSACTION_CALLS = ("init", "begin", "send-offsets", "prepare", "commit", "abort")


def producer_metrics(
    config: ClientConfig, cluster: Cluster, meter: ProduceMeter, started_wall_ms: int, held: tuple[int, int]
) -> Metrics:
    """held: how many bytes the buffer holds, and how many threads wait for room in it."""
    now_ms = cluster.network.now_ms()
    table = Table(cluster.window, config.get_text("client.id"), now_ms)
    add_app_info(table, started_wall_ms)
    rows = table.rows(GROUP)
    topics = list(meter.topics.items())
    _add_batches(rows, meter, [topic for _, topic in topics])
    _add_buffer(rows, meter, config.get_int("buffer.memory"), *held)
    _add_calls(rows, meter)
    add_throttling(rows, cluster, "produce-throttle-time")
    rows.averages("request-latency", *(node.latencies_ms for node in list(cluster.meter.nodes.values())))
    rows.put("requests-in-flight", float(cluster.in_flight_count()))
    rows.put("metadata-age", (now_ms - cluster.metadata_ms) / 1000)
    add_network(table, cluster, GROUP, "producer-node-metrics")
    for name, topic in topics:
        _add_topic(table.rows("producer-topic-metrics", topic=name), topic)
    return table.finish()


def _add_batches(rows: Rows, meter: ProduceMeter, topics: list[TopicMeter]) -> None:
    records = summarize(topic.records for topic in topics)
    rows.amount_of("record-send", records)
    rows.amounts("record-error", *(topic.errors for topic in topics))
    rows.amounts("record-retry", *(topic.retries for topic in topics))
    rows.averages("batch-size", *(topic.batches for topic in topics))
    compression = summarize(topic.compression for topic in topics)
    rows.put("compression-rate-avg", compression.average / RATIO_UNIT)
    rows.averages("record-queue-time", meter.queue_times_ms)
    rows.put("records-per-request-avg", summarize([meter.requests]).average)
    rows.put("record-size-avg", ratio(float(summarize([meter.record_bytes]).amount), float(records.amount)))
    rows.put("record-size-max", summarize([meter.record_sizes]).largest)
    rows.counts("batch-split", meter.splits)


def _add_buffer(rows: Rows, meter: ProduceMeter, total_bytes: int, held_bytes: int, waiting: int) -> None:
    rows.put("buffer-total-bytes", float(total_bytes))
    # A record that is larger than the buffer may have it alone.
    rows.put("buffer-available-bytes", float(max(0, total_bytes - held_bytes)))
    rows.put("waiting-threads", float(waiting))
    rows.counts("buffer-exhausted", meter.exhausted)
    rows.put("bufferpool-wait-time-ns-total", float(meter.memory_wait_ns.amount))
    rows.share_of_time("bufferpool-wait-ratio", [meter.memory_wait_ns])


def _add_calls(rows: Rows, meter: ProduceMeter) -> None:
    """For how long the user's calls have blocked."""
    rows.put("flush-time-ns-total", float(meter.flush_ns))
    rows.put("metadata-wait-time-ns-total", float(meter.metadata_wait_ns))
    for call in TRANSACTION_CALLS:
        rows.put(f"txn-{call}-time-ns-total", float(meter.transaction_ns.get(call, 0)))


def _add_topic(rows: Rows, topic: TopicMeter) -> None:
    rows.amounts("record-send", topic.records)
    rows.amounts("byte", topic.batches)
    rows.amounts("record-error", topic.errors)
    rows.amounts("record-retry", topic.retries)
    rows.put("compression-rate", summarize([topic.compression]).average / RATIO_UNIT)
