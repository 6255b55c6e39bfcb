"""What the parts of a node count, collected under the names that exporters give to Apache Kafka's metrics.

The numbers belong to the objects they describe; this module only knows where they are. Where Kafka has the same number,
the name is the one that its JMX bean gets with the usual rules of the Prometheus JMX exporter
(`kafka.log:type=LogCleaner,name=max-clean-time-secs` is `kafka_log_logcleaner_max_clean_time_secs`), so that dashboards
fit; what only Moldau has begins with `moldau_`.
"""

from __future__ import annotations

from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.share.machine import ShareMachine
from moldau.net.turns import Turns
from moldau.node.coordinators import Coordinators
from moldau.node.node import Node
from moldau.node.share.counts import ACKNOWLEDGE_TYPES, ShareCounts, Times
from moldau.node.share.partitions import SharePartitions
from moldau.protocol.topic_names import SHARE_TOPIC
from moldau.records.clocks import WallClock
from moldau.server.metric import COUNTER, GAUGE, Labels, Metric
from moldau.server.quota_metrics import quota_metrics
from moldau.storage.compaction.cleaner import LogCleaner
from moldau.storage.log_manager import LogManager
from moldau.storage.scrub import Scrub

SHARE_PARTITIONS_MAX = 1000


def collect(node: Node, now_ms: int, turns: Turns | None = None) -> list[Metric]:
    """All metrics of a node as they are now, and of the loop it runs on."""
    of_the_loop = turn_metrics(turns) if turns is not None else []
    if not node.is_broker:
        return [*of_the_loop, *clock_metrics(node.wall), *quota_metrics(node.quotas, now_ms)]
    return [
        *of_the_loop,
        *clock_metrics(node.wall),
        *quota_metrics(node.quotas, now_ms),
        *cleaner_metrics(node.cleaner, now_ms),
        *scrub_metrics(node.scrub),
        *directory_metrics(node.logs, node.cleaner),
        *share_metrics(node.shares),
        *share_partition_metrics(node.shares),
        *share_coordinator_metrics(node.coordinators),
    ]


def clock_metrics(wall: WallClock) -> list[Metric]:
    return [
        Metric(
            "moldau_clock_in_doubt",
            GAUGE,
            "1 while the system's clock disagrees with the monotonic clock: nothing is deleted for its age",
            int(not wall.may_delete_by_age),
        ),
        Metric(
            "moldau_clock_disagreements_total",
            COUNTER,
            "How often the system's clock began to disagree with the monotonic clock",
            wall.disagreements_total,
        ),
    ]


def turn_metrics(turns: Turns) -> list[Metric]:
    """A loop that is busy all the time, or held up by single turns, shows here before clients notice."""
    count = Metric("moldau_loop_long_turns_total", COUNTER, "Turns of the event loop longer than 50 ms")
    seconds = Metric("moldau_loop_long_turn_seconds_total", COUNTER, "Time that these took")
    waited = Metric(
        "moldau_loop_long_turn_waiting_seconds_total",
        COUNTER,
        "Time of theirs in which the thread was not on the CPU: it waited for a disk, a lock or the machine",
    )
    for (kind, what), long_turns in turns.long_turns.items():
        labels = (("kind", kind), ("what", what))
        count.values[labels] = long_turns.count
        seconds.values[labels] = round(long_turns.seconds, 6)
        waited.values[labels] = round(long_turns.waited_seconds, 6)
    return [
        Metric("moldau_loop_turns_total", COUNTER, "Turns of the event loop", turns.turns_total),
        Metric(
            "moldau_loop_busy_seconds_total", COUNTER, "Time in turns of the event loop", round(turns.busy_seconds, 6)
        ),
        Metric(
            "moldau_loop_longest_turn_seconds",
            GAUGE,
            "The longest turn since the start",
            round(turns.longest_seconds, 6),
        ),
        count,
        seconds,
        waited,
    ]


