"""The share consumer: records of a share group, each locked for one member until that says what became of it.

poll() gives records, acknowledge() says what became of each, and the next poll() or a commit takes that to the brokers.
Nothing is fetched ahead: what waits here is locked and can be done by nobody else. A thread of its own keeps the member
alive between two polls, and renews locks where processing() was asked to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from moldau.client import config as settings
from moldau.client.arguments import checked_names, kind_of
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import (
    ClientError,
    ClosedError,
    RecordDeserializationError,
    RequestTimeoutError,
    WakeupError,
    error_for,
)
from moldau.client.group.gate import Gate
from moldau.client.group.heartbeat import HeartbeatThread
from moldau.client.group.membership import FOREVER_MS, new_member_id
from moldau.client.group.network import DrivenNetwork
from moldau.client.metrics.reading import PollMeter, ShareMeter
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.client.share.acknowledgements import Acknowledgements, AcknowledgeType, Held, SharePartition
from moldau.client.share.fetcher import Delivery, ShareFetcher
from moldau.client.share.group import ShareGroup
from moldau.client.share.membership import ShareMembership
from moldau.client.share.processing import Kinds, Processing
from moldau.client.share.requests import BATCH_OPTIMIZED, RECORD_LIMIT, ShareFetchSettings, ShareRequests
from moldau.client.telemetry.watch import Telemetry
from moldau.client.wiring import wiring_of
from moldau.protocol.errors import INVALID_GROUP_ID, INVALID_REQUEST

if TYPE_CHECKING:
    from typing import Unpack

    from moldau.client.metrics.names import Metrics
    from moldau.client.setting_types import ShareConsumerSettings

__all__ = ["AcknowledgeType", "ShareConsumer"]

logger = logging.getLogger("moldau.client")

CLOSE_TIMEOUT_MS = 30_000
# What processing() decided goes out after so long, with everything that was decided meanwhile.
LINGER_MS = 100

P = ParamSpec("P")
R = TypeVar("R")

AcknowledgementCallback = Callable[[dict[TopicPartition, set[int]], ClientError | None], object]


def _inside(method: Callable[Concatenate[ShareConsumer, P], R]) -> Callable[Concatenate[ShareConsumer, P], R]:
    """A method that the heartbeat thread must not come in between of."""

    @wraps(method)
    def run(self: ShareConsumer, /, *arguments: P.args, **more: P.kwargs) -> R:
        with self._gate:
            return method(self, *arguments, **more)

    return run


class ShareConsumer:
    """Works on records together with the other members of a share group, as on a queue; to be used by one thread.

    A record is locked for the member that poll() gave it to, until that acknowledges it: accepts it, releases it for
    another try, or rejects it. A thread of its own keeps the member alive between two polls.

    bootstrap_servers: "host:port,host:port", a list of those, or a mapping of settings by Kafka's names.
    key_deserializer, value_deserializer: make record.key and record.value of the bytes, or of None. on_acknowledged:
    see set_acknowledgement_callback(). The other keywords are settings, with `_` for `.`, which config takes as is;
    moldau.client.setting_types.ShareConsumerSettings has them. group_id is required.

    Raises ConfigError for a setting that does not exist, and InvalidGroupIdError without a group.id.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        key_deserializer: Callable[[bytes | None], Any] | None = None,
        value_deserializer: Callable[[bytes | None], Any] | None = None,
        on_acknowledged: AcknowledgementCallback | None = None,
        config: Mapping[str, object] | None = None,
        **more: Unpack[ShareConsumerSettings],
    ) -> None:
        read = settings.read(settings.SHARE_CONSUMER, bootstrap_servers, config, more)
        group_id = read.get_optional("group.id")
        if group_id is None or not group_id.strip():
            raise error_for(INVALID_GROUP_ID, "A share consumer needs the setting group.id, which must not be blank.")
        self._group_id = group_id
        self._config = read
        self._started_wall_ms = time.time_ns() // 1_000_000
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._callback = on_acknowledged
        self._explicit = read.get_text("share.acknowledgement.mode") == "explicit"
        self._max_poll_records = read.get_int("max.poll.records")
        self._request_timeout_ms = read.get_int("request.timeout.ms")
        self._api_timeout_ms = read.get_int("default.api.timeout.ms")
        wiring = wiring_of(config)
        self._cluster = Cluster(
            read,
            wiring.network,
            auto_create_topics=read.get_bool("allow.auto.create.topics"),
            first_contact_ms=wiring.first_contact_ms,
        )
        self._telemetry = Telemetry(read, self._cluster, self.metrics)
        member_id = new_member_id()
        self._group = ShareGroup(
            self._cluster,
            group_id,
            ShareMembership(
                group_id,
                member_id,
                self._cluster.backoff,
                read.get_text("client.rack") or None,
                read.get_int("max.poll.interval.ms"),
            ),
            self._request_timeout_ms,
            read.get_int("metadata.max.age.ms"),
            self._on_assignment,
        )
        self._fetcher = ShareFetcher(read.get_bool("check.crcs"))
        self._meter = ShareMeter(self._cluster.window)
        self._poll_meter = PollMeter(self._cluster.window)
        limited = read.get_text("share.acquire.mode") == "record_limit"
        self._requests = ShareRequests(
            self._cluster,
            self._fetcher,
            ShareFetchSettings(
                group_id,
                member_id,
                read.get_int("fetch.max.wait.ms"),
                read.get_int("fetch.min.bytes"),
                read.get_int("fetch.max.bytes"),
                self._max_poll_records,
                RECORD_LIMIT if limited else BATCH_OPTIMIZED,
                self._request_timeout_ms,
            ),
            self._group.topics.stale,
            self._on_finished,
            self._meter,
        )
        self._cluster.network = DrivenNetwork(self._cluster.network, self._drive, self._until_due_ms)
        self._gate = Gate(self._cluster.network.wake)
        self._wants_thread = wiring.wants_heartbeat_thread
        self._thread: HeartbeatThread | None = None
        # The records of the last poll() that nothing was sent about yet.
        self._held: dict[TopicPartition, Held] = {}
        # Records that are being renewed, those that are and wait for poll(), and results to tell.
        self._renewing: list[Acknowledgements] = []
        self._renewed: list[Acknowledgements] = []
        self._results: list[Acknowledgements] = []
        # What is behind a record that cannot be read, and the error to raise about that one.
        self._rest: Delivery | None = None
        self._failure: ClientError | None = None
        self._keeping = 0
        self._linger_until_ms = FOREVER_MS
        self._in_callback = False
        self._woken = False
        self._interrupted = False
        self._closing = False
        self._closed = False

    # Subscription

    @_inside
    def subscribe(self, topics: Iterable[str]) -> None:
        """Joins the group for these topics, in place of those before; poll() does the rest."""
        self._check_open()
        names = checked_names(topics, "subscribe")
        if any(not name.strip() for name in names):
            raise error_for(INVALID_REQUEST, "The name of a topic to subscribe to must not be empty.")
        if not names:
            self.unsubscribe()
            return
        self._group.subscribe(names)
        if self._thread is None and self._wants_thread:
            self._thread = HeartbeatThread(
                self._gate,
                self._cluster.network.poll,
                lambda: self._group.coordinator.in_flight > 0 or self._requests.in_flight > 0,
                self._until_due_ms,
                f"moldau-share-{self._group_id}",
            )
            self._thread.start()

    @_inside
    def unsubscribe(self) -> None:
        """Leaves the group. Records that were given and not acknowledged come to others when their locks run out."""
        self._check_open()
        self._group.leave(self._cluster.network.now_ms() + self._api_timeout_ms, "the consumer unsubscribed")

    def subscription(self) -> set[str]:
        """The topics that are subscribed to."""
        return set(self._group.subscription)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are fetched from at present; other members may fetch from them as well."""
        return [item.name for item in self._requests.partitions]

    def member_id(self) -> str:
        """The name of this consumer in its group, which it made itself."""
        return self._group.membership.member_id

    def client_instance_id(self, timeout_ms: int = 60_000) -> bytes:
        """The id by which brokers know the metrics that this consumer pushes (KIP-714); waits for it until timeout_ms.

        Raises ConfigError without enable.metrics.push, UnsupportedVersionError where brokers take no metrics, and
        RequestTimeoutError.
        """
        return self._telemetry.instance_id(timeout_ms)

    def metrics(self) -> Metrics:
        """What the consumer measures of itself, under the names of Kafka's metrics, as of now.

        A mapping of MetricName to numbers; `metrics()["records-consumed-total"]` for what the consumer has of it in
        all. Rates, averages and maxima are those of the last 30 to 60 seconds (metrics.sample.window.ms); where nothing
        happened in that time an average is not a number. docs/client-metrics.md has them all.
        """
        from moldau.client.metrics.share_consumer import share_consumer_metrics

        return share_consumer_metrics(
            self._config, self._cluster, self._meter, self._poll_meter, self._started_wall_ms, self._group.meter
        )

    # Records

    @_inside
    def poll(self, timeout_ms: int = 0) -> list[ConsumerRecord]:
        """Records that are locked for this consumer, at least one unless the timeout passes.

        share.acknowledgement.mode=implicit: the records of the poll() before are accepted by this. explicit: each of
        them must have been acknowledged. There may be more than max.poll.records where share.acquire.mode is
        batch_optimized, because batches are locked whole; record_limit keeps to it. Records that were renewed come
        again, before any others.

        Raises InvalidRequestError without a subscription and where a record is not acknowledged in the explicit mode,
        RecordDeserializationError for a record that cannot be read (it is released), and errors of authorization. A
        broker that is away is waited for, and no error.
        """
        self._check_open()
        network = self._cluster.network
        began_ms = network.now_ms()
        self._poll_meter.on_start(began_ms)
        try:
            records = self._poll_until(began_ms + timeout_ms)
        finally:
            self._poll_meter.on_end(network.now_ms())
        self._meter.records.add(len(records))
        return records

    def _poll_until(self, deadline_ms: int) -> list[ConsumerRecord]:
        network = self._cluster.network
        self._tell()
        if not self._group.subscription:
            raise error_for(INVALID_REQUEST, "This consumer is not subscribed to any topic: call subscribe() first.")
        self._hand_over()
        while True:
            self._group.on_poll(network.now_ms())
            records = self._take()
            if records:
                self._requests.wants_records = False
                network.poll(0)  # what was said of the last ones is on its way now
                return records
            self._raise_failure()
            self._requests.wants_records = not self._renewing
            self._drive()
            problem = self._group.take_problem() or self._take_request_problem()
            if problem is not None:
                raise problem
            remaining_ms = deadline_ms - network.now_ms()
            if remaining_ms <= 0 or self._woken or self._interrupted:
                self._woken = self._interrupted = False
                network.poll(0)
                self._requests.wants_records = False
                return self._take()
            network.poll(remaining_ms)
            self._tell()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records for ever, poll by poll."""
        while True:
            yield from self.poll(1000)

    def _hand_over(self) -> None:
        """What was said of the records of the last poll() goes on its way."""
        if self._explicit:
            for held in self._held.values():
                undecided = held.undecided
                if undecided:
                    raise error_for(
                        INVALID_REQUEST,
                        f"Of {len(undecided)} records of {held.partition.name}, the first at offset {undecided[0]}, it"
                        " was not said what became of them: with share.acknowledgement.mode=explicit each must be"
                        " acknowledged before the next poll().",
                    )
        self._submit_decided()

    def _submit_decided(self, deadline_ms: int = 0) -> list[Acknowledgements]:
        """Everything that was said so far, and in the implicit mode everything that was given, is to be sent."""
        submitted: list[Acknowledgements] = []
        for name, held in list(self._held.items()):
            if not self._explicit:
                held.accept_all()
            taken = held.take(deadline_ms)
            if taken is not None:
                submitted.append(taken)
                if taken.renewing:
                    self._renewing.append(taken)
                self._requests.submit(taken)
            if not held.records:
                del self._held[name]
        self._linger_until_ms = FOREVER_MS
        return submitted

    def _take(self) -> list[ConsumerRecord]:
        """The next records to give, which are held from here on."""
        if self._renewing:
            return []
        if self._renewed:
            return self._take_renewed()
        if self._requests.lock_duration_ms is not None:
            self._fetcher.drop_expired(self._cluster.network.now_ms() - self._requests.lock_duration_ms)
        taken: list[ConsumerRecord] = []
        while len(taken) < self._max_poll_records and self._failure is None:
            delivery = self._next_delivery()
            if delivery is None:
                break
            if delivery.error is not None and taken:
                self._rest = delivery  # what is before it is given first
                break
            self._hold(delivery, taken)
            if self._rest is not None:
                break
        for name, held in list(self._held.items()):
            if not held.records and not held.failed:
                # Nothing in it for the user: what is to be said of gaps goes with the next request.
                gaps = held.take()
                if gaps is not None:
                    self._requests.submit(gaps)
                del self._held[name]
        return taken

    def _next_delivery(self) -> Delivery | None:
        if self._rest is not None:
            delivery, self._rest = self._rest, None
            return delivery
        found = self._fetcher.peek()
        held = None if found is None else self._held.get(found[0].name)
        if found is None or (held is not None and (held.partition, held.node_id) != found):
            return None  # a leader moved, or a topic was created again: that is for the next poll()
        return self._fetcher.take()

    def _hold(self, delivery: Delivery, taken: list[ConsumerRecord]) -> None:
        name = delivery.partition.name
        held = self._held.get(name)
        if held is None:
            held = self._held[name] = Held(delivery.partition, delivery.node_id, delivery.locked_ms)
        held.locked_ms = min(held.locked_ms, delivery.locked_ms)
        records = delivery.records
        if self._key_deserializer is not None or self._value_deserializer is not None:
            records = self._deserialize(held, delivery, bool(taken))
        held.add(records, delivery.gaps)
        if delivery.error is not None:
            held.fail(delivery.unreadable, AcknowledgeType.REJECT)
            self._failure = delivery.error
        taken += records

    def _deserialize(self, held: Held, delivery: Delivery, has_others: bool) -> list[ConsumerRecord]:
        """The records up to one that cannot be read; that one is released, and told of once it comes first."""
        good: list[ConsumerRecord] = []
        for index, record in enumerate(delivery.records):
            try:
                key = record.key if self._key_deserializer is None else self._key_deserializer(record.key)
                value = record.value if self._value_deserializer is None else self._value_deserializer(record.value)
            except Exception as error:
                first = not good and not has_others
                if first:
                    held.fail([int(record.offset)], AcknowledgeType.RELEASE)
                    self._failure = _not_deserialized(record, error)
                self._rest = Delivery(delivery.partition, delivery.node_id, delivery.locked_ms)
                self._rest.records = delivery.records[index + first :]
                break
            record.key, record.value = key, value
            good.append(record)
        return good

    def _take_renewed(self) -> list[ConsumerRecord]:
        records: list[ConsumerRecord] = []
        for item in self._renewed:
            name = item.partition.name
            held = self._held.get(name)
            if held is None:
                held = self._held[name] = Held(item.partition, item.node_id, self._cluster.network.now_ms())
            held.add(item.renewing.values(), ())
            records += item.renewing.values()
        self._renewed = []
        return records

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _take_request_problem(self) -> ClientError | None:
        problem, self._requests.problem = self._requests.problem, None
        return problem

    # Acknowledgements

    @_inside
    def acknowledge(self, record: ConsumerRecord, type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Says what became of a record of the last poll(); the next poll() or a commit sends it.

        It may be said again, differently, until then. RENEW: the lock starts anew and poll() gives the record again.

        Raises InvalidRequestError in the implicit mode, and for a record that is not one of the last poll() any more.
        """
        if not isinstance(record, ConsumerRecord):
            raise TypeError(f"acknowledge() wants a record that poll() gave, not {kind_of(record)}.")
        self.acknowledge_offset(record.topic, record.partition, int(record.offset), type)

    @_inside
    def acknowledge_offset(
        self, topic: str, partition: int, offset: int, type: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """The same by offset, also for one that poll() raised an error about instead of giving the record."""
        self._check_open()
        if not self._explicit:
            raise error_for(
                INVALID_REQUEST,
                "The next poll() accepts all records: set share.acknowledgement.mode=explicit to acknowledge each.",
            )
        kind = AcknowledgeType(type)
        held = self._held.get(TopicPartition(topic, partition))
        failed = held is not None and offset in held.failed
        if held is None or (offset not in held.records and not failed):
            raise error_for(
                INVALID_REQUEST,
                f"The record of {topic}-{partition} at offset {offset} is not one of the last poll() any more: it was"
                " not given, or what became of it was sent already.",
            )
        if failed and kind == AcknowledgeType.RENEW:
            raise error_for(INVALID_REQUEST, "A record that cannot be read cannot be renewed.")
        held.types[offset] = kind

    def accept(self, record: ConsumerRecord) -> None:
        """The record is done."""
        self.acknowledge(record, AcknowledgeType.ACCEPT)

    def release(self, record: ConsumerRecord) -> None:
        """The record is to be tried again, by anyone, up to the group's limit of deliveries."""
        self.acknowledge(record, AcknowledgeType.RELEASE)

    def reject(self, record: ConsumerRecord) -> None:
        """The record cannot be processed, and need not be tried again."""
        self.acknowledge(record, AcknowledgeType.REJECT)

    def renew(self, record: ConsumerRecord) -> None:
        """More time is needed: the lock starts anew, and poll() gives the record again."""
        self.acknowledge(record, AcknowledgeType.RENEW)

    def processing(
        self, record: ConsumerRecord, *, reject: Kinds = (), release: Kinds = (), renew: bool = False
    ) -> AbstractContextManager[ConsumerRecord]:
        """`with consumer.processing(record):` accepts the record at the end, or releases it if the block fails.

        An exception of a kind in reject rejects the record, one in release releases it; these are logged and go no
        further. Any other one releases the record and is raised. Inside the block the record may be acknowledged
        otherwise. What was decided is sent soon, not only by the next poll(). With renew, the locks of all records that
        are still to be worked on are renewed for as long as the block takes.
        """
        return Processing(self, record, reject, release, renew)

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """For how long records are locked, as the last response said; None before the first."""
        return self._requests.lock_duration_ms

    @_inside
    def commit(self, timeout_ms: int | None = None) -> dict[TopicPartition, ClientError | None]:
        """Sends what was said of records, and waits: for each partition None, or why it was refused.

        In the implicit mode all records of the last poll() are accepted by this. Errors that pass are tried again until
        timeout_ms is over (default.api.timeout.ms); then they are in the result, and not raised. Raises WakeupError.
        """
        self._check_open()
        network = self._cluster.network
        wait_ms = self._api_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = network.now_ms() + wait_ms
        submitted = self._submit_decided(deadline_ms)
        results: dict[TopicPartition, ClientError | None] = {}
        while not all(item.done for item in submitted):
            if self._woken:
                self._woken = False
                raise WakeupError
            self._drive()
            remaining_ms = deadline_ms - network.now_ms()
            if remaining_ms <= 0:
                for item in submitted:
                    sentence = f"The acknowledgements of {item.partition.name} got no response within {wait_ms} ms."
                    if not item.done:
                        self._requests.give_up(item, RequestTimeoutError(sentence))
                break
            network.poll(remaining_ms)
        for item in submitted:
            results[item.partition.name] = item.error or results.get(item.partition.name)
        self._tell()
        return results

    @_inside
    def commit_async(self) -> None:
        """Sends what was said of records without waiting; the acknowledgement callback hears what came of it."""
        self._check_open()
        self._tell()
        self._submit_decided()
        self._cluster.network.poll(0)

    @_inside
    def set_acknowledgement_callback(self, callback: AcknowledgementCallback | None) -> None:
        """callback(offsets by partition, error or None) is called once what was sent has its response, or failed.

        That happens within poll(), commit(), commit_async() and close(), never in another thread; what it raises comes
        out of that call.
        """
        self._check_open()
        self._callback = callback

    def _on_finished(self, item: Acknowledgements) -> None:
        if item in self._renewing:
            self._renewing.remove(item)
            if item.error is None:
                self._renewed.append(item)
        if item.when_done is None and item.offsets:
            self._results.append(item)

    def _tell(self) -> None:
        if self._in_callback:
            return
        while self._results:
            item = self._results.pop(0)
            callback = self._callback
            if callback is None:
                if item.error is not None:
                    logger.warning(
                        "%d records of %s were not acknowledged: %s", len(item.offsets), item.partition.name, item.error
                    )
                continue
            self._in_callback = True
            try:
                with self._gate.left():
                    callback({item.partition.name: item.offsets}, item.error)
            finally:
                self._in_callback = False

    # What goes on beside the user

    def _on_assignment(self, partitions: list[SharePartition]) -> None:
        self._requests.assign(partitions)
        self._fetcher.keep(partitions)

    def _drive(self) -> None:
        now_ms = self._cluster.network.now_ms()
        self._group.drive()
        if now_ms >= self._linger_until_ms:
            self._submit_decided()
        if now_ms >= self._renew_due_ms():
            self._renew_held(now_ms)
        self._requests.step(now_ms)

    def _until_due_ms(self) -> int:
        due_ms = min(self._linger_until_ms, self._renew_due_ms(), self._requests.next_deadline_ms())
        return min(self._group.until_due_ms(), due_ms - self._cluster.network.now_ms())

    def _renew_due_ms(self) -> int:
        """Locks are renewed when half of their time is over."""
        lock_ms = self._requests.lock_duration_ms
        if not self._keeping or lock_ms is None:
            return FOREVER_MS
        began = [held.locked_ms for held in self._held.values() if held.renewable and held.undecided]
        return min(began) + lock_ms // 2 if began else FOREVER_MS

    def _renew_held(self, now_ms: int) -> None:
        lock_ms = self._requests.lock_duration_ms or 0
        for held in self._held.values():
            undecided = held.undecided
            if held.renewable and undecided and now_ms >= held.locked_ms + lock_ms // 2:
                types = dict.fromkeys(undecided, int(AcknowledgeType.RENEW))
                held.locked_ms = now_ms
                self._requests.submit(
                    Acknowledgements(held.partition, held.node_id, types, when_done=_Renewal(held).on_done)
                )

    @_inside
    def _begin_processing(self, renew: bool) -> None:
        """For processing() alone: locks are to be renewed from now on."""
        self._check_open()
        if not self._explicit:
            raise error_for(INVALID_REQUEST, "processing() needs share.acknowledgement.mode=explicit.")
        self._keeping += renew

    @_inside
    def _end_processing(self, record: ConsumerRecord, type: AcknowledgeType, renewed: bool) -> None:
        """For processing() alone: what became of the record, unless the user said that already."""
        self._keeping -= renewed
        held = self._held.get(TopicPartition(record.topic, record.partition))
        offset = int(record.offset)
        if held is not None and offset in held.records:
            held.types.setdefault(offset, type)
            now_ms = self._cluster.network.now_ms()
            if self._linger_until_ms == FOREVER_MS:
                self._linger_until_ms = now_ms + LINGER_MS
            elif now_ms >= self._linger_until_ms:
                self._cluster.network.poll(0)

    # The end

    def wakeup(self) -> None:
        """Ends what another thread waits for: poll() returns with nothing, commit() raises WakeupError."""
        self._woken = True
        self._cluster.network.wake()

    def interrupt_poll(self) -> None:
        """Makes a poll() that waits return with nothing, and nothing else; for other threads and signal handlers."""
        self._interrupted = True
        self._cluster.network.wake()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Sends what was said of records, gives all other locks back, and leaves the group.

        In the implicit mode the records of the last poll() are given back too: nobody knows whether they are done.
        """
        with self._gate:
            if self._closing:
                return
            self._closing = True
            deadline_ms = self._cluster.network.now_ms() + min(timeout_ms, self._request_timeout_ms)
        try:
            with self._gate:
                self._release_all(deadline_ms)
                self._group.leave(deadline_ms, "the consumer is being closed")
                self._tell()
        finally:
            self._closed = True
            if self._thread is not None:
                self._thread.stop()
            self._telemetry.close(timeout_ms)
            with self._gate:
                self._cluster.close()

    def _release_all(self, deadline_ms: int) -> None:
        for held in self._held.values():
            taken = held.take()
            if taken is not None:
                self._requests.submit(taken)
        self._held = {}
        self._renewing, self._renewed, self._rest = [], [], None
        self._linger_until_ms = FOREVER_MS
        self._requests.close(deadline_ms)

    def __enter__(self) -> ShareConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The consumer is closed.")


class _Renewal:
    """Locks that processing() renews; the user hears of it only through what comes of the records."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def on_done(self, item: Acknowledgements) -> None:
        if item.error is not None:
            self._held.renewable = False
            logger.warning("Cannot renew the acquisition locks of %s: %s", item.partition.name, item.error)


def _not_deserialized(record: ConsumerRecord, error: Exception) -> RecordDeserializationError:
    made = RecordDeserializationError(
        f"The record of {record.topic}-{record.partition} at offset {record.offset} cannot be deserialized: {error}. It"
        " is released; acknowledge_offset() may reject it instead, before the next poll().",
        record,
    )
    made.__cause__ = error
    return made
