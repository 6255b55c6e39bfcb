"""Every metric that a client of Moldau has, in a table: group, name, tags, and what it means in one sentence.

The names and their meaning are Kafka's. metrics() is tested to have exactly these, and pages and exporters read them
from here. A row stands for a family: `-rate` and `-total` of records sent are two metrics of one row.
"""

from __future__ import annotations

from typing import NamedTuple

RATE_TOTAL = ("-rate", "-total")
AVG_MAX = ("-avg", "-max")
PLAIN = ("",)

_SUFFIX_WORDS = {
    "-rate": "{}, a second",
    "-total": "{}, in all",
    "-rate-per-hour": "{}, an hour",
    "-avg": "{}: the average lately",
    "-max": "{}: the largest lately",
    "-min": "{}: the smallest lately",
    "": "{}",
}


class KnownMetric(NamedTuple):
    """One metric: tags are those beside client-id."""

    group: str
    name: str
    tags: tuple[str, ...]
    about: str


class _Family(NamedTuple):
    name: str
    suffixes: tuple[str, ...]
    about: str


_TRAFFIC = (
    _Family("outgoing-byte", RATE_TOTAL, "bytes sent"),
    _Family("incoming-byte", RATE_TOTAL, "bytes received"),
    _Family("request", RATE_TOTAL, "requests sent"),
    _Family("request-size", AVG_MAX, "bytes of a request"),
    _Family("response", RATE_TOTAL, "responses received"),
)

_NETWORK = (
    *_TRAFFIC,
    _Family("connection-creation", RATE_TOTAL, "connections made"),
    _Family("connection-close", RATE_TOTAL, "connections closed"),
    _Family("connection-count", PLAIN, "connections that are open"),
    _Family("network-io", RATE_TOTAL, "requests sent and responses received"),
    _Family("select", RATE_TOTAL, "turns of the network, each of which waits for something to be ready"),
    _Family("io-wait-time-ns", ("-avg", "-total"), "nanoseconds that a turn of the network waited"),
    _Family("io-wait-ratio", PLAIN, "the part of the time in which the network waited"),
    _Family("io-time-ns", ("-avg", "-total"), "nanoseconds that a turn of the network worked"),
    _Family("io-ratio", PLAIN, "the part of the time in which the network worked"),
    _Family("successful-authentication", RATE_TOTAL, "logins, or handshakes of TLS without one, that went well"),
    _Family("successful-authentication-no-reauth-total", PLAIN, "the same, in all"),
    _Family("failed-authentication", RATE_TOTAL, "logins and handshakes of TLS that were refused"),
    _Family("successful-reauthentication", RATE_TOTAL, "sessions that were renewed (KIP-368)"),
    _Family("failed-reauthentication", RATE_TOTAL, "sessions that could not be renewed"),
    _Family("reauthentication-latency", AVG_MAX, "milliseconds that it took to renew a session"),
)

_APP_INFO = (
    _Family("version", PLAIN, "the version of Moldau, as text"),
    _Family("commit-id", PLAIN, "unknown, as text"),
    _Family("start-time-ms", PLAIN, "when the client was made, in milliseconds since 1970"),
)

_POLLS = (
    _Family("time-between-poll", AVG_MAX, "milliseconds between two calls of poll()"),
    _Family("last-poll-seconds-ago", PLAIN, "seconds since poll() was called; -1: never"),
    _Family("poll-idle-ratio-avg", PLAIN, "the part of the time that was spent in poll(): the average lately"),
)

_HEARTBEATS = (
    _Family("heartbeat", RATE_TOTAL, "responses to heartbeats"),
    _Family("heartbeat-response-time-max", PLAIN, "milliseconds until the response to a heartbeat: the largest lately"),
    _Family("last-heartbeat-seconds-ago", PLAIN, "seconds since a heartbeat was sent; -1: never"),
    _Family("rebalance", ("-rate-per-hour", "-total"), "rebalances that this member took part in"),
)

_SENT = (
    _Family("record-send", RATE_TOTAL, "records sent, those that were sent again counted again"),
    _Family("record-retry", RATE_TOTAL, "records to be sent again"),
    _Family("record-error", RATE_TOTAL, "records that failed"),
)

