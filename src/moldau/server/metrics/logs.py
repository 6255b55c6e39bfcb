"""Logs on disk: sizes and offsets by partition, directories, and the times of flushes; the names of `kafka.log`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.metrics.recent_values import RecentValues
from moldau.node.node import Node
from moldau.server.metrics.hosted import BLOCK_SIZE, Hosted
from moldau.server.metrics.metric import GAUGE, Labels, Metric
from moldau.server.metrics.spread import spread_metrics
from moldau.storage.log import Log

LOG = "kafka_log_log"
MANAGER = "kafka_log_logmanager"
IS_FUTURE: Labels = (("is_future", "true"),)


class LogColumns:
    """A row for each log, in the order of `all`."""

    def __init__(self) -> None:
        self.size = Metric(f"{LOG}_size", GAUGE, "Bytes of a partition's segments")
        self.segments = Metric(f"{LOG}_numlogsegments", GAUGE, "Segments of a partition")
        self.start = Metric(f"{LOG}_logstartoffset", GAUGE, "The first offset of a partition")
        self.end = Metric(f"{LOG}_logendoffset", GAUGE, "The offset that the next record gets")
        self.retention = Metric(
            f"{LOG}_retentionsizeinpercent", GAUGE, "Size in percent of retention.bytes; 0 without it"
        )

    def all(self) -> list[Metric]:
        return [self.size, self.segments, self.start, self.end, self.retention]

    def add(self, labels: Sequence[str], logs: Sequence[Log], common: Labels = ()) -> None:
        self.size.add_block(labels, [log.size_bytes for log in logs], common)
        self.segments.add_block(labels, [len(log.segments) for log in logs], common)
        self.start.add_block(labels, [log.log_start_offset for log in logs], common)
        self.end.add_block(labels, [log.log_end_offset for log in logs], common)
        self.retention.add_block(labels, [retention_percent(log) for log in logs], common)


def retention_percent(log: Log) -> int:
    limit = log.config.retention_bytes
    return log.size_bytes * 100 // limit if limit > 0 else 0


def log_metrics(node: Node, hosted: Hosted) -> Iterator[Metric | None]:
    columns = LogColumns()
    for block in hosted.blocks:
        logs = [log for log in block.logs if log is not None]
        labels = block.labels
        if len(logs) < len(block.logs) or len(labels) < len(logs):
            rows = zip(labels, block.logs, strict=False)
            shown = [(text, log) for text, log in rows if log is not None]
            labels, logs = [text for text, _ in shown], [log for _, log in shown]
        columns.add(labels, logs)
        yield None
    futures = list(node.logs.futures.logs.values())
    for start in range(0, len(futures), BLOCK_SIZE):
        copies = futures[start : start + BLOCK_SIZE]
        columns.add([f'topic="{log.topic}",partition="{log.partition}"' for log in copies], copies, IS_FUTURE)
        yield None
    yield from columns.all()


def directory_state_metrics(node: Node) -> list[Metric]:
    directories = node.logs.directories
    offline = sum(directory.failed for directory in directories)
    cordoned = len(node.lifecycle.cordoned_log_dirs)
    metrics = [
        Metric(f"{MANAGER}_offlinelogdirectorycount", GAUGE, "Log directories that have failed", offline),
        Metric(f"{MANAGER}_cordonedlogdirectorycount", GAUGE, "Log directories that get no new partitions", cordoned),
    ]
    remaining = node.loading.remaining if node.loading is not None else None
    if remaining is not None:
        to_recover = Metric(f"{MANAGER}_remaininglogstorecover", GAUGE, "Logs that this start has yet to open")
        to_recover.values[(("dir", remaining[0]),)] = remaining[1]
        metrics.append(to_recover)
    return metrics


def flush_metrics(times: RecentValues, now_s: float) -> list[Metric]:
    stem = "kafka_log_logflushstats_logflushrateandtimems"
    return spread_metrics(stem, "Time that the flush of a segment took, in ms", {(): times}, now_s, 1000.0)
