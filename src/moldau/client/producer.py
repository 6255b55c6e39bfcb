"""The producer: send() returns a future, a thread of its own batches, sends and tries again.

This is the half that the user's threads run through, once per record, and it is compiled. What is sent when, and in
which order, is decided in the accumulator; the thread is in produce/sender.py.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from librt.threading import Lock
from librt.time import time as wall_clock
from mypy_extensions import i64, mypyc_attr

from moldau.client import config as settings
from moldau.client.arguments import (
    GivenHeaders,
    GivenMilliseconds,
    GivenNumber,
    GivenTopic,
    checked_callable,
    checked_items,
    checked_number,
    checked_topic,
    kind_of,
    seconds_of,
    wrong_topic,
)
from moldau.client.connection.backoff import Backoff
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import (
    ClientError,
    ConfigError,
    NoBrokerError,
    RequestTimeoutError,
    TransactionCallError,
    error_for,
)
from moldau.client.metrics.meters import ProduceMeter
from moldau.client.produce.accumulator import Accumulator, PartitionQueue
from moldau.client.produce.delivery import Callback, DeliveryFuture
from moldau.client.produce.partitioner import TopicState
from moldau.client.produce.sender import Sender
from moldau.client.results import (
    ConsumerGroupMetadata,
    Headers,
    OffsetAndMetadata,
    PreparedTransaction,
    TopicPartition,
)
from moldau.client.telemetry.watch import Telemetry
from moldau.client.wiring import wiring_of
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.integers import INT_MAX
from moldau.records.record_buffer import Body, record_bytes_max

if TYPE_CHECKING:
    from typing import Unpack

    from moldau.client.arrow import ArrowDelivery
    from moldau.client.metrics.names import Metrics
    from moldau.client.produce.transaction_session import Transaction, TransactionSession
    from moldau.client.produce.transactions import Operation
    from moldau.client.setting_types import ProducerSettings

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# How long a producer that is left with an error waits for the abort of its transaction.
ABORT_TIMEOUT_MS = 5_000
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}

# What stands for the key of a value for which none is left.
NO_KEY: Final = object()
TOO_FEW_KEYS: Final = "There are more values than keys: give a key, or None, for each value."

Serializer = Callable[[object], bytes | None]
# partitioner(topic, key, number of partitions) -> partition
Partitioner = Callable[[str, bytes | None, int], int]


@mypyc_attr(allow_interpreted_subclasses=True)
class Producer:
    """Sends records to topics; safe to use from several threads.

    bootstrap_servers: "host:port,host:port", a list of those, or a mapping of settings by Kafka's names.
    key_serializer, value_serializer: make bytes of keys and values; without them these are bytes, text or None.
    partitioner(topic, key, number of partitions) chooses a partition where none is given. on_batch(partition, number of
    records, error or None) is called from the sender's thread for each batch that is done. The other keywords are
    settings, with `_` for `.`, which config takes as they are; moldau.client.setting_types.ProducerSettings has them.

    Raises ConfigError for a setting that does not exist, or that does not fit together with another.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | None = None,
        on_batch: Callable[[TopicPartition, int, ClientError | None], None] | None = None,
        config: Mapping[str, object] | None = None,
        **more: Unpack[ProducerSettings],
    ) -> None:
        read = settings.read(settings.PRODUCER, bootstrap_servers, config, more)
        self._config: settings.ClientConfig = read
        acks = ACKS[read.get_text("acks")]
        idempotent = _choose_idempotence(read, acks)
        checked_callable("key_serializer", key_serializer)
        checked_callable("value_serializer", value_serializer)
        checked_callable("partitioner", partitioner)
        checked_callable("callback on_batch", on_batch)
        # What they make is checked here and not by the compiler.
        self._key_serializer: Callable[[object], object] | None = key_serializer
        self._value_serializer: Callable[[object], object] | None = value_serializer
        self._partitioner: Callable[[str, bytes | None, int], object] | None = partitioner
        self._ignore_keys: bool = read.get_bool("partitioner.ignore.keys")
        self._max_block_ms: int = read.get_int("max.block.ms")
        self._buffer_memory: i64 = read.get_int("buffer.memory")
        self._batch_bytes: int = read.get_int("batch.size")
        self._request_bytes_max: int = read.get_int("max.request.size")
        wiring = wiring_of(config)
        self._first_contact_ms: int | None = wiring.first_contact_ms
        self._cluster: Cluster = Cluster(
            read, wiring.network, auto_create_topics=True, first_contact_ms=self._first_contact_ms
        )
        self._started_ms: int = self._cluster.network.now_ms()
        self._started_wall_ms: int = int(_wall_ms())
        self._meter: ProduceMeter = ProduceMeter(self._cluster.window)
        self._accumulator: Accumulator = _new_accumulator(read, idempotent, self._meter)
        self._transactions: TransactionSession | None = None
        if read.get_optional("transactional.id") is not None:
            from moldau.client.produce.transaction_session import new_session

            if not idempotent:
                raise ConfigError(
                    "A transactional.id needs enable.idempotence, acks=all, retries and at most 5 in flight."
                )
            self._transactions = new_session(read, self._cluster, self._accumulator)
        elif read.get_bool("transaction.two.phase.commit.enable"):
            raise ConfigError("transaction.two.phase.commit.enable needs a transactional.id.")
        self._sender: Sender = Sender(
            self._cluster,
            self._accumulator,
            acks=acks,
            idempotent=idempotent,
            request_timeout_ms=read.get_int("request.timeout.ms"),
            in_flight_max=read.get_int("max.in.flight.requests.per.connection"),
            batch_bytes=self._batch_bytes,
            adaptive=read.get_bool("partitioner.adaptive.partitioning.enable"),
            availability_timeout_ms=read.get_int("partitioner.availability.timeout.ms"),
            on_batch=on_batch,
            transactions=self._transactions,
        )
        self._topics: dict[str, TopicState] = self._sender.topics
        self._lock: Lock = self._sender.lock
        self._changed: threading.Condition = self._sender.changed
        self._telemetry: Telemetry = Telemetry(read, self._cluster, self.metrics)

    def send(
        self,
        topic: GivenTopic,
        value: object = None,
        key: object = None,
        *,
        partition: GivenNumber = None,
        timestamp_ms: GivenNumber = None,
        headers: GivenHeaders | None = None,
        on_delivery: Callback | None = None,
    ) -> DeliveryFuture:
        """Queues one record; blocks up to max.block.ms while the topic is unknown or the buffer is full.

        on_delivery(metadata, error) is called from the sender's thread, with one of the two None.

        Raises what makes the record impossible at once: RecordTooLargeError, UnknownTopicOrPartitionError, ClosedError,
        or RequestTimeoutError after max.block.ms. What goes wrong later is the future's.
        """
        name = topic if isinstance(topic, str) else wrong_topic(topic)
        raw_key = self._key_bytes(key)
        raw_value = self._value_bytes(value)
        header_list = None if headers is None else _header_list(headers)
        wall_ms: i64 = _wall_ms() if timestamp_ms is None else checked_number("timestamp", timestamp_ms)
        index = None if partition is None else checked_number("partition", partition)
        if on_delivery is not None:
            checked_callable("callback on_delivery", on_delivery)
        accumulator = self._accumulator
        with self._lock:
            future = self._append(name, raw_key, raw_value, header_list, wall_ms, index)
            if on_delivery is not None:
                future._add_callback(on_delivery)
            if accumulator.news and accumulator.sender_asleep:
                self._sender.wake()
        return future

    def send_many(
        self,
        topic: GivenTopic,
        values: Iterable[object],
        keys: Iterable[object] | None = None,
        *,
        partition: GivenNumber = None,
        timestamp_ms: GivenNumber = None,
    ) -> list[DeliveryFuture]:
        """Queues a record for each value, with the key in the same place of keys where those are given.

        Raises what send() raises; the values before that are queued. ValueError: there are fewer keys than values.
        """
        name = topic if isinstance(topic, str) else wrong_topic(topic)
        wall_ms: i64 = _wall_ms() if timestamp_ms is None else checked_number("timestamp", timestamp_ms)
        index = None if partition is None else checked_number("partition", partition)
        futures: list[DeliveryFuture] = []
        checked_items("values", values)
        key_iterator = None if keys is None else iter(checked_items("keys", keys))
        with self._lock:
            for value in values:
                raw_key = None if key_iterator is None else self._key_bytes(next(key_iterator, NO_KEY))
                raw_value = self._value_bytes(value)
                futures.append(self._append(name, raw_key, raw_value, None, wall_ms, index))
            if self._accumulator.news:
                self._sender.wake()
        return futures

    def send_arrow(
        self,
        topic: GivenTopic,
        table: object,
        *,
        value: GivenTopic = "value",
        key: GivenTopic = "key",
        headers: GivenTopic = "headers",
        timestamp: GivenTopic = "timestamp",
        partition: GivenTopic = "partition",
    ) -> ArrowDelivery:
        """Queues a record for each row of a pyarrow Table or RecordBatch; the columns are named by the keywords.

        Only the value column must be there. No object is made for a row; the future is one for all of them. Raises
        ConfigError for a column of a type that cannot be sent, and without pyarrow.
        """
        from moldau.client.arrow import send_table
        from moldau.client.encoded import EncodedBatches

        return send_table(
            EncodedBatches(self),
            checked_topic(topic),
            table,
            value=value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    def _send_encoded(
        self, topic: str, partition: int | None, data: Body, count: int, base_timestamp: int, max_timestamp: int
    ) -> DeliveryFuture:
        """Queues a batch of records that are encoded already; the future is that of the first one."""
        with self._lock:
            deadline = time.monotonic() + self._max_block_ms / 1000
            state = self._wait_for_topic(topic, deadline)
            size = i64(len(data))
            self._accumulator.check_size(size)
            self._wait_for_memory(size, deadline)
            queue = state.sticky(size) if partition is None else self._queue(state, partition)
            now_ms = self._cluster.network.now_ms()
            fate = self._accumulator.append_encoded(queue, data, count, base_timestamp, max_timestamp, now_ms)
            if self._accumulator.news:
                self._sender.wake()
        return DeliveryFuture(fate, 0, base_timestamp)

    @property
    def _encoded_bytes_max(self) -> int:
        """How large a batch for _send_encoded() should be at most."""
        return int(max(i64(self._batch_bytes), min(self._accumulator.encoded_bytes_max, self._buffer_memory >> 2)))

    def _would_block(self, topic: GivenTopic) -> bool:
        """Whether send() might have to wait: the topic is not known yet, or the buffer is nearly full."""
        held = self._accumulator.bytes_held + self._request_bytes_max
        return checked_topic(topic) not in self._topics or (
            held > self._buffer_memory and self._accumulator.batches_held > 0
        )

    def partitions_for(self, topic: GivenTopic) -> list[int]:
        """The numbers of the topic's partitions; blocks up to max.block.ms for its metadata.

        Raises UnknownTopicOrPartitionError, or RequestTimeoutError where no broker responds.
        """
        name = checked_topic(topic)
        with self._lock:
            state = self._wait_for_topic(name, time.monotonic() + self._max_block_ms / 1000, False)
            return list(range(len(state.queues)))

    def metrics(self) -> Metrics:
        """What the producer measures of itself, under the names of Kafka's metrics, as of now.

        A mapping of MetricName to numbers, and `metrics()["record-send-total"]` for what the producer has of it in all.
        Rates, averages and maxima are those of the last 30 to 60 seconds (metrics.sample.window.ms); where nothing
        happened in that time an average is not a number. docs/client-metrics.md has them all.
        """
        from moldau.client.metrics.producer import producer_metrics

        held = int(self._accumulator.bytes_held), int(self._accumulator.waiting_for_memory)
        return producer_metrics(self._config, self._cluster, self._meter, self._started_wall_ms, held)

    def client_instance_id(self, timeout_ms: GivenMilliseconds = None) -> bytes:
        """The id by which brokers know the metrics that this producer pushes (KIP-714); waits for it.

        Raises ConfigError without enable.metrics.push, UnsupportedVersionError where brokers take no metrics, and
        RequestTimeoutError after timeout_ms; None waits for max.block.ms.
        """
        seconds = seconds_of(timeout_ms)
        return self._telemetry.instance_id(self._max_block_ms if seconds is None else int(seconds * 1000))

    def flush(self, timeout_ms: GivenMilliseconds = None) -> None:
        """Sends everything that was queued so far and waits until each record is delivered or has failed.

        Raises RequestTimeoutError when that takes longer than timeout_ms; None waits as long as delivery.timeout.ms
        allows. What failed is told by the records' futures, not here.
        """
        seconds = seconds_of(timeout_ms)
        began_ns = time.monotonic_ns()
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._lock:
            number = self._accumulator.flush()
            self._sender.wake()
            while not self._accumulator.flushed(number) or self._sender.has_untold(number):
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    raise RequestTimeoutError("Not everything was delivered within the timeout of flush().")
                self._changed.wait(remaining)
            self._meter.flush_ns += i64(time.monotonic_ns() - began_ns)

    def close(self, timeout_ms: GivenMilliseconds = None) -> None:
        """Delivers what is queued, for at most timeout_ms, and ends the thread; what is left then fails.

        None waits until everything is delivered or has failed. A transaction that is open is aborted.
        """
        self._sender.close(seconds_of(timeout_ms))
        self._telemetry.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A transaction that is open is aborted, which takes a request.
        hurry = 0 if self._transactions is None else ABORT_TIMEOUT_MS
        self.close(None if kind is None else hurry)

    # Transactions

    def init_transactions(self, keep_prepared: bool = False) -> None:
        """Gets a producer id for the transactional.id, once and before anything else.

        Whoever had the same transactional.id is fenced, and what it left open is aborted; with keep_prepared (KIP-939)
        a prepared transaction stays, and complete_transaction() decides on it. Waits up to max.block.ms, and may be
        called again after a timeout, as may commit_transaction() and abort_transaction().

        Raises TransactionCallError without a transactional.id, and RequestTimeoutError.
        """
        session = self._session()
        with self._lock:
            self._sender.start()
            self._finish(session.manager.init(keep_prepared), "init")

    def begin_transaction(self) -> None:
        """What is sent from now on becomes visible as a whole, or not at all.

        Raises TransactionCallError before init_transactions() and while a transaction is open.
        """
        session = self._session()
        with self._lock:
            self._sender.start()
            began_ns = time.monotonic_ns()
            session.manager.begin()
            self._count_transaction("begin", began_ns)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group_metadata: ConsumerGroupMetadata
    ) -> None:
        """Commits offsets of a group (the next ones to read) with the transaction; take consumer.group_metadata().

        Raises as commit_transaction() does; CommitFailedError where the consumer is not a member of the group any more.
        """
        session = self._session()
        with self._lock:
            self._sender.start()
            self._finish(session.manager.send_offsets(offsets, group_metadata), "send-offsets")

    def commit_transaction(self) -> None:
        """Delivers everything sent since begin_transaction() and makes it visible.

        Raises TransactionAbortableError where only abort_transaction() is left; after other errors than a timeout
        the producer is to be closed.
        """
        session = self._session()
        with self._lock:
            self._sender.start()
            self._finish(session.manager.commit(), "commit")

    def abort_transaction(self) -> None:
        """Makes what was sent since begin_transaction() invisible to readers of committed records."""
        session = self._session()
        with self._lock:
            self._sender.start()
            self._finish(session.manager.abort(), "abort")

    def prepare_transaction(self) -> PreparedTransaction:
        """Delivers everything and keeps the transaction open for an outside coordinator (KIP-939): note the result
        there, then call complete_transaction() with what is noted."""
        session = self._session()
        began_ns = time.monotonic_ns()
        self.flush()
        with self._lock:
            self._sender.start()
            prepared: PreparedTransaction = session.manager.prepare()
            self._count_transaction("prepare", began_ns)
            self._accumulator.unusable = True
            return prepared

    def hand_over_transaction(self) -> PreparedTransaction:
        """Like prepare_transaction(), and also without two-phase commit: somebody else ends the transaction, with
        Admin.end_transactions(). Without two-phase commit that must be before transaction.timeout.ms is over."""
        session = self._session()
        self.flush()
        with self._lock:
            self._sender.start()
            prepared: PreparedTransaction = session.manager.prepare(True)
            self._accumulator.unusable = True
            return prepared

    def go_on_as(self, following: PreparedTransaction) -> None:
        """What was handed over has been ended by Admin.end_transactions(), which gave this: transactions may go on."""
        session = self._session()
        with self._lock:
            self._sender.start()
            session.go_on_as(following)

    def complete_transaction(self, prepared: PreparedTransaction) -> None:
        """Commits the prepared transaction if this is it, and aborts it otherwise."""
        session = self._session()
        with self._lock:
            self._sender.start()
            self._finish(session.manager.complete(prepared), "commit")

    def transaction(self) -> Transaction:
        """`with producer.transaction():` begins and commits, or aborts if something fails."""
        from moldau.client.produce.transaction_session import Transaction

        self._session()
        return Transaction(self)

    @property
    def in_transaction(self) -> bool:
        """Whether there is a transaction to commit or to abort."""
        from moldau.client.produce.transaction_states import State

        state = self._session().manager.state
        return state is State.IN_TRANSACTION or state is State.ABORTABLE_ERROR or state is State.PREPARED

    def _session(self) -> TransactionSession:
        if self._transactions is None:
            raise TransactionCallError("Transactions need the setting transactional.id.")
        return self._transactions

    # Under the lock

    def _finish(self, operation: Operation, name: str) -> None:
        """Lets the sender carry out what was begun, and waits for it."""
        session = self._session()
        began_ns = time.monotonic_ns()
        if not session.manager.taking:
            self._accumulator.unusable = True
            self._accumulator.flush()
        self._accumulator.news = True
        self._sender.wake()
        try:
            session.wait(operation, self._max_block_ms / 1000)
        finally:
            self._count_transaction(name, began_ns)

    def _count_transaction(self, name: str, began_ns: int) -> None:
        spent = self._meter.transaction_ns
        spent[name] = spent.get(name, 0) + time.monotonic_ns() - began_ns

    def _append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        timestamp: i64,
        partition: int | None,
    ) -> DeliveryFuture:
        accumulator = self._accumulator
        size = record_bytes_max(key, value, headers)
        state = self._topics.get(topic)
        if state is None or accumulator.unusable or accumulator.bytes_held + size > self._buffer_memory:
            accumulator.check_size(size)
            deadline = time.monotonic() + self._max_block_ms / 1000
            state = self._wait_for_topic(topic, deadline)
            self._wait_for_memory(size, deadline)
        if partition is not None:
            queue = self._queue(state, partition)
        elif self._partitioner is not None:
            number = self._partitioner(topic, key, len(state.queues))
            queue = self._queue(state, checked_number("partition that the partitioner chose", number))
        elif key is not None and not self._ignore_keys:
            queue = state.keyed(key)
        else:
            queue = state.sticky(size)
        future = accumulator.try_append(queue, timestamp, key, value, headers, size)
        if future is None:
            accumulator.check_size(size)
            accumulator.open_batch(queue, self._cluster.network.now_ms())
            future = accumulator.try_append(queue, timestamp, key, value, headers, size)
            assert future is not None
        return future

    def _queue(self, state: TopicState, partition: int) -> PartitionQueue:
        count = len(state.queues)
        if not 0 <= partition < count:
            sentence = f"Topic {state.name} has {count} partitions, there is no partition {partition}."
            raise error_for(UNKNOWN_TOPIC_OR_PARTITION, sentence)
        return state.queues[partition]

    def _wait_for_topic(self, topic: str, deadline: float, sending: bool = True) -> TopicState:
        sender = self._sender
        while True:
            if sending:
                sender.check_usable()
            else:
                sender.start()
            found = self._topics.get(topic)
            if found is not None:
                return found
            error = sender.topic_errors.get(topic)
            if error is not None and self._is_final(error):
                del sender.topic_errors[topic]
                sender.wanted_topics.discard(topic)
                raise error
            sender.wanted_topics.add(topic)
            sender.wake()
            began_ns = time.monotonic_ns()
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                sender.wanted_topics.discard(topic)
                last = sender.topic_errors.pop(topic, None)
                if last is not None and last.code == UNKNOWN_TOPIC_OR_PARTITION:
                    raise last
                reason = f" {last.message}" if last is not None else ""
                raise RequestTimeoutError(
                    f"Topic {topic} not present in metadata after {self._max_block_ms} ms.{reason}"
                )
            self._changed.wait(remaining)
            self._meter.metadata_wait_ns += i64(time.monotonic_ns() - began_ns)

    def _is_final(self, error: ClientError) -> bool:
        """No use in waiting: the error stays, or there is no broker and the user did not want to wait for one."""
        if isinstance(error, NoBrokerError) and self._first_contact_ms is not None and not self._cluster.brokers:
            return self._cluster.network.now_ms() - self._started_ms >= self._first_contact_ms
        return not error.retriable

    def _wait_for_memory(self, size: i64, deadline: float) -> None:
        accumulator = self._accumulator
        while accumulator.bytes_held + size > self._buffer_memory and accumulator.batches_held > 0:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self._meter.exhausted.add(1)
                raise RequestTimeoutError(
                    f"The buffer ({self._buffer_memory} bytes, buffer.memory) stayed full for"
                    f" {self._max_block_ms} ms (max.block.ms)."
                )
            accumulator.waiting_for_memory += 1
            if not accumulator.all_blocked():
                accumulator.news = True
                self._sender.wake()
            began_ns = time.monotonic_ns()
            try:
                self._changed.wait(remaining)
            finally:
                accumulator.waiting_for_memory -= 1
                self._meter.memory_wait_ns.add(time.monotonic_ns() - began_ns)
            self._sender.check_usable()

    def _key_bytes(self, key: object) -> bytes | None:
        if self._key_serializer is None:
            if key is None or isinstance(key, bytes):
                return key
            return _to_bytes("key", key)
        if key is NO_KEY:
            raise ValueError(TOO_FEW_KEYS)
        made = self._key_serializer(key)
        return made if made is None or isinstance(made, bytes) else _serialized("key", made)

    def _value_bytes(self, value: object) -> bytes | None:
        if self._value_serializer is None:
            if value is None or isinstance(value, bytes):
                return value
            return _to_bytes("value", value)
        made = self._value_serializer(value)
        return made if made is None or isinstance(made, bytes) else _serialized("value", made)


