"""The decision topic: where the exactly-once sink keeps what it has decided, one key for each query or run.

Whoever decides takes over first: InitProducerId of one transactional id per query aborts what an earlier decider left
half written and fences it for good. So each record that readers of committed records can see was written by the one
decider of its time, and the last one counts; compaction keeps it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from moldau.client import Admin, Consumer, Producer
from moldau.client.admin.topics import NewTopic
from moldau.client.errors import ClientError, RequestTimeoutError
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import TopicPartition
from moldau.protocol import errors as codes
from moldau.records.murmur2 import partition_for_key
from moldau.spark.decisions import SinkError, SinkState

# Fixed, because a key must stay in its partition.
PARTITIONS = 8
REPLICATION_FACTOR = 3
# A decider that dies while it writes holds up readers of its partition for at most so long.
DECIDER_TIMEOUT_MS = 10_000
# How far from the end a state is looked for at first: it is written with every batch.
NEAR_OFFSETS = 64
POLL_MS = 50
CLOSE_TIMEOUT_MS = 1_000

TOPIC_CONFIGS: Mapping[str, str | None] = {
    "cleanup.policy": "compact",
    # Compaction leaves the newest segment alone, so that it must not become large.
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
}


class TakenOver(SinkError):
    """Another decider has come: nothing was written."""


class DecisionLog:
    """The decisions of one query, as far as they are written down; to be closed, or used with `with`."""

    def __init__(
        self, config: Mapping[str, str], topic: str, sink: str, timeout_ms: int, admin: Admin | None = None
    ) -> None:
        """config: what admin client, consumer and producer are told alike; admin: one that lives longer than this."""
        self._config = dict(config)
        self._timeout_ms = timeout_ms
        self._sink = sink
        self._key = sink.encode()
        self._partition = TopicPartition(topic, partition_for_key(self._key, PARTITIONS))
        self._own_admin = admin is None
        self.admin = Admin(config=self._config) if admin is None else admin
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        self._is_there = False
        # Up to where the log was read to its end, and what was the newest decision then.
        self._read_to: int | None = None
        self._newest: SinkState | None = None

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(CLOSE_TIMEOUT_MS)
        if self._consumer is not None:
            self._consumer.close()
        if self._own_admin:
            self.admin.close()

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def read(self, only_near: bool = False) -> SinkState | None:
        """The newest decision that was committed when this was called, or later; None if there is none.

        only_near: a key that is made for one run only is not looked for among everything that ever was.
        """
        if not self._exists():
            return None
        end = self._offset(LATEST)
        if self._read_to is not None and self._read_to <= end:
            found = self._scan(self._read_to, end, self._newest)
        else:
            start = self._offset(EARLIEST)
            near = max(start, end - NEAR_OFFSETS)
            found = self._scan(near, end, None)
            if found is None and near > start:
                if only_near:
                    return None
                found = self._scan(start, near, None)
        self._read_to, self._newest = end, found
        return found

    def _exists(self) -> bool:
        if not self._is_there:
            topic = self._partition.topic
            outcome = self.admin.describe_topics([topic], self._timeout_ms)[topic]
            if outcome.error is not None and outcome.error.code == codes.UNKNOWN_TOPIC_OR_PARTITION:
                return False
            if len(outcome.get().partitions) < PARTITIONS:
                raise SinkError(
                    f"The decision topic {topic} must have at least {PARTITIONS} partitions: name another one by the"
                    " option decisionTopic, or none, and the sink makes its own."
                )
            self._is_there = True
        return True

    def _offset(self, place: int) -> int:
        """The first offset, or the high watermark."""
        asked = self.admin.list_offsets({self._partition: place}, timeout_ms=self._timeout_ms)
        return asked[self._partition].get().offset

    def _scan(self, start: int, end: int, found: SinkState | None) -> SinkState | None:
        """The last state between two offsets, or the given one. Waits for transactions of others that are open there,
        for a decision may lie behind them."""
        if self._consumer is None:
            self._consumer = Consumer(
                config={**self._config, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
            )
            self._consumer.assign([self._partition])
            self._consumer.seek(self._partition, start)
        consumer = self._consumer
        if consumer.position(self._partition) != start:
            consumer.seek(self._partition, start)
        deadline = time.monotonic() + self._timeout_ms / 1000
        while consumer.position(self._partition) < end:
            for record in consumer.poll(POLL_MS):
                if record.key == self._key and record.offset < end:
                    found = None if record.value is None else SinkState.from_bytes(record.value)
            if time.monotonic() > deadline:
                raise RequestTimeoutError(f"The decision topic {self._partition} could not be read to offset {end}.")
        return found

    # Deciding

    def take_over(self, prefix: str) -> SinkState | None:
        """Fences whoever decided before, and reads what it has decided."""
        self._make_topic()
        if self._producer is not None:
            self._producer.close(CLOSE_TIMEOUT_MS)
        self._producer = Producer(
            config={
                **self._config,
                "transactional.id": f"{prefix}.{self._sink}.decider",
                "transaction.timeout.ms": str(DECIDER_TIMEOUT_MS),
                "max.block.ms": str(self._timeout_ms),
                "linger.ms": "0",
            }
        )
        self._producer.init_transactions()
        return self.read()

    def write(self, state: SinkState) -> None:
        """Once this returns, the state is committed; if it raises, only a next take_over() tells."""
        assert self._producer is not None
        try:
            with self._producer.transaction():
                self._producer.send(
                    self._partition.topic, state.to_bytes(), self._key, partition=self._partition.partition
                )
        except ClientError as error:
            if error.code in (codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):
                raise TakenOver(
                    f"Another run of this query ({self._sink}) has taken over: stop one of the two. Nothing is lost or"
                    " written twice."
                ) from error
            raise

    def _make_topic(self) -> None:
        if self._exists():
            return
        brokers = len(self.admin.describe_cluster(timeout_ms=self._timeout_ms).brokers)
        replicas = min(REPLICATION_FACTOR, max(1, brokers))
        configs = {**TOPIC_CONFIGS, "min.insync.replicas": str(max(1, replicas - 1))}
        topic = self._partition.topic
        made = self.admin.create_topics([NewTopic(topic, PARTITIONS, replicas, configs)], timeout_ms=self._timeout_ms)
        error = made[topic].error
        if error is not None and error.code != codes.TOPIC_ALREADY_EXISTS:
            raise SinkError(f"The decision topic {topic} could not be made: {error.message}") from error
        deadline = time.monotonic() + self._timeout_ms / 1000
        while not self._exists():
            if time.monotonic() > deadline:
                raise SinkError(f"The decision topic {topic} was made, and brokers do not know it.")
            time.sleep(0.02)
        # Leaders are elected a moment later; the first write waits for that, the first read must.
        with contextlib.suppress(ClientError):
            self._offset(LATEST)
