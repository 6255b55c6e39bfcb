"""What is counted of the records of a topic, and of all topics of a broker together."""

from __future__ import annotations


class TopicCounts:
    """Of one topic, as far as this broker has to do with it."""

    def __init__(self) -> None:
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.failed_produce_requests = 0
        self.fetch_requests = 0
        self.failed_fetch_requests = 0
        self.partitions = 0
        """Of this topic that the broker has; without any the counts go to those of topics that have left."""

    def add(self, other: TopicCounts) -> None:
        self.bytes_in += other.bytes_in
        self.messages_in += other.messages_in
        self.bytes_out += other.bytes_out
        self.bytes_rejected += other.bytes_rejected
        self.produce_requests += other.produce_requests
        self.failed_produce_requests += other.failed_produce_requests
        self.fetch_requests += other.fetch_requests
        self.failed_fetch_requests += other.failed_fetch_requests


class BrokerCounts:
    """Those of a broker, since it started."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounts] = {}
        self._gone = TopicCounts()
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0
        self.no_key_records = 0
        self.invalid_magic_records = 0
        self.invalid_crc_records = 0
        self.invalid_offset_or_sequence_records = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0

    def partition_added(self, topic: str) -> TopicCounts:
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicCounts()
        counts.partitions += 1
        return counts

    def partition_removed(self, topic: str) -> None:
        counts = self.topics.get(topic)
        if counts is None:
            return
        counts.partitions -= 1
        if counts.partitions <= 0:
            self._gone.add(counts)
            del self.topics[topic]

    def total(self) -> TopicCounts:
        """Of all topics, those that have left included: it never falls."""
        found = TopicCounts()
        found.add(self._gone)
        for counts in self.topics.values():
            found.add(counts)
        return found
