"""A little of everything that a cluster counts: records, groups of each kind, a transaction, quotas, and mistakes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from moldau.client import Admin, Consumer, NewTopic, Producer, ShareConsumer, TopicPartition
from moldau.client.admin import GROUP, ConfigChange, ConfigResource, QuotaEntity
from moldau.client.errors import ClientError
from tests.pace import patience_ms

ORDERS, COMPACTED = "orders", "prices"
PARTITIONS = 3
CLASSIC, MODERN, FORGOTTEN, SHARED = "billing", "shipping", "forgotten", "packing"
LIMITED, BUSY = "limited", "busy"
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    # Limits are felt within a second.
    "quota.window.size.seconds": "1",
}
BYTES_PER_S = 2000
RECORD = b"x" * 1000
# Ten seconds' worth may come at once. Whoever is throttled keeps a round waiting, so it is not done in each of them.
TOO_MANY = 3 * BYTES_PER_S * 10 // len(RECORD) // 2
LIMITS_EVERY = 4


class Load:
    """Clients that stay for as long as the load does; each round does a little with every one of them."""

    def __init__(self, bootstrap: str, replicas: int) -> None:
        self._bootstrap = bootstrap
        self.admin = Admin(bootstrap)
        self._replicas = replicas
        self._rounds = 0
        self._open = contextlib.ExitStack()
        self._open.callback(self.admin.close)

    def __enter__(self) -> Load:
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._open.close)
            self._set_up()
            on_failure.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def _set_up(self) -> None:
        topics = [
            NewTopic(ORDERS, PARTITIONS, self._replicas),
            NewTopic(COMPACTED, 1, self._replicas, {"cleanup.policy": "compact"}),
        ]
        for created in self.admin.create_topics(topics).values():
            created.get()
        limits = {
            QuotaEntity.of({"client-id": LIMITED}): {
                "producer_byte_rate": float(BYTES_PER_S),
                "consumer_byte_rate": float(BYTES_PER_S),
            },
            QuotaEntity.of({"client-id": BUSY}): {"request_percentage": 0.01},
        }
        for altered in self.admin.alter_client_quotas(limits).values():
            altered.get()
        earliest = {ConfigResource(GROUP, SHARED): [ConfigChange("share.auto.offset.reset", "earliest")]}
        for changed in self.admin.incremental_alter_configs(earliest).values():
            changed.get()
        self._producer = self._open.enter_context(Producer(self._bootstrap, delivery_timeout_ms=patience_ms(60_000)))
        self._send(PARTITIONS * 10)
        self._forget()
        self._consumers = [
            self._open.enter_context(self._consumer(CLASSIC, "classic")),
            self._open.enter_context(self._consumer(MODERN, "consumer")),
        ]
        self._member = self._open.enter_context(ShareConsumer(self._bootstrap, group_id=SHARED))
        self._member.subscribe([ORDERS])
        self._transactional = self._open.enter_context(Producer(self._bootstrap, transactional_id="ledger"))
        self._transactional.init_transactions()
        self._limited_reader = self._open.enter_context(
            Consumer(self._bootstrap, client_id=LIMITED, auto_offset_reset="earliest")
        )
        self._limited_reader.assign([TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)])

    def _consumer(self, group: str, protocol: str) -> Consumer:
        consumer = Consumer(
            self._bootstrap,
            group_id=group,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        consumer.subscribe([ORDERS])
        return consumer

    def _forget(self) -> None:
        """A group that has committed, and has no members any more: its lag only grows."""
        with Consumer(self._bootstrap, group_id=FORGOTTEN, enable_auto_commit=False) as consumer:
            partitions = [TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.commit(dict.fromkeys(partitions, 5))

    def _send(self, count: int) -> None:
        for number in range(count):
            self._producer.send(ORDERS, RECORD, partition=number % PARTITIONS)
        self._producer.flush()

    def round(self) -> None:
        """Takes a second or two."""
        self._rounds += 1
        self._send(PARTITIONS * 2)
        with self._passing("passing") as producer:
            producer.send(ORDERS, RECORD)
        with self._transactional.transaction():
            self._transactional.send(ORDERS, b"in a transaction", partition=0)
        for consumer in self._consumers:
            if consumer.poll(100):
                consumer.commit()
        self._member.poll(100)
        if self._rounds % LIMITS_EVERY == 1:
            self._run_into_limits()
        self._make_mistakes()
        for created in self.admin.create_topics([NewTopic(f"round-{self._rounds}", 1, self._replicas)]).values():
            created.get()

    def _run_into_limits(self) -> None:
        with self._passing(LIMITED) as producer:
            producer.send(ORDERS, RECORD * TOO_MANY, partition=0)
        self._limited_reader.poll(100)
        with self._passing(BUSY) as producer:
            producer.send(ORDERS, b"busy", partition=1)

    @contextlib.contextmanager
    def _passing(self, client_id: str) -> Iterator[Producer]:
        """A producer with connections of its own, which are closed behind it."""
        with Producer(self._bootstrap, client_id=client_id, delivery_timeout_ms=patience_ms(60_000)) as producer:
            yield producer

    def _make_mistakes(self) -> None:
        for described in self.admin.describe_topics(["nowhere"]).values():
            with contextlib.suppress(ClientError):
                described.get()
        with contextlib.suppress(ClientError):
            self._producer.send(COMPACTED, b"without a key").result()