def cleaner_metrics(cleaner: LogCleaner, now_ms: int) -> list[Metric]:
    metrics = cleaner.metrics
    return [
        Metric(
            "kafka_log_logcleaner_max_clean_time_secs",
            GAUGE,
            "Seconds that the longest of the last runs took, one run for each cleaner thread",
            metrics.max_clean_time_secs,
        ),
        Metric(
            "kafka_log_logcleaner_max_compaction_delay_secs",
            GAUGE,
            "Seconds that a log has waited for its compaction beyond max.compaction.lag.ms",
            metrics.max_compaction_delay_secs,
        ),
        Metric(
            "kafka_log_logcleaner_max_buffer_utilization_percent",
            GAUGE,
            "How full the offset map was in the last runs",
            metrics.max_buffer_utilization_percent,
        ),
        Metric(
            "kafka_log_logcleaner_cleaner_recopy_percent",
            GAUGE,
            "Share of what the last runs read that they wrote again",
            metrics.cleaner_recopy_percent,
        ),
        Metric(
            "kafka_log_logcleanermanager_max_dirty_percent",
            GAUGE,
            "Share of the dirtiest log that was written since it was compacted",
            metrics.max_dirty_percent,
        ),
        Metric(
            "kafka_log_logcleanermanager_time_since_last_run_ms",
            GAUGE,
            "Time since the cleaner last looked for work",
            metrics.time_since_last_run_ms(now_ms),
        ),
        Metric("moldau_log_cleaner_running", GAUGE, "Logs that are compacted now", len(cleaner.running)),
        Metric("moldau_log_cleaner_runs_total", COUNTER, "Compactions that were put in place", metrics.runs_total),
        Metric("moldau_log_cleaner_failed_runs_total", COUNTER, "Compactions that failed", metrics.failed_runs_total),
        Metric("moldau_log_cleaner_read_bytes_total", COUNTER, "Bytes read by compactions", metrics.bytes_read_total),
        Metric(
            "moldau_log_cleaner_written_bytes_total",
            COUNTER,
            "Bytes written by compactions",
            metrics.bytes_written_total,
        ),
        Metric(
            "moldau_log_cleaner_removed_records_total",
            COUNTER,
            "Records that compactions removed",
            metrics.records_removed_total,
        ),
    ]


def scrub_metrics(scrub: Scrub) -> list[Metric]:
    return [
        Metric("moldau_log_scrub_bytes_total", COUNTER, "Bytes of old segments read again", scrub.bytes_total),
        Metric("moldau_log_scrub_passes_total", COUNTER, "Passes over all old segments", scrub.passes_total),
        Metric("moldau_log_scrub_damaged_total", COUNTER, "Places that are not what was written", scrub.damaged_total),
    ]


def directory_metrics(logs: LogManager, cleaner: LogCleaner) -> list[Metric]:
    partitions = Metric(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        GAUGE,
        "Partitions that cannot be compacted until somebody does what the broker's log says",
    )
    uncleanable_bytes = Metric(
        "kafka_log_logcleanermanager_uncleanable_bytes", GAUGE, "Bytes of theirs that wait for compaction"
    )
    offline = Metric("kafka_log_logmanager_logdirectoryoffline", GAUGE, "1 for a log directory that has failed")
    free = Metric("moldau_log_directory_free_bytes", GAUGE, "Free space of the volume, as the broker last saw it")
    refused = Metric(
        "moldau_log_directory_low_space_refusals_total", COUNTER, "Requests of producers refused for lack of space"
    )
    for directory in logs.directories:
        labels = (("logDirectory", directory.path),)
        uncleanable = cleaner.uncleanable_in(directory)
        partitions.values[labels] = len(uncleanable)
        uncleanable_bytes.values[labels] = sum(cleaner.dirty_bytes(log) for log in uncleanable)
        offline.values[labels] = int(directory.failed)
        free.values[labels] = directory.free_bytes
        refused.values[labels] = directory.low_space_refusals_total
    return [partitions, uncleanable_bytes, offline, free, refused]


