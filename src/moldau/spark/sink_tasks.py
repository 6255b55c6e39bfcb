"""What a task of a write does, in the worker process of an executor: writes its rows, in a transaction where wanted.

Producers live longer than tasks: Spark keeps worker processes, and the next micro-batch finds its connections open. A
transactional id belongs to the process that made it, and is used again only if the newest decision leases it out.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moldau.client import Admin, Producer
from moldau.client.arrow import ArrowDelivery
from moldau.client.errors import ClientError
from moldau.client.results import PreparedTransaction
from moldau.protocol import errors as codes
from moldau.spark.decisions import SinkError, SinkState, SinkTransaction, Written, is_decided, transaction_name
from moldau.spark.sink_log import DecisionLog
from moldau.spark.sink_options import AUTO, WriteOptions
from moldau.spark.sink_rows import RowSender

logger = logging.getLogger("moldau.spark")

# More than a core's worth of tasks in one micro-batch; further ones get a transactional id of their own each time.
HELD_MAX = 16
# A process may work for several queries in turn; of those that it has not worked for lately nothing is kept.
SINKS_MAX = 4
CLOSE_TIMEOUT_MS = 5_000
# Batches as large as brokers take by default go through faster; records of a partition are together there anyway.
LINGER_MS = "20"


@dataclass(frozen=True)
class Place:
    """Which task of which batch of which query this is. run: another one each time that Spark runs the batch."""

    sink: str
    batch: int
    partition: int
    run: str


class _Held:
    """A producer that has handed over its transaction."""

    def __init__(self, name: str, producer: Producer) -> None:
        self.name = name
        self.producer = producer
        # What it handed over last, and in which run of which batch.
        self.handed_over: PreparedTransaction | None = None
        self.run = ""

    def close(self) -> None:
        with contextlib.suppress(ClientError):
            self.producer.close(CLOSE_TIMEOUT_MS)


class _Cluster:
    """What a worker process keeps of one cluster, for one set of options."""

    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        self.lock = threading.Lock()
        self.plain: list[Producer] = []
        self.held: dict[str, list[_Held]] = {}
        self._state: tuple[str, SinkState | None] | None = None
        self._admin: Admin | None = None
        self._log: tuple[str, DecisionLog] | None = None
        self._two_phase: bool | None = None

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(config=dict(self.options.contact_config))
        return self._admin

    def two_phase(self) -> bool:
        """Whether transactions are prepared for as long as it takes; asked once."""
        if self.options.two_phase != AUTO:
            return self.options.two_phase == "true"
        with self.lock:
            if self._two_phase is None:
                self._two_phase = self.admin.offers_two_phase_commit()
            return self._two_phase

    def keep(self, sink: str, held: _Held) -> list[_Held]:
        """Keeps a producer for the next batch of its query, and gives those that are too many now."""
        with self.lock:
            kept = self.held.pop(sink, [])
            kept.append(held)
            self.held[sink] = kept
            surplus = [kept.pop(0)] if len(kept) > HELD_MAX else []
            if len(self.held) > SINKS_MAX:
                surplus += self.held.pop(next(iter(self.held)))
            return surplus

    def state(self, place: Place, only_near: bool) -> SinkState | None:
        """The newest decision, read once for all tasks that this process runs of one batch."""
        with self.lock:
            if self._state is None or self._state[0] != place.run:
                self._state = (place.run, self._decisions(place.sink).read(only_near))
            return self._state[1]

    def _decisions(self, sink: str) -> DecisionLog:
        if self._log is None or self._log[0] != sink:
            if self._log is not None:
                self._log[1].close()
            timeout_ms = int(self.options.producer_config["max.block.ms"])
            log = DecisionLog(self.options.contact_config, self.options.decision_topic, sink, timeout_ms, self.admin)
            self._log = (sink, log)
        return self._log[1]


_clusters: dict[str, _Cluster] = {}
_clusters_lock = threading.Lock()


def _cluster(options: WriteOptions) -> _Cluster:
    with _clusters_lock:
        return _clusters.setdefault(options.identity, _Cluster(options))


def write_plain(options: WriteOptions, place: Place, batches: Iterable[Any]) -> Written:
    """At least once: every row is acknowledged when this returns."""
    cluster = _cluster(options)
    with cluster.lock:
        producer = cluster.plain.pop() if cluster.plain else None
    if producer is None:
        producer = Producer(config={"linger.ms": LINGER_MS, **options.producer_config})
    deliveries: list[ArrowDelivery] = []

    def send(topic: str, rows: Any) -> None:
        deliveries.append(producer.send_arrow(topic, rows))
        while len(deliveries) > 64 and deliveries[0].done():
            deliveries.pop(0).result()

    try:
        rows = _send_all(options, send, batches)
        producer.flush()
        for delivery in deliveries:
            delivery.result()
    except BaseException:
        with contextlib.suppress(ClientError):
            producer.close(CLOSE_TIMEOUT_MS)
        raise
    with cluster.lock:
        cluster.plain.append(producer)
    return Written(place.sink, place.batch, place.run, rows.rows, rows.bytes)


def _send_all(options: WriteOptions, send: Any, batches: Iterable[Any]) -> RowSender:
    rows = RowSender(options, send)
    for batch in batches:
        if batch.num_rows:
            rows.send(batch)
    return rows


def write_in_transaction(options: WriteOptions, place: Place, batches: Iterable[Any], only_near: bool) -> Written:
    """Exactly once: the rows are in a transaction that the driver will end, unless the batch was decided before."""
    cluster = _cluster(options)
    state = cluster.state(place, only_near)
    if is_decided(state, place.batch):
        for _ in batches:
            pass  # Spark wants to get rid of the rows, and the worker process to be used again
        return Written(place.sink, place.batch, place.run, is_skipped=True)
    task = _Task(cluster, place, state, is_kept=not only_near)
    try:
        rows = _send_all(options, task.send, batches)
        return Written(place.sink, place.batch, place.run, rows.rows, rows.bytes, task.hand_over(), task.two_phase)
    except BaseException:
        task.give_up()
        raise


class _Task:
    """One attempt of one task. Its transaction begins with the first row: a task without rows has none."""

    def __init__(self, cluster: _Cluster, place: Place, state: SinkState | None, is_kept: bool) -> None:
        """is_kept: there will be further batches, so that the producer is kept for them."""
        self._cluster = cluster
        self._place = place
        self._is_kept = is_kept
        self._leases = {} if state is None else {lease.name: lease for lease in state.leases}
        self._held: _Held | None = None
        self.two_phase = False

    def send(self, topic: str, rows: Any) -> None:
        if self._held is None:
            self.two_phase = self._cluster.two_phase()
            self._held = self._take() or self._make()
            self._held.producer.begin_transaction()
        self._held.producer.send_arrow(topic, rows)

    def hand_over(self) -> SinkTransaction | None:
        held, self._held = self._held, None
        if held is None:
            return None
        try:
            prepared = held.producer.hand_over_transaction()
        except ClientError as error:
            held.close()
            raise self._explained(error) from error
        held.handed_over = prepared
        held.run = self._place.run
        surplus = self._cluster.keep(self._place.sink, held) if self._is_kept else [held]
        for unused in surplus:
            unused.close()
        return SinkTransaction(held.name, prepared.producer_id, prepared.producer_epoch)

    def give_up(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _take(self) -> _Held | None:
        """A producer whose transaction has been ended since, if this process has one."""
        chosen: _Held | None = None
        kept: list[_Held] = []
        lost: list[_Held] = []
        with self._cluster.lock:
            for held in self._cluster.held.pop(self._place.sink, []):
                lease = self._leases.get(held.name)
                if held.run == self._place.run:
                    kept.append(held)  # of another task of this batch: it is about to be decided
                elif lease is None or lease.following == held.handed_over:
                    lost.append(held)  # no decision names it: another attempt was faster. The next decider aborts it
                elif chosen is None:
                    chosen = held
                else:
                    kept.append(held)
            if kept:
                self._cluster.held[self._place.sink] = kept
        for held in lost:
            held.close()
        if chosen is None:
            return None
        try:
            chosen.producer.go_on_as(self._leases[chosen.name].following)
        except ClientError as error:
            logger.info("The transactional id %s is not used again: %s", chosen.name, error)
            chosen.close()
            return None
        return chosen

    def _make(self) -> _Held:
        options = self._cluster.options
        place = self._place
        name = transaction_name(place.batch, place.run, place.partition, secrets.token_hex(8))
        config = {
            "linger.ms": LINGER_MS,
            **options.producer_config,
            "transactional.id": f"{options.id_prefix}.{place.sink}.{name}",
        }
        if self.two_phase:
            config["transaction.two.phase.commit.enable"] = "true"
        else:
            config["transaction.timeout.ms"] = str(options.transaction_timeout_ms)
        producer = Producer(config=config)
        try:
            producer.init_transactions()
        except ClientError as error:
            producer.close(0)
            raise self._explained(error) from error
        return _Held(name, producer)

    def _explained(self, error: ClientError) -> Exception:
        """What the user can do about it, where that is known."""
        if error.code == codes.INVALID_TRANSACTION_TIMEOUT:
            return SinkError(
                f"Brokers refuse transactions of {self._cluster.options.transaction_timeout_ms} ms: raise their"
                " transaction.max.timeout.ms, or write a smaller kafka.transaction.timeout.ms."
            )
        if self.two_phase and error.code in (codes.UNSUPPORTED_VERSION, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
            return SinkError(
                "Brokers refuse two-phase commit: set transaction.two.phase.commit.enable=true there, or write"
                " twoPhaseCommit=false, where a commit must come before kafka.transaction.timeout.ms is over."
            )
        return error
