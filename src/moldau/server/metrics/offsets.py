"""Topics and partitions that this broker leads, under the names of kafka_exporter and kafka-lag-exporter.

Those programs ask the whole cluster and have all of it on one page. Here each broker has what it leads, so that all
pages together have each partition once.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.node.node import Node
from moldau.server.metrics.hosted import Hosted
from moldau.server.metrics.limits import RowLimits
from moldau.server.metrics.metric import GAUGE, Labels, Metric

TOPIC = "kafka_topic_partition"


def broker_list_metrics(node: Node) -> list[Metric]:
    """How many brokers there are, and this one's own address."""
    count = Metric("kafka_brokers", GAUGE, "Brokers of the cluster", len(node.image.active_brokers()))
    info = Metric("kafka_broker_info", GAUGE, "1 with the id and the address of this broker")
    own = node.image.brokers.get(node.node_id)
    if own is not None and own.end_points:
        endpoint = next(iter(own.end_points.values()))
        info.values[(("id", str(node.node_id)), ("address", f"{endpoint.host}:{endpoint.port}"))] = 1
    return [count, info]


def offset_metrics(node: Node, hosted: Hosted, limits: RowLimits) -> Iterator[Metric | None]:
    partitions = Metric("kafka_topic_partitions", GAUGE, "Partitions of a topic, told by who leads the first of them")
    current = Metric(f"{TOPIC}_current_offset", GAUGE, "Latest offset that consumers can see")
    oldest = Metric(f"{TOPIC}_oldest_offset", GAUGE, "First offset")
    leader = Metric(f"{TOPIC}_leader", GAUGE, "Broker that leads the partition")
    replicas = Metric(f"{TOPIC}_replicas", GAUGE, "Replicas")
    in_sync = Metric(f"{TOPIC}_in_sync_replica", GAUGE, "In-sync replicas")
    preferred = Metric(f"{TOPIC}_leader_is_preferred", GAUGE, "1 if the first replica leads")
    under = Metric(f"{TOPIC}_under_replicated_partition", GAUGE, "1 if replicas are missing in the ISR")
    latest = Metric("kafka_partition_latest_offset", GAUGE, "Latest offset that consumers can see")
    earliest = Metric("kafka_partition_earliest_offset", GAUGE, "First offset")
    broker_id = node.node_id
    cluster: Labels = (("cluster_name", node.cluster_id),)
    is_shown: dict[str, bool] = {}
    topics = node.image.topics_by_name
    for block in hosted.blocks:
        labels, led, logs = block.labels, block.partitions, block.logs
        in_sync_counts, replica_counts = block.in_sync, block.replicas
        for partition in led:
            topic = partition.topic
            if topic not in is_shown:
                is_shown[topic] = limits.has_topic(topic)
        rows = [
            index
            for index, (partition, log) in enumerate(zip(led[: len(labels)], logs, strict=False))
            if is_shown[partition.topic] and partition.leader == broker_id and log is not None
        ]
        if len(rows) < len(led):
            labels, led, logs = [labels[row] for row in rows], [led[row] for row in rows], [logs[row] for row in rows]
            in_sync_counts = [in_sync_counts[row] for row in rows]
            replica_counts = [replica_counts[row] for row in rows]
        for partition in led:
            if partition.index == 0 and partition.topic in topics:
                count = len(topics[partition.topic].partitions)
                partitions.rows.append((f'topic="{partition.topic}"', count))
        ends = [one.high_watermark.offset for one in led]
        starts = [0 if log is None else log.log_start_offset for log in logs]
        current.add_block(labels, ends)
        oldest.add_block(labels, starts)
        leader.add_block(labels, [broker_id] * len(led))
        replicas.add_block(labels, replica_counts)
        in_sync.add_block(labels, in_sync_counts)
        preferred.add_block(labels, [1 if one.replicas[0] == broker_id else 0 for one in led])
        if in_sync_counts == replica_counts:
            under.add_block(labels, [0] * len(led))
        else:
            counts = zip(in_sync_counts, replica_counts, strict=True)
            under.add_block(labels, [int(have < wanted) for have, wanted in counts])
        latest.add_block(labels, ends, cluster)
        earliest.add_block(labels, starts, cluster)
        yield None
    yield from (partitions, current, oldest, leader, replicas, in_sync, preferred, under, latest, earliest)