def share_metrics(shares: SharePartitions) -> list[Metric]:
    counts = shares.counts
    topics = "kafka_server_brokertopicmetrics"
    acknowledged = Metric(
        "kafka_server_sharegroupmetrics_recordacknowledgements_total",
        COUNTER,
        "Records that members of share groups have acknowledged, by type",
    )
    for kind, total in zip(ACKNOWLEDGE_TYPES, counts.acknowledged_total, strict=True):
        acknowledged.values[(("ackType", kind),)] = total
    rows = [
        (f"{topics}_totalsharefetchrequests_total", "ShareFetch requests", counts.fetches_total),
        (f"{topics}_failedsharefetchrequests_total", "Those of them with an error", counts.failed_fetches_total),
        (f"{topics}_totalshareacknowledgementrequests_total", "ShareAcknowledge requests", counts.acknowledges_total),
        (
            f"{topics}_failedshareacknowledgementrequests_total",
            "Those of them with an error",
            counts.failed_acknowledges_total,
        ),
        (
            "kafka_server_delayedsharefetchmetrics_expires_total",
            "ShareFetch requests that waited as long as they may",
            counts.expired_fetches_total,
        ),
        (
            "moldau_share_lock_timeouts_total",
            "Records that were not acknowledged in time, of all share partitions",
            counts.lock_timeouts_total,
        ),
        ("moldau_share_dead_letters_total", "Dead letters that this broker has written", counts.dead_letters_total),
        (
            "moldau_share_dead_letters_dropped_total",
            "Records that were archived without their dead letter",
            counts.dead_letters_dropped_total,
        ),
        (
            "moldau_share_dead_letter_retries_total",
            "How often dead letters could not be written at once",
            counts.dead_letter_retries_total,
        ),
    ]
    ended = "kafka_server_sharesessioncache_sharesessionevictions_total"
    rows.append((ended, "Share sessions that ended with their connections", counts.lost_sessions_total))
    sessions = shares.sessions.sessions
    partitions = sum(len(session.partitions) for session in sessions.values())
    cache = "kafka_server_sharesessioncache"
    return [
        *(Metric(name, COUNTER, about, value) for name, about, value in rows),
        acknowledged,
        Metric(
            "moldau_share_dead_letters_waiting",
            GAUGE,
            "Records that wait for their dead letter to be written",
            shares.letters.waiting_letters,
        ),
        Metric(f"{cache}_sharesessionscount", GAUGE, "Share sessions of this broker", len(sessions)),
        Metric(f"{cache}_sharepartitionscount", GAUGE, "Partitions in share sessions of this broker", partitions),
        *share_time_metrics(counts),
    ]


def share_time_metrics(counts: ShareCounts) -> list[Metric]:
    prefix = "kafka_server_sharegroupmetrics"
    load = f"{prefix}_partitionloadtimems"
    groups = {(("group", group_id),): times for group_id, times in counts.groups.items()}
    return [
        *_times(load, "until the state of a share partition is loaded", {(): counts.load_ms}),
        *_times(
            f"{prefix}_topicpartitionsacquiretimems",
            "until a fetch has records, in milliseconds",
            {labels: times.acquire_ms for labels, times in groups.items()},
        ),
        *_times(
            f"{prefix}_requesttopicpartitionsfetchratio",
            "of the partitions of such a fetch that records came of, in percent",
            {labels: times.fetch_percent for labels, times in groups.items()},
        ),
    ]


def _times(name: str, about: str, measured: dict[Labels, Times]) -> list[Metric]:
    count = Metric(f"{name}_count", COUNTER, f"Measurements: {about}")
    mean = Metric(f"{name}_mean", GAUGE, f"The mean: {about}")
    most = Metric(f"{name}_max", GAUGE, f"The most since the start: {about}")
    for labels, times in measured.items():
        count.values[labels] = times.count
        mean.values[labels] = round(times.mean, 3)
        most.values[labels] = times.max
    return [count, mean, most]