_CONSUMED = (
    _Family("records-consumed", RATE_TOTAL, "records that poll() gave"),
    _Family("bytes-consumed", RATE_TOTAL, "bytes of those records, not compressed"),
    _Family("fetch-size", AVG_MAX, "bytes of records in a response"),
    _Family("records-per-request-avg", PLAIN, "records in a response: the average lately"),
)

_FETCHES = (
    _Family("fetch", RATE_TOTAL, "responses to fetches"),
    _Family("fetch-latency", AVG_MAX, "milliseconds until the response to a fetch"),
    _Family("fetch-throttle-time", AVG_MAX, "milliseconds for which a response throttles the client (KIP-219)"),
)

_PRODUCER = (
    *_SENT,
    _Family("batch-size", AVG_MAX, "bytes of a batch as it was sent"),
    _Family("batch-split", RATE_TOTAL, "batches that were too large and were halved"),
    _Family("compression-rate-avg", PLAIN, "the size of a batch over its size before compression: the average lately"),
    _Family("record-queue-time", AVG_MAX, "milliseconds from the first record of a batch until it was sent"),
    _Family("record-size", AVG_MAX, "bytes of a record, not compressed"),
    _Family("records-per-request-avg", PLAIN, "records in a request: the average lately"),
    _Family("request-latency", AVG_MAX, "milliseconds until the response to a produce request"),
    _Family("requests-in-flight", PLAIN, "requests without a response yet"),
    _Family("produce-throttle-time", AVG_MAX, "milliseconds for which a response throttles the client (KIP-219)"),
    _Family("buffer-total-bytes", PLAIN, "buffer.memory"),
    _Family("buffer-available-bytes", PLAIN, "what of it is not used"),
    _Family("buffer-exhausted", RATE_TOTAL, "calls of send() that failed because the buffer stayed full"),
    _Family("bufferpool-wait-time-ns-total", PLAIN, "nanoseconds that send() waited for the buffer, in all"),
    _Family("bufferpool-wait-ratio", PLAIN, "the part of the time in which send() waited for the buffer"),
    _Family("waiting-threads", PLAIN, "threads that wait for the buffer"),
    _Family("metadata-age", PLAIN, "seconds since the last metadata came"),
    _Family("metadata-wait-time-ns-total", PLAIN, "nanoseconds that send() waited for metadata, in all"),
    _Family("flush-time-ns-total", PLAIN, "nanoseconds that flush() took, in all"),
    _Family("txn-init-time-ns-total", PLAIN, "nanoseconds that init_transactions() took, in all"),
    _Family("txn-begin-time-ns-total", PLAIN, "nanoseconds that begin_transaction() took, in all"),
    _Family("txn-send-offsets-time-ns-total", PLAIN, "nanoseconds that send_offsets_to_transaction() took, in all"),
    _Family("txn-prepare-time-ns-total", PLAIN, "nanoseconds that prepare_transaction() took, in all"),
    _Family("txn-commit-time-ns-total", PLAIN, "nanoseconds that commit_transaction() took, in all"),
    _Family("txn-abort-time-ns-total", PLAIN, "nanoseconds that abort_transaction() took, in all"),
    *_NETWORK,
)

_COORDINATOR = (
    _Family("assigned-partitions", PLAIN, "partitions that are assigned now"),
    _Family("join", RATE_TOTAL, "joins of the group that went well"),
    _Family("join-time", AVG_MAX, "milliseconds that a join took"),
    _Family("sync", RATE_TOTAL, "assignments received from the group's leader"),
    _Family("sync-time", AVG_MAX, "milliseconds that it took to get one"),
    _Family("commit", RATE_TOTAL, "responses to commits"),
    _Family("commit-latency", AVG_MAX, "milliseconds until the response to a commit"),
    _Family("partition-assigned-latency", AVG_MAX, "milliseconds that on_partitions_assigned() took"),
    _Family("partition-revoked-latency", AVG_MAX, "milliseconds that on_partitions_revoked() took"),
    _Family("partition-lost-latency", AVG_MAX, "milliseconds that on_partitions_lost() took"),
    _Family("rebalance-latency", (*AVG_MAX, "-total"), "milliseconds that a rebalance took"),
    _Family("failed-rebalance", ("-rate-per-hour", "-total"), "rebalances that failed"),
    _Family("last-rebalance-seconds-ago", PLAIN, "seconds since the last rebalance; -1: there was none"),
    *_HEARTBEATS,
)

