"""Share groups: partitions and sessions."""

from __future__ import annotations

from moldau.node.share.counts import ACKNOWLEDGE_TYPES, ShareCounts, Times
from moldau.node.share.partitions import SharePartitions
from moldau.server.metrics.metric import COUNTER, GAUGE, Labels, Metric

SHARE_PARTITIONS_MAX = 1000


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
