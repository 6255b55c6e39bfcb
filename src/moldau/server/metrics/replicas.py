"""Partitions as the leader and its followers see them, under the names of Kafka's ReplicaManager and Partition."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.metrics.topic_counts import BrokerCounts
from moldau.node.node import Node
from moldau.replication.partition import Partition
from moldau.server.metrics.hosted import Hosted
from moldau.server.metrics.metric import GAUGE, Metric, meter
from moldau.storage.log import Log

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
    image = node.image
    broker_id = node.node_id
    totals, columns = Totals(), Columns()
    for block in hosted.blocks:
        rows: tuple[list[int], ...] = ([], [], [], [], [], [])
        under_replicated, under_min, at_min, in_sync, replicas, stable_lag = rows
        for partition in block.partitions:
            log = partition.log
            if log is None or log.log_directory.failed:
                totals.offline += 1
            else:
                totals.producer_ids += len(log.producers.entries)
            if partition.leader != broker_id:
                for column in rows:
                    column.append(0)
                continue
            totals.led += 1
            isr, assigned = len(partition.in_sync_replicas), len(partition.replicas)
            is_under = int(isr < assigned - len(partition.adding_replicas))
            wanted = 0 if log is None else partition.min_in_sync_replicas(log)
            under_replicated.append(is_under)
            under_min.append(int(isr < wanted))
            at_min.append(int(isr == wanted))
            in_sync.append(isr)
            replicas.append(assigned)
            stable_lag.append(0 if log is None else unstable_records(partition, log))
            totals.under_replicated += is_under
            totals.under_min_isr += under_min[-1]
            totals.at_min_isr += at_min[-1]
            if log is not None and log.producers.ongoing:
                totals.late += has_late_transaction(log, late_before_ms)
            registration = image.partition(partition.topic_id, partition.index)
            if registration is not None and registration.is_reassigning:
                totals.reassigning += 1
        totals.partitions += len(block.partitions)
        shown = len(block.labels)
        for metric, values in zip(columns.all(), rows, strict=True):
            metric.add_block(block.labels, values[:shown])
        yield None
    for stem, about, value in totals.rows():
        yield Metric(f"{MANAGER}_{stem}", GAUGE, about, value)
    yield from columns.all()


def unstable_records(partition: Partition, log: Log) -> int:
    if not log.producers.has_unstable:
        return 0
    return partition.high_watermark.offset - partition.last_stable_offset(log)


def has_late_transaction(log: Log, before_ms: int) -> bool:
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