def _wall_ms() -> i64:
    return i64(int(wall_clock() * 1000.0))


def _serialized(what: str, made: object) -> bytes:
    if isinstance(made, (bytearray, memoryview)):
        return bytes(made)
    raise TypeError(f"The {what}_serializer made {kind_of(made)} of the {what}: it has to make bytes or None.")


def _header_list(headers: object) -> Headers:
    items: Iterable[Any]
    if isinstance(headers, Mapping):
        items = headers.items()
    elif isinstance(headers, Iterable) and not isinstance(headers, (str, bytes)):
        items = headers
    else:
        raise TypeError(f"The headers are {kind_of(headers)}: give a dict, or a list of pairs of a name and a value.")
    found: Headers = []
    for item in items:
        if not isinstance(item, (tuple, list)) or len(item) != 2 or not isinstance(item[0], str):
            raise TypeError(f"A header is a pair of a name as text and a value, not {item!r}.")
        value: object = item[1]
        if value is not None and not isinstance(value, bytes):
            value = _to_bytes(f"value of the header {item[0]}", value, "")
        found.append((item[0], value))
    return found


def _new_accumulator(config: settings.ClientConfig, idempotent: bool, meter: ProduceMeter) -> Accumulator:
    name = config.get_text("compression.type")
    linger_ms = config.get_int("linger.ms")
    timeout_ms = config.get_int("delivery.timeout.ms")
    if timeout_ms < linger_ms + config.get_int("request.timeout.ms"):
        if "delivery.timeout.ms" in config.given:
            raise ConfigError("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
        timeout_ms = min(linger_ms + config.get_int("request.timeout.ms"), INT_MAX)
    return Accumulator(
        batch_bytes=config.get_int("batch.size"),
        linger_ms=linger_ms,
        delivery_timeout_ms=timeout_ms,
        retries=config.get_int("retries"),
        request_bytes_max=config.get_int("max.request.size"),
        codec=CODECS[name],
        level=-1 if name in ("none", "snappy") else config.get_int(f"compression.{name}.level"),
        idempotent=idempotent,
        backoff=Backoff(config.get_int("retry.backoff.ms"), config.get_int("retry.backoff.max.ms"), random.random),
        meter=meter,
    )


def _choose_idempotence(config: settings.ClientConfig, acks: int) -> bool:
    """On by default; off where other settings exclude it, an error where it was asked for together with those."""
    wanted = config.get_bool("enable.idempotence")
    if not wanted:
        return False
    obstacles = []
    if acks != -1:
        obstacles.append("acks must be all")
    if config.get_int("retries") == 0:
        obstacles.append("retries must be above 0")
    if config.get_int("max.in.flight.requests.per.connection") > 5:
        obstacles.append("max.in.flight.requests.per.connection must be at most 5")
    if obstacles and "enable.idempotence" in config.given:
        raise ConfigError(f"An idempotent producer needs other settings: {', '.join(obstacles)}.")
    return not obstacles


def _to_bytes(what: str, value: object, other_way: str = ", or set {}_serializer") -> bytes:
    if value is NO_KEY:
        raise ValueError(TOO_FEW_KEYS)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"The {what} is {kind_of(value)}: give bytes, text or None{other_way.format(what)}.")
