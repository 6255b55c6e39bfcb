"""Partitions as the leader and its followers see them, under the names of Kafka's ReplicaManager and Partition."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.metrics.topic_counts import BrokerCounts
from moldau.node.node import Node
from moldau.replication.partition import Partition
from moldau.server.metrics.hosted import Hosted
from moldau.server.metrics.metric import GAUGE, Metric, meter

MANAGER = "kafka_server_replicamanager"
PARTITION = "kafka_cluster_partition"
LATE_MS = 5 * 60_000
"""So long after its time-out must be over a transaction may still be ended by its coordinator."""


class Totals:
    """Sums over all partitions."""

    def __init__(self) -> None:
        self.partitions = 0
        self.led = 0
        self.offline = 0
        self.under_replicated = 0
        self.under_min_isr = 0
        self.at_min_isr = 0
        self.reassigning = 0
        self.late = 0
        self.producer_ids = 0

    def rows(self) -> list[tuple[str, str, int]]:
        return [
            ("leadercount", "Partitions that this broker leads", self.led),
            ("partitioncount", "Partitions that this broker hosts", self.partitions),
            ("offlinereplicacount", "Those of them in a failed log directory", self.offline),
            (
                "underreplicatedpartitions",
                "Led partitions with fewer in-sync replicas than replicas",
                self.under_replicated,
            ),
            (
                "underminisrpartitioncount",
                "Led partitions with fewer in-sync replicas than they need",
                self.under_min_isr,
            ),
            (
                "atminisrpartitioncount",
                "Led partitions with just as many in-sync replicas as they need",
                self.at_min_isr,
            ),
            ("reassigningpartitions", "Led partitions that are being reassigned", self.reassigning),
            ("partitionswithlatetransactionscount", "Led partitions with a transaction open for too long", self.late),
            ("produceridcount", "Producer ids in memory, of all partitions", self.producer_ids),
        ]


class Columns:
    """A row for each partition."""

    def __init__(self) -> None:
        self.under_replicated = Metric(f"{PARTITION}_underreplicated", GAUGE, "1 where replicas are missing in the ISR")
        self.under_min = Metric(f"{PARTITION}_underminisr", GAUGE, "1 where the ISR has fewer than are needed")
        self.at_min = Metric(f"{PARTITION}_atminisr", GAUGE, "1 where the ISR has just as many as are needed")
        self.in_sync = Metric(f"{PARTITION}_insyncreplicascount", GAUGE, "In-sync replicas; 0 on followers")
        self.replicas = Metric(f"{PARTITION}_replicascount", GAUGE, "Replicas; 0 on followers")
        self.stable_lag = Metric(
            f"{PARTITION}_laststableoffsetlag", GAUGE, "High watermark less last stable offset; 0 on followers"
        )

    def all(self) -> list[Metric]:
        return [self.under_replicated, self.under_min, self.at_min, self.in_sync, self.replicas, self.stable_lag]


def partition_metrics(node: Node, hosted: Hosted, now_ms: int) -> Iterator[Metric | None]:
    late_before_ms = node.wall.at(now_ms) - node.config.get_int("transaction.max.timeout.ms") - LATE_MS
    has_failures = any(directory.failed for directory in node.logs.directories)
    totals, columns = Totals(), Columns()
    for block in hosted.blocks:
        partitions, is_led, logs = block.partitions, block.is_led, block.logs
        in_sync, replicas = block.in_sync, block.replicas
        if not block.are_all_led:
            in_sync = [count if led else 0 for count, led in zip(in_sync, is_led, strict=True)]
            replicas = [count if led else 0 for count, led in zip(replicas, is_led, strict=True)]
        # As `Partition.min_in_sync_replicas` has it. No ISR has -1, so who does not lead is neither below it nor at it.
        wanted = [
            -1 if log is None or not led else min(log.config.min_insync_replicas, count or 1)
            for log, led, count in zip(logs, is_led, replicas, strict=True)
        ]
        under_replicated = under_min = stable_lag = [0] * len(partitions)
        if in_sync != replicas:
            rows = zip(partitions, is_led, strict=True)
            under_replicated = [int(led and is_under_replicated(one)) for one, led in rows]
        at_min = [1 if have == need else 0 for have, need in zip(in_sync, wanted, strict=True)]
        below = [have < need for have, need in zip(in_sync, wanted, strict=True)]
        if True in below:
            under_min = [int(one) for one in below]
        producers = [log.producers for log in logs if log is not None]
        unstable = [one for one in producers if one.ongoing or one.unreplicated]
        if unstable:
            stable_lag = [unstable_records(one) if led else 0 for one, led in zip(partitions, is_led, strict=True)]
            led_ones = [one for one, led in zip(partitions, is_led, strict=True) if led]
            totals.late += sum([has_late_transaction(one, late_before_ms) for one in led_ones])
        totals.partitions += len(partitions)
        totals.led += sum(is_led)
        totals.offline += len(partitions) - len(producers)
        if has_failures:
            totals.offline += sum([log is not None and log.log_directory.failed for log in logs])
        totals.producer_ids += sum([len(one.entries) for one in producers])
        totals.under_replicated += sum(under_replicated)
        totals.under_min_isr += sum(under_min)
        totals.at_min_isr += sum(at_min)
        totals.reassigning += sum([one.is_reassigning and led for one, led in zip(partitions, is_led, strict=True)])
        shown = len(block.labels)
        all_rows = (under_replicated, under_min, at_min, in_sync, replicas, stable_lag)
        for metric, values in zip(columns.all(), all_rows, strict=True):
            metric.add_block(block.labels, values if shown == len(values) else values[:shown])
        yield None
    for stem, about, value in totals.rows():
        yield Metric(f"{MANAGER}_{stem}", GAUGE, about, value)
    yield from columns.all()


def is_under_replicated(partition: Partition) -> bool:
    """While replicas are being added they do not count as missing."""
    return len(partition.in_sync_replicas) < len(partition.replicas) - len(partition.adding_replicas)


def unstable_records(partition: Partition) -> int:
    log = partition.log
    if log is None or not log.producers.has_unstable:
        return 0
    return partition.high_watermark.offset - partition.last_stable_offset(log)


def has_late_transaction(partition: Partition, before_ms: int) -> bool:
    log = partition.log
    if log is None:
        return False
    entries = log.producers.entries
    for producer_id in log.producers.ongoing.values():
        entry = entries.get(producer_id)
        if entry is not None and entry.last_timestamp < before_ms:
            return True
    return False


def isr_metrics(counts: BrokerCounts) -> list[Metric]:
    return [
        meter(f"{MANAGER}_isrexpands", "Replicas that came back into the ISR of a led partition", counts.isr_expands),
        meter(f"{MANAGER}_isrshrinks", "Changes of a led partition's ISR that took replicas out", counts.isr_shrinks),
        meter(
            f"{MANAGER}_failedisrupdates", "Changes of an ISR that the controller refused", counts.failed_isr_updates
        ),
    ]
