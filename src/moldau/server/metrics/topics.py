"""Records by topic: bytes and messages in and out, requests, and what was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from moldau.metrics.topic_counts import BrokerCounts, TopicCounts
from moldau.server.metrics.metric import Metric, label_text, meter

PREFIX = "kafka_server_brokertopicmetrics"

BY_TOPIC: tuple[tuple[str, str, Callable[[TopicCounts], int]], ...] = (
    ("bytesin", "Bytes of record batches that clients and coordinators appended", lambda counts: counts.bytes_in),
    ("messagesin", "Records that they appended", lambda counts: counts.messages_in),
    ("bytesout", "Bytes of record batches sent to consumers", lambda counts: counts.bytes_out),
    ("bytesrejected", "Bytes refused because they were too large or damaged", lambda counts: counts.bytes_rejected),
    ("totalproducerequests", "Partitions of Produce requests", lambda counts: counts.produce_requests),
    ("failedproducerequests", "Those of them that were refused", lambda counts: counts.failed_produce_requests),
    ("totalfetchrequests", "Partitions read for Fetch requests", lambda counts: counts.fetch_requests),
    ("failedfetchrequests", "Those of them that failed unexpectedly", lambda counts: counts.failed_fetch_requests),
)

OF_THE_BROKER: tuple[tuple[str, str, Callable[[BrokerCounts], int]], ...] = (
    ("replicationbytesin", "Bytes fetched from leaders", lambda counts: counts.replication_bytes_in),
    ("replicationbytesout", "Bytes sent to followers", lambda counts: counts.replication_bytes_out),
    ("reassignmentbytesin", "Bytes fetched for replicas that are being added", lambda c: c.reassignment_bytes_in),
    ("reassignmentbytesout", "Bytes sent to replicas that are being added", lambda c: c.reassignment_bytes_out),
    ("nokeycompactedtopicrecords", "Records refused by compacted topics for want of a key", lambda c: c.no_key_records),
    ("invalidmagicnumberrecords", "Batches refused for their format", lambda c: c.invalid_magic_records),
    ("invalidmessagecrcrecords", "Batches refused for their checksum", lambda c: c.invalid_crc_records),
    (
        "invalidoffsetorsequencerecords",
        "Batches refused for their offsets or sequence numbers",
        lambda counts: counts.invalid_offset_or_sequence_records,
    ),
)
NEVER = (
    ("producemessageconversions", "Batches converted between formats; Moldau never has to"),
    ("fetchmessageconversions", "Batches converted between formats; Moldau never has to"),
)


def topic_metrics(counts: BrokerCounts, topics_max: int) -> Iterator[Metric | None]:
    """For each metric a row for the broker, and one for each topic that was used: those with most bytes, so many."""
    total = counts.total()
    topics = list(counts.topics.items())
    if len(topics) > topics_max:
        topics.sort(key=lambda one: one[1].bytes_in + one[1].bytes_out, reverse=True)
        del topics[topics_max:]
    rows = [(label_text((("topic", topic),)), of_topic) for topic, of_topic in topics]
    yield None
    for stem, about, value_of in BY_TOPIC:
        metric = meter(f"{PREFIX}_{stem}", about, value_of(total))
        metric.rows = [(labels, value) for labels, of_topic in rows if (value := value_of(of_topic))]
        yield metric
    for stem, about, value_of_broker in OF_THE_BROKER:
        yield meter(f"{PREFIX}_{stem}", about, value_of_broker(counts))
    for stem, about in NEVER:
        yield meter(f"{PREFIX}_{stem}", about, 0)
