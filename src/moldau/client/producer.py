"""The producer: send() returns a future, a thread of its own batches, sends and tries again.

The user's thread appends under one lock; the sender thread owns the cluster and the network, takes batches out under
the same lock, and sends without it. What is sent when, and in which order, is decided in the accumulator.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from moldau.client import config as settings
from moldau.client.accumulator import Accumulator, Batch, record_bytes_max
from moldau.client.backoff import Backoff
from moldau.client.cluster import Cluster, TopicMetadata
from moldau.client.delivery import Callback, DeliveryFuture
from moldau.client.errors import (
    ClientError,
    ClosedError,
    ConfigError,
    NetworkError,
    NoBrokerError,
    RequestTimeoutError,
    error_for,
)
from moldau.client.partitioner import StickyPartitions, partition_for_key
from moldau.client.results import Headers, RecordMetadata, TopicPartition
from moldau.client.transport import Network
from moldau.client.wire import Call
from moldau.protocol.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.builder import BatchBuilder

logger = logging.getLogger("moldau.client")

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}

# From this version on, Produce names topics by id.
PRODUCE_TOPIC_ID_VERSION = 13

Serializer = Callable[[object], bytes | None]


class Producer:
    """Sends records to topics; safe to use from several threads."""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Callable[[str, bytes | None, int], int] | None = None,
        on_batch: Callable[[TopicPartition, int, ClientError | None], None] | None = None,
        network: Network | None = None,
        first_contact_ms: int | None = None,
        config: Mapping[str, object] | None = None,
        **more: object,
    ) -> None:
        """on_batch(partition, record count, error) is called from the sender thread for each batch that is done."""
        given = {**(config or {}), **more}
        if bootstrap_servers is not None:
            given["bootstrap.servers"] = (
                bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
            )
        self._config = settings.ClientConfig(settings.PRODUCER, given)
        self._acks = ACKS[self._config.get_text("acks")]
        self._idempotent = _choose_idempotence(self._config, self._acks)
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._partitioner = partitioner
        self._on_batch = on_batch
        self._ignore_keys = self._config.get_bool("partitioner.ignore.keys")
        self._max_block_ms = self._config.get_int("max.block.ms")
        self._buffer_memory = self._config.get_int("buffer.memory")
        self._request_timeout_ms = self._config.get_int("request.timeout.ms")
        self._in_flight_max = self._config.get_int("max.in.flight.requests.per.connection")
        batch_bytes = self._config.get_int("batch.size")
        self._sticky = StickyPartitions(batch_bytes, random.randrange)
        self._cluster = Cluster(self._config, network, auto_create_topics=True, first_contact_ms=first_contact_ms)
        self._first_contact_ms = first_contact_ms
        self._started_ms = self._cluster.network.now_ms()
        self._accumulator = self._new_accumulator(batch_bytes)
        self._accumulator.on_settled = self._on_settled
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._topics: dict[str, TopicMetadata] = {}
        self._wanted_topics: set[str] = set()
        self._topic_errors: dict[str, ClientError] = {}
        self._settled: list[Batch] = []
        # Batches that are done and whose callbacks have not run yet; flush() waits for those as well.
        self._untold: set[int] = set()
        self._stale_topics: set[str] = set()
        self._metadata_not_before_ms = 0
        self._metadata_failures = 0
        self._closed = False
        self._stop_now = False
        self._fatal: ClientError | None = None
        self._thread: threading.Thread | None = None

    def _new_accumulator(self, batch_bytes: int) -> Accumulator:
        return Accumulator(
            batch_bytes,
            self._config.get_int("linger.ms"),
            self._config.get_int("delivery.timeout.ms"),
            self._config.get_int("retries"),
            self._config.get_int("max.request.size"),
            self._new_builder,
            self._idempotent,
            Backoff(
                self._config.get_int("retry.backoff.ms"), self._config.get_int("retry.backoff.max.ms"), random.random
            ),
        )

    def _new_builder(self) -> BatchBuilder:
        name = self._config.get_text("compression.type")
        level = -1 if name in ("none", "snappy") else self._config.get_int(f"compression.{name}.level")
        return BatchBuilder(codec=CODECS[name], level=level)

    # The user's side

    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | Mapping[str, bytes | None] | None = None,
        on_delivery: Callback | None = None,
    ) -> DeliveryFuture:
        """Queues one record; blocks up to max.block.ms while the topic is unknown or the buffer is full.

        on_delivery(metadata, error) is called from the sender thread, with one of the two None.
        """
        raw_key = _to_bytes("key", key, self._key_serializer)
        raw_value = _to_bytes("value", value, self._value_serializer)
        header_list = list(headers.items()) if isinstance(headers, Mapping) else headers
        size = record_bytes_max(raw_key, raw_value, header_list)
        with self._lock:
            deadline = time.monotonic() + self._max_block_ms / 1000
            metadata = self._wait_for_topic(topic, deadline)
            self._wait_for_memory(size, deadline)
            chosen = self._choose_partition(metadata, raw_key, partition, size)
            wall_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
            future, filled = self._accumulator.append(
                TopicPartition(topic, chosen), wall_ms, raw_key, raw_value, header_list, self._cluster.network.now_ms()
            )
            if on_delivery is not None:
                future.add_callback(on_delivery)
        if filled or self._accumulator.batches_held == 1:
            self._cluster.network.wake()
        return future

    def partitions_for(self, topic: str) -> list[int]:
        """The topic's partitions; blocks up to max.block.ms for its metadata."""
        with self._lock:
            metadata = self._wait_for_topic(topic, time.monotonic() + self._max_block_ms / 1000)
            return sorted(metadata.partitions)

    def flush(self, timeout: float | None = None) -> None:
        """Sends everything that was queued so far and waits until each record is delivered or has failed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            number = self._accumulator.flush()
            self._cluster.network.wake()
            while not self._accumulator.flushed(number) or any(untold <= number for untold in self._untold):
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    raise RequestTimeoutError("Not everything was delivered within the timeout of flush().")
                self._changed.wait(remaining)

    def close(self, timeout: float | None = None) -> None:
        """Delivers what is queued, for at most timeout seconds, and ends the thread; what is left then fails."""
        with self._lock:
            if self._closed and self._thread is None:
                return
            self._closed = True
            self._accumulator.flush()
            self._changed.notify_all()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._cluster.network.wake()
            thread.join(timeout)
            if thread.is_alive():
                self._stop_now = True
                self._cluster.network.wake()
                thread.join()
        self._thread = None
        self._cluster.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(None if kind is None else 0)

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedError("The producer is closed.")
        if self._fatal is not None:
            raise self._fatal
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="moldau-producer", daemon=True)
            self._thread.start()

    def _wait_for_topic(self, topic: str, deadline: float) -> TopicMetadata:
        while True:
            self._check_usable()
            found = self._topics.get(topic)
            if found is not None:
                return found
            error = self._topic_errors.get(topic)
            if error is not None and self._is_final(error):
                del self._topic_errors[topic]
                self._wanted_topics.discard(topic)
                raise error
            self._wanted_topics.add(topic)
            self._cluster.network.wake()
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self._wanted_topics.discard(topic)
                last = self._topic_errors.pop(topic, None)
                if last is not None and last.code == UNKNOWN_TOPIC_OR_PARTITION:
                    raise last
                reason = f" {last.message}" if last is not None else ""
                raise RequestTimeoutError(
                    f"Topic {topic} not present in metadata after {self._max_block_ms} ms.{reason}"
                )
            self._changed.wait(remaining)

    def _is_final(self, error: ClientError) -> bool:
        """No use in waiting: the error stays, or there is no broker and the user did not want to wait for one."""
        if isinstance(error, NoBrokerError) and self._first_contact_ms is not None and not self._cluster.brokers:
            return self._cluster.network.now_ms() - self._started_ms >= self._first_contact_ms
        return not error.retriable

    def _wait_for_memory(self, size: int, deadline: float) -> None:
        while self._accumulator.bytes_held + size > self._buffer_memory and self._accumulator.batches_held:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise RequestTimeoutError(
                    f"The buffer ({self._buffer_memory} bytes, buffer.memory) stayed full for"
                    f" {self._max_block_ms} ms (max.block.ms)."
                )
            self._cluster.network.wake()
            self._changed.wait(remaining)
            self._check_usable()

    def _choose_partition(self, metadata: TopicMetadata, key: bytes | None, given: int | None, size: int) -> int:
        count = len(metadata.partitions)
        if given is None and self._partitioner is not None:
            given = self._partitioner(metadata.name, key, count)
        if given is not None:
            if not 0 <= given < count:
                sentence = f"Topic {metadata.name} has {count} partitions, there is no partition {given}."
                raise error_for(UNKNOWN_TOPIC_OR_PARTITION, sentence)
            return given
        if key is not None and not self._ignore_keys:
            return partition_for_key(key, count)
        available = [item.partition for item in metadata.partitions.values() if item.leader >= 0]
        return self._sticky.partition(metadata.name, available or sorted(metadata.partitions), size)

    # The sender thread

    def _run(self) -> None:
        try:
            while not self._finished():
                self._step()
        except Exception as error:
            logger.exception("The producer's sender stopped; records that wait now fail.")
            self._end(ClientError(-1, f"The producer stopped because of an unexpected error: {error!r}"))
            return
        self._end(ClosedError("The producer was closed before the record was delivered."))

    def _finished(self) -> bool:
        with self._lock:
            return self._stop_now or (self._closed and self._accumulator.batches_held == 0)

    def _end(self, error: ClientError) -> None:
        with self._lock:
            self._accumulator.fail_all(error)
            if not self._closed:
                self._fatal = error
        self._tell_settled()

    def _step(self) -> None:
        self._learn_topics()
        if self._lacks_producer_id():
            self._ask_producer_id()
        network = self._cluster.network
        now_ms = network.now_ms()
        with self._lock:
            self._accumulator.expire(now_ms)
            requests: dict[int, list[Batch]] = {}
            if not self._idempotent or self._accumulator.producer_id >= 0:
                requests = self._accumulator.drain(now_ms, self._leader_of, self._has_room)
        for leader, batches in requests.items():
            self._send(leader, batches)
        self._tell_settled()
        with self._lock:
            wait_ms = 0 if requests else max(0, self._accumulator.next_deadline_ms(now_ms) - now_ms)
            if self._topics_to_ask() or self._lacks_producer_id():
                wait_ms = min(wait_ms, max(0, self._metadata_not_before_ms - now_ms))
        network.poll(wait_ms)
        self._tell_settled()

    def _lacks_producer_id(self) -> bool:
        return self._idempotent and self._accumulator.producer_id < 0 and self._accumulator.batches_held > 0

    def _topics_to_ask(self) -> set[str]:
        wanted = self._wanted_topics | self._stale_topics
        for partition in self._accumulator.partitions_waiting():
            if self._cluster.is_old(partition.topic) or self._cluster.leader(partition) is None:
                wanted.add(partition.topic)
        return wanted

    def _learn_topics(self) -> None:
        """Asks for metadata that is missing or old, one question at a time with growing pauses after failures."""
        now_ms = self._cluster.network.now_ms()
        with self._lock:
            asked = self._topics_to_ask()
        if not asked or now_ms < self._metadata_not_before_ms:
            return
        problem: ClientError | None = None
        try:
            self._cluster.refresh(sorted(asked), self._request_timeout_ms, tries=1)
        except ClientError as error:
            problem = error
        with self._lock:
            self._on_topics(asked, problem)
            self._changed.notify_all()

    def _on_topics(self, asked: set[str], problem: ClientError | None) -> None:
        missing = False
        for topic in asked:
            found = self._cluster.topics.get(topic)
            error = problem or self._cluster.topic_error(topic)
            if problem is None and found is not None and found.partitions:
                self._topics[topic] = found
                self._topic_errors.pop(topic, None)
                self._wanted_topics.discard(topic)
                self._stale_topics.discard(topic)
                missing = missing or any(item.leader < 0 for item in found.partitions.values())
            else:
                missing = True
                if error is not None:
                    self._topic_errors[topic] = error
        self._metadata_failures = self._metadata_failures + 1 if missing else 0
        delay_ms = self._cluster.backoff.delay_ms(self._metadata_failures) if missing else 0
        self._metadata_not_before_ms = self._cluster.network.now_ms() + delay_ms

    def _ask_producer_id(self) -> None:
        if self._cluster.network.now_ms() < self._metadata_not_before_ms:
            return
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=self._request_timeout_ms)
        try:
            answer = self._cluster.call(
                request, InitProducerIdResponse, self._request_timeout_ms, tries=1, highest_version=5
            )
        except (NetworkError, RequestTimeoutError):
            answer = None
        with self._lock:
            if answer is not None and answer.error_code == NONE:
                self._accumulator.producer_id = answer.producer_id
                self._accumulator.first_epoch = answer.producer_epoch
                return
            error = None if answer is None else error_for(answer.error_code)
            if error is not None and not error.retriable:
                self._fatal = error
                self._accumulator.fail_all(error)
                self._changed.notify_all()
                return
            self._metadata_failures += 1
            delay_ms = self._cluster.backoff.delay_ms(self._metadata_failures)
            self._metadata_not_before_ms = self._cluster.network.now_ms() + delay_ms

    def _leader_of(self, partition: TopicPartition) -> int | None:
        if partition.topic in self._stale_topics:
            return None
        found = self._cluster.leader(partition)
        return None if found is None else found.leader

    def _has_room(self, leader: int) -> bool:
        return self._cluster.network.in_flight_count(self._cluster.broker_address(leader)) < self._in_flight_max

    def _send(self, leader: int, batches: list[Batch]) -> None:
        topics: dict[str, TopicProduceData] = {}
        highest: int | None = None
        for batch in batches:
            name = batch.partition.topic
            data = topics.get(name)
            if data is None:
                topic_id = self._cluster.topics[name].topic_id
                if topic_id == ZERO_UUID:
                    highest = PRODUCE_TOPIC_ID_VERSION - 1
                data = topics[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            assert batch.data is not None
            records = MemoryRecords(batch.data, 0, len(batch.data))
            data.partition_data.append(PartitionProduceData(index=batch.partition.partition, records=records))
        request = ProduceRequest(
            transactional_id=None,
            acks=self._acks,
            timeout_ms=self._request_timeout_ms,
            topic_data=list(topics.values()),
        )

        def on_done(call: Call[ProduceResponse]) -> None:
            self._on_answer(call, batches)

        call = Call(request, ProduceResponse, self._request_timeout_ms, highest, self._acks != 0, on_done)
        self._cluster.network.submit(self._cluster.broker_address(leader), call)

    def _on_answer(self, call: Call[ProduceResponse], batches: list[Batch]) -> None:
        """Runs in the sender thread, inside of submit or poll."""
        now_ms = self._cluster.network.now_ms()
        answers = {} if call.error is not None or self._acks == 0 else self._by_partition(call.answer())
        with self._lock:
            for batch in batches:
                if not self._accumulator.is_in_flight(batch):
                    continue
                row = answers.get(batch.partition)
                if call.error is not None:
                    self._on_error(batch, call.error, now_ms)
                elif self._acks == 0:
                    self._accumulator.on_success(batch, -1, -1)
                elif row is None:
                    self._on_error(batch, NetworkError("The broker's answer leaves the batch out."), now_ms)
                elif row.error_code == NONE:
                    self._accumulator.on_success(batch, row.base_offset, row.log_append_time_ms)
                else:
                    self._on_error(batch, error_for(row.error_code, row.error_message), now_ms)

    def _by_partition(self, answer: ProduceResponse) -> dict[TopicPartition, PartitionProduceResponse]:
        rows: dict[TopicPartition, PartitionProduceResponse] = {}
        for topic in answer.responses:
            name = topic.name or self._cluster.topic_name(topic.topic_id) or ""
            for row in topic.partition_responses:
                rows[TopicPartition(name, row.index)] = row
        return rows

    def _on_error(self, batch: Batch, error: ClientError, now_ms: int) -> None:
        logger.debug("batch for %s failed: %s", batch.partition, error)
        if error.refresh_metadata:
            self._stale_topics.add(batch.partition.topic)
        self._accumulator.on_error(batch, error, now_ms)

    def _on_settled(self, batch: Batch) -> None:
        self._settled.append(batch)
        self._untold.add(batch.number)

    def _tell_settled(self) -> None:
        """Runs callbacks without the lock, then wakes those who wait for memory or a flush."""
        with self._lock:
            settled, self._settled = self._settled, []
        for batch in settled:
            if self._on_batch is not None:
                self._on_batch(batch.partition, batch.count, batch.fate.error)
            for future, callback in batch.fate.callbacks:
                _call_back(future, callback)
        if settled:
            with self._lock:
                self._untold.difference_update(batch.number for batch in settled)
                self._changed.notify_all()


def _call_back(future: DeliveryFuture, callback: Callback) -> None:
    error = future.exception(0)
    metadata: RecordMetadata | None = None if error is not None else future.result(0)
    try:
        callback(metadata, error)
    except Exception:
        logger.exception("A delivery callback failed; the producer goes on.")


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


def _to_bytes(what: str, value: object, serializer: Serializer | None) -> bytes | None:
    if serializer is not None:
        return serializer(value)
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"The {what} is a {type(value).__name__}: give bytes, text or None, or set {what}_serializer.")
