"""What is done to logs in the background: compaction, the scrub, and the directories they are in."""

from __future__ import annotations

from moldau.server.metrics.metric import COUNTER, GAUGE, Metric
from moldau.storage.compaction.cleaner import LogCleaner
from moldau.storage.log_manager import LogManager
from moldau.storage.scrub import Scrub


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
        Metric(
            "kafka_log_logcleaner_deadthreadcount", GAUGE, "Cleaner threads that have ended; Moldau starts others", 0
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