def share_partition_metrics(shares: SharePartitions) -> list[Metric]:
    """Groups and topics are named by users: there are rows for so many share partitions and no more."""
    prefix = "kafka_server_sharepartitionmetrics"
    messages = Metric(f"{prefix}_inflightmessagecount", GAUGE, "Records in flight")
    batches = Metric(f"{prefix}_inflightbatchcount", GAUGE, "Batches that they are kept in")
    sizes = Metric(f"{prefix}_inflightbatchmessagecount_mean", GAUGE, "Records of such a batch, on average")
    timeouts = Metric(f"{prefix}_acquisitionlocktimeout_total", COUNTER, "Records not acknowledged in time")
    acquired = Metric("moldau_share_partition_acquired_records", GAUGE, "Records that a member holds now")
    lag = Metric("moldau_share_partition_lag", GAUGE, "Records that are not done with, up to the high watermark")
    for one in list(shares.found.values())[:SHARE_PARTITIONS_MAX]:
        group_id, _, index = one.key
        labels = (("group", group_id), ("topic", one.partition.topic), ("partition", str(index)))
        window = one.window
        messages.values[labels] = window.size
        batches.values[labels] = len(window.batches)
        sizes.values[labels] = round(window.size / max(1, len(window.batches)), 3)
        timeouts.values[labels] = one.timeouts_total
        acquired.values[labels] = window.acquired
        behind = one.partition.high_watermark.offset - window.start_offset - window.complete
        lag.values[labels] = max(0, behind)
    count = Metric("moldau_share_partitions", GAUGE, "Share partitions that this broker leads", len(shares.found))
    return [messages, batches, sizes, timeouts, acquired, lag, count]


def share_coordinator_metrics(coordinators: Coordinators) -> list[Metric]:
    groups = Metric("kafka_server_group_coordinator_metrics_group_count", GAUGE, "Groups, by protocol")
    states = Metric("kafka_server_group_coordinator_metrics_share_group_count", GAUGE, "Share groups, by state")
    found = {"Empty": 0, "Stable": 0}
    rebalances = 0
    for shard in coordinators.groups.runtime.shards.values():
        machine = shard.machine
        if isinstance(machine, GroupMachine):
            rebalances += machine.share.rebalances_total
            for group in machine.share.groups():
                found[group.state_name()] += 1
    groups.values[(("protocol", "share"),)] = sum(found.values())
    states.values = {(("state", state),): count for state, count in found.items()}
    pruned = Metric("kafka_server_share_coordinator_metrics_last_pruned_offset", GAUGE, "Where the state topic begins")
    writes = 0
    for index, shard in coordinators.shares.runtime.shards.items():
        machine = shard.machine
        if isinstance(machine, ShareMachine):
            writes += machine.writes_total
            labels = (("topic", SHARE_TOPIC), ("partition", str(index)))
            pruned.values[labels] = coordinators.shares.pruned_to.get(index, 0)
    written = Metric("kafka_server_share_coordinator_metrics_write_total", COUNTER, "Writes of share states", writes)
    name = "kafka_server_group_coordinator_metrics_share_group_rebalance_count"
    rebalanced = Metric(name, COUNTER, "New epochs of share groups whose members or partitions changed", rebalances)
    return [groups, states, rebalanced, written, pruned]


def to_text(metrics: list[Metric]) -> str:
    """The text that Prometheus reads."""
    lines = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {_escape(metric.about, quotes=False)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        for labels, value in metric.values.items():
            pairs = ",".join(f'{key}="{_escape(text, quotes=True)}"' for key, text in labels)
            lines.append(f"{metric.name}{{{pairs}}} {value}" if pairs else f"{metric.name} {value}")
    return "\n".join([*lines, ""])


def _escape(text: str, quotes: bool) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