_PARTITION = (
    _Family("records-lag", PLAIN, "records that the reader is behind the end of the partition"),
    _Family("records-lag", AVG_MAX, "records that the reader was behind the end of the partition"),
    _Family("records-lead", PLAIN, "records that the reader is ahead of the beginning of the partition"),
    _Family("records-lead", ("-avg", "-min"), "records that the reader was ahead of the beginning of the partition"),
    _Family("preferred-read-replica", PLAIN, "the replica that the leader sent the reader to (KIP-392); -1: none"),
)

_SHARE_FETCHES = (
    _Family("records-consumed", RATE_TOTAL, "records that poll() gave"),
    _Family("bytes-consumed", RATE_TOTAL, "bytes of batches with records for this consumer"),
    _Family("fetch-size", AVG_MAX, "bytes of such batches in a response"),
    _Family("records-per-request", AVG_MAX, "records for this consumer in a response"),
    _Family("acknowledgements-send", RATE_TOTAL, "records of which it was said what became of them"),
    _Family("acknowledgements-error", RATE_TOTAL, "records of which that was not taken"),
    *_FETCHES,
)

_NODE = (*_TRAFFIC, _Family("request-latency", AVG_MAX, "milliseconds until the response to a request"))
_COUNT = (_Family("count", PLAIN, "how many metrics the client has"),)

_Rows = tuple[tuple[str, tuple[str, ...], tuple[_Family, ...]], ...]

_COMMON: _Rows = (("app-info", (), _APP_INFO), ("kafka-metrics-count", (), _COUNT))

_TABLES: dict[str, _Rows] = {
    "producer": (
        ("producer-metrics", (), _PRODUCER),
        (
            "producer-topic-metrics",
            ("topic",),
            (
                *_SENT,
                _Family("byte", RATE_TOTAL, "bytes of batches as they were sent"),
                _Family("compression-rate", PLAIN, "the size of a batch over its size before compression"),
            ),
        ),
        ("producer-node-metrics", ("node-id",), _NODE),
        *_COMMON,
    ),
    "consumer": (
        (
            "consumer-metrics",
            (),
            (
                *_POLLS,
                _Family("commit-sync-time-ns-total", PLAIN, "nanoseconds that commit() took, in all"),
                _Family("committed-time-ns-total", PLAIN, "nanoseconds that committed() took, in all"),
                *_NETWORK,
            ),
        ),
        (
            "consumer-fetch-manager-metrics",
            (),
            (
                *_CONSUMED,
                *_FETCHES,
                _Family("records-lag-max", PLAIN, "the largest lag of any partition lately"),
                _Family("records-lead-min", PLAIN, "the smallest lead of any partition lately"),
            ),
        ),
        ("consumer-fetch-manager-metrics", ("topic",), _CONSUMED),
        ("consumer-fetch-manager-metrics", ("topic", "partition"), _PARTITION),
        ("consumer-coordinator-metrics", (), _COORDINATOR),
        ("consumer-node-metrics", ("node-id",), _NODE),
        *_COMMON,
    ),
    "share consumer": (
        ("consumer-share-metrics", (), _POLLS),
        # As Java's, whose share consumers have the network of consumers.
        ("consumer-metrics", (), _NETWORK),
        ("consumer-share-fetch-manager-metrics", (), _SHARE_FETCHES),
        ("consumer-share-coordinator-metrics", (), _HEARTBEATS),
        ("consumer-node-metrics", ("node-id",), _NODE),
        *_COMMON,
    ),
    "admin": (
        ("admin-client-metrics", (), _NETWORK),
        ("admin-client-node-metrics", ("node-id",), _NODE),
        *_COMMON,
    ),
}

KINDS = tuple(_TABLES)


def known_metrics(kind: str) -> list[KnownMetric]:
    """All metrics of one kind of client: of a producer, consumer, share consumer or admin client."""
    return [
        KnownMetric(group, family.name + suffix, tags, _SUFFIX_WORDS[suffix].format(family.about))
        for group, tags, families in _TABLES[kind]
        for family in families
        for suffix in family.suffixes
    ]


def kind_of(groups: set[str]) -> str:
    """The kind of client whose metrics are of these groups; share consumers have some of a consumer's too."""
    return next(kind for kind, rows in reversed(_TABLES.items()) if rows[0][0] in groups)
