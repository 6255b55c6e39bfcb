"""The producer's other half: a thread that learns metadata, sends batches, takes responses and tries again.

The user's threads append to the accumulator under one lock; this thread owns the cluster and the network, takes batches
out under the same lock, and sends without it. It never waits for one response alone: metadata, producer ids and batches
are all asked for in passing, so that a broker that is silent holds up nobody else.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from librt.threading import Lock
from mypy_extensions import i64

from moldau.client.connection.cluster import Cluster
from moldau.client.connection.wire import Call
from moldau.client.errors import ClientError, ClosedError, NetworkError, ProtocolError, RequestTimeoutError, error_for
from moldau.client.produce.accumulator import Accumulator, Batch
from moldau.client.produce.delivery import Callback, DeliveryFuture
from moldau.client.produce.partitioner import TopicState
from moldau.client.results import RecordMetadata, TopicPartition
from moldau.protocol.errors import CONCURRENT_TRANSACTIONS, NONE, PRODUCER_FENCED
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from moldau.protocol.records_data import FileRecords
from moldau.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from moldau.client.produce.transaction_session import TransactionSession

logger = logging.getLogger("moldau.client")

# From this version on, Produce names topics by id.
PRODUCE_TOPIC_ID_VERSION: Final = 13
# The last one that means transaction version 1 to a broker: partitions are added to the transaction before.
PRODUCE_TRANSACTION_VERSION_1: Final = 11
# While the markers of the last transaction are being written, a batch of the next one is refused: that is soon over.
CONCURRENT_BACKOFF_MS: Final = 20

OnBatch = Callable[[TopicPartition, int, ClientError | None], None]


class ProduceCall(Call[ProduceResponse]):
    """A produce request and the batches that it carries."""

    def __init__(
        self,
        request: ProduceRequest,
        timeout_ms: int,
        highest_version: int | None,
        expects_response: bool,
        when_done: Callable[[Call[ProduceResponse]], None],
        batches: list[Batch],
    ) -> None:
        super().__init__(request, ProduceResponse, timeout_ms, highest_version, expects_response, when_done)
        self.batches: list[Batch] = batches


class Sender:
    """Shares the accumulator, the known topics and a lock with the producer's face."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        *,
        acks: int,
        idempotent: bool,
        request_timeout_ms: int,
        in_flight_max: int,
        batch_bytes: int,
        adaptive: bool,
        availability_timeout_ms: int,
        on_batch: OnBatch | None,
        transactions: TransactionSession | None = None,
    ) -> None:
        self.cluster: Cluster = cluster
        self.accumulator: Accumulator = accumulator
        self._acks: int = acks
        self._idempotent: bool = idempotent
        self._request_timeout_ms: int = request_timeout_ms
        self._in_flight_max: int = in_flight_max
        self._batch_bytes: int = batch_bytes
        self._adaptive: bool = adaptive
        # KIP-794: for how long a leader may take nothing before its partitions are avoided; 0 is for ever.
        self._availability_timeout_ms: int = availability_timeout_ms if adaptive else 0
        # Since when each leader for which batches wait has taken none, and the leaders that are avoided therefore.
        self._blocked_since_ms: dict[int, int] = {}
        self._avoided: set[int] = set()
        self._on_batch: OnBatch | None = on_batch
        self.lock: Lock = Lock()
        # A condition needs no more of a lock than to be taken and released.
        self.changed: threading.Condition = threading.Condition(cast("threading.Lock", self.lock))
        self.topics: dict[str, TopicState] = {}
        self.wanted_topics: set[str] = set()
        self.topic_errors: dict[str, ClientError] = {}
        self.closed: bool = False
        self.stop_now: bool = False
        self.fatal: ClientError | None = None
        # Batches that are done and whose callbacks have not run yet; flush() waits for those as well.
        self.untold: set[int] = set()
        self._settled: list[Batch] = []
        self._stale_topics: set[str] = set()
        self._asking_metadata: bool = False
        self._asking_producer_id: bool = False
        self._not_before_ms: int = 0
        self._failures: int = 0
        self.thread: threading.Thread | None = None
        accumulator.on_settled = self._on_settled
        self.transactions: TransactionSession | None = transactions
        if transactions is not None:
            transactions.bind(self.lock, self.changed)

    # For the user's threads, under the lock

    def check_usable(self) -> None:
        """Raises unless records may be sent."""
        self.start()
        if self.transactions is not None:
            self.transactions.manager.check_sending()
        self.accumulator.unusable = False

    def start(self) -> None:
        """Starts the thread, unless the producer is of no use any more, which raises."""
        if self.closed:
            raise ClosedError("The producer is closed.")
        if self.fatal is not None:
            raise self.fatal
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="moldau-producer", daemon=True)
            self.thread.start()

    def has_untold(self, number: int) -> bool:
        return any(untold <= number for untold in self.untold)

    def wake(self) -> None:
        """Makes the thread look again, if it does not look anyway."""
        if self.accumulator.sender_asleep:
            self.accumulator.sender_asleep = False
            self.cluster.network.wake()

    def close(self, timeout_s: float | None) -> None:
        """Not under the lock."""
        with self.lock:
            if self.closed and self.thread is None:
                return
            self.closed = self.accumulator.unusable = True
            if self.transactions is not None:
                self.transactions.close()
            self.accumulator.flush()
            self.changed.notify_all()
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            self.cluster.network.wake()
            thread.join(timeout_s)
            if thread.is_alive():
                self.stop_now = True
                self.cluster.network.wake()
                thread.join()
        self.thread = None
        self.cluster.close()

    # The thread

    def _run(self) -> None:
        try:
            while not self._finished():
                self.step()
        except Exception as error:
            logger.exception("The producer's sender thread failed; records in its buffer are not delivered.")
            self._end(ClientError(-1, f"The producer stopped because of an unexpected error: {error!r}"))
            return
        self._end(ClosedError("The producer was closed before the record was delivered."))

    def _finished(self) -> bool:
        with self.lock:
            return self._finished_unlocked()

    def _end(self, error: ClientError) -> None:
        with self.lock:
            self.accumulator.fail_all(error)
            if not self.closed:
                self._fail(error)
            if self.transactions is not None:
                self.transactions.fail(error)
        self._tell_settled()

    def _fail(self, error: ClientError) -> None:
        """The producer is of no further use."""
        self.fatal = error
        self.accumulator.unusable = True

    def step(self) -> None:
        """Sends what may be sent now, then waits for something to happen."""
        network = self.cluster.network
        self._learn_topics()
        if self._lacks_producer_id():
            self._ask_producer_id()
        now_ms = network.now_ms()
        if self.transactions is not None:
            self._step_transactions(now_ms)
        with self.lock:
            self.accumulator.expire(now_ms)
            if self._availability_timeout_ms > 0:
                self._avoid_blocked_leaders(now_ms)
        while self._drain(now_ms):
            pass
        self._tell_settled()
        with self.lock:
            wait_ms = 0 if self.accumulator.news or self._finished_unlocked() else self._wait_ms(now_ms)
            self.accumulator.sender_asleep = wait_ms > 0
        network.poll(wait_ms)
        self.accumulator.sender_asleep = False
        self._tell_settled()

    def _step_transactions(self, now_ms: int) -> None:
        assert self.transactions is not None
        self.transactions.step(now_ms)
        error = self.transactions.fatal
        if error is not None and self.fatal is None:
            with self.lock:
                self._fail(error)
                self.accumulator.fail_all(error)
                self.changed.notify_all()

    def _wait_ms(self, now_ms: int) -> int:
        """For how long there is nothing to do without a response or a record."""
        wait_ms = max(0, self.accumulator.next_deadline_ms(now_ms) - now_ms)
        if self._has_questions():
            wait_ms = min(wait_ms, max(1, self._not_before_ms - now_ms))
        if self._availability_timeout_ms > 0:
            wait_ms = min(wait_ms, self._until_avoided_ms(now_ms))
        if self.transactions is not None:
            wait_ms = self.transactions.wait_ms(wait_ms, now_ms)
        return wait_ms

    def _finished_unlocked(self) -> bool:
        if self.stop_now or not self.closed or self.accumulator.batches_held > 0:
            return self.stop_now
        return self.transactions is None or not self.transactions.busy()

    def _drain(self, now_ms: int) -> bool:
        with self.lock:
            self.accumulator.news = False  # what comes later is missed by what follows
            if self._idempotent and self.accumulator.producer_id < 0:
                return False
            requests = self.accumulator.drain(now_ms, self._leader_of, self._has_room)
        for leader, batches in requests.items():
            self._send(leader, batches, now_ms)
        return bool(requests)

    # Metadata and producer id

    def _lacks_producer_id(self) -> bool:
        if not self._idempotent or self.transactions is not None:
            return False
        return self.accumulator.producer_id < 0 and self.accumulator.batches_held > 0

    def _has_questions(self) -> bool:
        """Whether something is to be asked that is not being asked already."""
        if not self._asking_producer_id and self._lacks_producer_id():
            return True
        return not self._asking_metadata and bool(self._topics_to_ask())

    def _topics_to_ask(self) -> set[str]:
        wanted = self.wanted_topics | self._stale_topics
        seen = ""
        for partition in self.accumulator.partitions_waiting():
            topic = partition.topic
            if (topic != seen and self.cluster.is_old(topic)) or self.cluster.leader(partition) is None:
                wanted.add(topic)
            seen = topic
        return wanted

    def _learn_topics(self) -> None:
        """Asks for metadata that is missing or old, one question at a time with growing pauses after failures."""
        if self._asking_metadata or self.cluster.network.now_ms() < self._not_before_ms:
            return
        with self.lock:
            topics = self._topics_to_ask()
        if not topics:
            return
        asked = sorted(topics)
        self._asking_metadata = True
        self.cluster.start_refresh(asked, self._request_timeout_ms, partial(self._on_metadata, asked))

    def _on_metadata(self, asked: list[str], problem: ClientError | None) -> None:
        self._asking_metadata = False
        with self.lock:
            self._on_topics(asked, problem)
            self.changed.notify_all()

    def _on_topics(self, asked: list[str], problem: ClientError | None) -> None:
        missing = False
        for topic in asked:
            found = self.cluster.topics.get(topic)
            error = problem or self.cluster.topic_error(topic)
            if problem is None and found is not None and found.partitions:
                self._keep_topic(topic)
                missing = missing or any(item.leader < 0 for item in found.partitions.values())
            else:
                missing = True
                if error is not None:
                    self.topic_errors[topic] = error
        self._pause(missing)

    def _keep_topic(self, name: str) -> None:
        count = len(self.cluster.topics[name].partitions)
        state = self.topics.get(name)
        if state is None:
            state = self.topics[name] = TopicState(name, [], self._batch_bytes, self._adaptive, random.randrange)
        if len(state.queues) != count:
            state.queues = [self.accumulator.queue(TopicPartition(name, index)) for index in range(count)]
        self._set_available(state)
        self.topic_errors.pop(name, None)
        self.wanted_topics.discard(name)
        self._stale_topics.discard(name)

    def _set_available(self, state: TopicState) -> None:
        """The partitions with a leader, without those that are avoided unless all of them are."""
        found = self.cluster.topics.get(state.name)
        if found is None:
            return
        led = [row for index, row in sorted(found.partitions.items()) if row.leader >= 0 and index < len(state.queues)]
        chosen = [row for row in led if row.leader not in self._avoided]
        state.set_available([row.partition for row in chosen or led])

    def _pause(self, failed: bool) -> None:
        self._failures = self._failures + 1 if failed else 0
        delay_ms = self.cluster.backoff.delay_ms(self._failures) if failed else 0
        self._not_before_ms = self.cluster.network.now_ms() + delay_ms

    def _ask_producer_id(self) -> None:
        if self._asking_producer_id or self.cluster.network.now_ms() < self._not_before_ms:
            return
        self._asking_producer_id = True
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=self._request_timeout_ms)
        self.cluster.start_call(
            request,
            InitProducerIdResponse,
            self._request_timeout_ms,
            self._on_producer_id,
            highest_version=5,
            refuses=_cannot_now,
        )

    def _on_producer_id(self, response: InitProducerIdResponse | None, error: ClientError | None) -> None:
        self._asking_producer_id = False
        with self.lock:
            if response is not None and response.error_code != NONE:
                error = error_for(response.error_code)
            if error is not None:
                self._pause(True)
                if not error.retriable:
                    self._fail(error)
                    self.accumulator.fail_all(error)
                    self.changed.notify_all()
            elif response is not None:
                self.accumulator.producer_id = response.producer_id
                self.accumulator.first_epoch = response.producer_epoch

    # Batches

    def _leader_of(self, partition: TopicPartition) -> int | None:
        if partition.topic in self._stale_topics:
            return None
        if self.transactions is not None and not self.transactions.may_send(partition):
            return None
        found = self.cluster.leader(partition)
        return None if found is None else found.leader

    def _has_room(self, leader: int) -> bool:
        network, address = self.cluster.network, self.cluster.broker_address(leader)
        return network.in_flight_count(address) < self._in_flight_max and network.throttled_ms(address) == 0

    def _is_connected(self, leader: int) -> bool:
        return self.cluster.network.is_ready(self.cluster.broker_address(leader))

    def _known_leader(self, partition: TopicPartition) -> int | None:
        """The leader, also while newer metadata is asked for."""
        found = self.cluster.leader(partition)
        return None if found is None else found.leader

    def _avoid_blocked_leaders(self, now_ms: int) -> None:
        """A leader that takes nothing for too long gets no records without a key until it takes some again."""
        blocked = self.accumulator.blocked_leaders(now_ms, self._known_leader, self._is_connected, self._has_room)
        self._blocked_since_ms = {leader: self._blocked_since_ms.get(leader, now_ms) for leader in blocked}
        avoided = {
            leader
            for leader, since_ms in self._blocked_since_ms.items()
            if now_ms - since_ms > self._availability_timeout_ms
        }
        if avoided != self._avoided:
            self._avoided = avoided
            for state in self.topics.values():
                self._set_available(state)

    def _until_avoided_ms(self, now_ms: int) -> int:
        """When a leader that is blocked now would be avoided."""
        times = [since for leader, since in self._blocked_since_ms.items() if leader not in self._avoided]
        return max(1, min(times, default=now_ms + 3_600_000) + self._availability_timeout_ms + 1 - now_ms)

    def _send(self, leader: int, batches: list[Batch], now_ms: int) -> None:
        meter = self.accumulator.meter
        meter.window.tick(now_ms)
        records_count: i64 = 0
        topics: dict[str, TopicProduceData] = {}
        highest: int | None = None
        for batch in batches:
            name = batch.partition.topic
            data = topics.get(name)
            if data is None:
                topic_id = self.cluster.topics[name].topic_id
                if topic_id == ZERO_UUID:
                    highest = PRODUCE_TOPIC_ID_VERSION - 1
                data = topics[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            encoded = self.accumulator.encode(batch)
            size = sum(map(len, encoded))
            records = FileRecords(encoded, 0, size)
            self.accumulator.count_sent(batch, size, now_ms)
            records_count += batch.buffer.records_count
            data.partition_data.append(PartitionProduceData(index=batch.partition.partition, records=records))
        meter.requests.record(records_count)
        transactional_id: str | None = None
        if self.transactions is not None:
            manager = self.transactions.manager
            transactional_id = manager.transactional_id
            if not manager.version_2:
                highest = PRODUCE_TRANSACTION_VERSION_1
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=self._acks,
            timeout_ms=self._request_timeout_ms,
            topic_data=list(topics.values()),
        )

        call = ProduceCall(request, self._request_timeout_ms, highest, self._acks != 0, self._on_response, batches)
        self.cluster.submit(self.cluster.broker_address(leader), call)

    def _on_response(self, call: Call[ProduceResponse]) -> None:
        """Runs in the sender thread, inside of submit or poll."""
        assert isinstance(call, ProduceCall)
        now_ms = self.cluster.network.now_ms()
        self.accumulator.meter.window.tick(now_ms)
        responses = {} if call.error is not None or self._acks == 0 else self._by_partition(call.response())
        with self.lock:
            for batch in call.batches:
                if not batch.in_flight:
                    continue
                row = responses.get(batch.partition)
                if call.error is not None:
                    self._on_error(batch, call.error, now_ms)
                elif self._acks == 0:
                    self.accumulator.on_success(batch, -1, -1)
                elif row is None:
                    self._on_error(batch, NetworkError("The broker's response leaves the batch out."), now_ms)
                elif row.error_code == NONE:
                    self.accumulator.on_success(batch, row.base_offset, row.log_append_time_ms)
                else:
                    self._on_refusal(batch, row, call.response(), now_ms)

    def _by_partition(self, response: ProduceResponse) -> dict[TopicPartition, PartitionProduceResponse]:
        rows: dict[TopicPartition, PartitionProduceResponse] = {}
        for topic in response.responses:
            name = topic.name or self.cluster.topic_name(topic.topic_id) or ""
            for row in topic.partition_responses:
                rows[TopicPartition(name, row.index)] = row
        return rows

    def _on_refusal(self, batch: Batch, row: PartitionProduceResponse, response: ProduceResponse, now_ms: int) -> None:
        """KIP-951: a response from the wrong broker may name the right one, and no metadata is needed then."""
        error = error_for(row.error_code, row.error_message)
        hint = row.current_leader
        for node in response.node_endpoints:
            self.cluster.learn_broker(node.node_id, node.host, node.port, node.rack)
        if error.refresh_metadata and self.cluster.learn_leader(batch.partition, hint.leader_id, hint.leader_epoch):
            self.accumulator.on_error(batch, error, now_ms)
            batch.not_before_ms = now_ms
        else:
            self._on_error(batch, error, now_ms)

    def _on_error(self, batch: Batch, error: ClientError, now_ms: int) -> None:
        logger.debug("batch for %s failed: %s", batch.partition, error)
        if isinstance(error, ProtocolError):
            error = NetworkError(error.message)  # the batch was not sent; what listens there may be a broker again soon
        if error.refresh_metadata or isinstance(error, RequestTimeoutError):
            # A leader that does not respond may hang while another has taken its place.
            self._stale_topics.add(batch.partition.topic)
        if error.code == PRODUCER_FENCED:
            self._fail(error)
        self.accumulator.on_error(batch, error, now_ms)
        if error.code == CONCURRENT_TRANSACTIONS:
            batch.not_before_ms = now_ms + CONCURRENT_BACKOFF_MS

    # Those who wait

    def _on_settled(self, batch: Batch) -> None:
        self._settled.append(batch)
        self.untold.add(batch.number)
        if self.transactions is not None and batch.fate.error is not None:
            self.transactions.on_batch_failed(batch.fate.error)

    def _tell_settled(self) -> None:
        """Runs callbacks without the lock, then wakes those who wait for memory or a flush."""
        if not self._settled:
            return
        with self.lock:
            settled = self._settled
            self._settled = []
        for batch in settled:
            if self._on_batch is not None:
                self._on_batch(batch.partition, batch.count, batch.fate.error)
            for future, callback in batch.fate.callbacks:
                _call_back(future, callback)
            batch.fate.callbacks = []
        with self.lock:
            self.untold.difference_update(batch.number for batch in settled)
            self.changed.notify_all()


def _cannot_now(response: InitProducerIdResponse) -> bool:
    """Another broker may have producer ids left, or a way to the controller."""
    return response.error_code != NONE and error_for(response.error_code).retriable


def _call_back(future: DeliveryFuture, callback: Callback) -> None:
    error = future.exception()  # its batch is done
    metadata: RecordMetadata | None = None if error is not None else future.result()
    try:
        callback(metadata, error)
    except Exception:
        logger.exception("A delivery callback failed; the producer goes on.")
