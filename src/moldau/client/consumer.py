"""The consumer: partitions of a group or assigned by the user, positions, poll, commits.

poll() asks the leaders ahead of the reader: a partition is fetched again as soon as nothing of it is kept, so that the
response is on its way while the user works on the records. With a group, poll() also does what the group wants of the
user's thread; a thread of its own keeps the member alive between two polls (group/heartbeat.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from moldau.client import config as settings
from moldau.client.arguments import (
    checked_callable,
    checked_methods,
    checked_milliseconds,
    checked_names,
    checked_number,
    checked_offsets,
    checked_partition,
    checked_partitions,
    checked_times,
    checked_topic,
    kind_of,
)
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClosedError, ConfigError, RequestTimeoutError, WakeupError, error_for
from moldau.client.fetch.fetcher import NO_EPOCH, ConsumerRecord, PartitionState, deserialize
from moldau.client.group.gate import Gate
from moldau.client.group.listener import RebalanceListener
from moldau.client.metrics.reading import PollMeter
from moldau.client.offsets import EARLIEST, LATEST, READ_COMMITTED, list_offsets
from moldau.client.partition_reading import PartitionReading
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from moldau.client.telemetry.watch import Telemetry
from moldau.client.wiring import wiring_of
from moldau.protocol.errors import INVALID_GROUP_ID, INVALID_REQUEST
from moldau.records.arrow_decoder import ArrowColumns

if TYPE_CHECKING:
    from typing import Unpack

    # Imported by those who have a group, which costs as much as the rest of the consumer.
    from moldau.client.group.commits import Callback
    from moldau.client.group.heartbeat import HeartbeatThread
    from moldau.client.group.session import ConsumerGroup
    from moldau.client.metrics.names import Metrics
    from moldau.client.setting_types import ConsumerSettings

__all__ = ["Consumer", "ConsumerRecord"]

ARROW_ROWS = 65_536

CLOSE_TIMEOUT_MS = 30_000

P = ParamSpec("P")
R = TypeVar("R")


def _inside(method: Callable[Concatenate[Consumer, P], R]) -> Callable[Concatenate[Consumer, P], R]:
    """A method that the heartbeat thread must not come in between of."""

    @wraps(method)
    def run(self: Consumer, /, *arguments: P.args, **more: P.kwargs) -> R:
        with self._gate:
            return method(self, *arguments, **more)

    return run


class Consumer:
    """Reads records, of the partitions that its group gives it or of assigned ones; to be used by one thread.

    subscribe() joins the group of the setting group_id, assign() does without one; then poll() gives records. A member
    of a group has a thread of its own that keeps it alive between two polls.

    bootstrap_servers: "host:port,host:port", a list of those, or a mapping of settings by Kafka's names.
    key_deserializer, value_deserializer: make record.key and record.value of the bytes, or of None. The other keywords
    are settings, with `_` for `.`, which config takes as they are; moldau.client.setting_types.ConsumerSettings has
    them.

    Raises ConfigError for a setting that does not exist, or that does not fit together with another.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        key_deserializer: Callable[[bytes | None], Any] | None = None,
        value_deserializer: Callable[[bytes | None], Any] | None = None,
        config: Mapping[str, object] | None = None,
        **more: Unpack[ConsumerSettings],
    ) -> None:
        given = settings.gather(bootstrap_servers, config, more)
        own_assignors = _take_own_assignors(given)
        read = settings.ClientConfig(settings.CONSUMER, given)
        self._config = read
        self._started_wall_ms = time.time_ns() // 1_000_000
        checked_callable("key_deserializer", key_deserializer)
        checked_callable("value_deserializer", value_deserializer)
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._max_poll_records = read.get_int("max.poll.records")
        self._request_timeout_ms = read.get_int("request.timeout.ms")
        self._api_timeout_ms = read.get_int("default.api.timeout.ms")
        self._metadata_age_max_ms = read.get_int("metadata.max.age.ms")
        wiring = wiring_of(config)
        self._cluster = Cluster(
            read,
            wiring.network,
            auto_create_topics=read.get_bool("allow.auto.create.topics"),
            first_contact_ms=wiring.first_contact_ms,
        )
        self._telemetry = Telemetry(read, self._cluster, self.metrics)
        reading = PartitionReading.from_settings(self._cluster, read)
        self._isolation = reading.isolation
        self._fetcher = reading.fetcher
        self._poll_meter = PollMeter(self._cluster.window)
        self._positions = reading.positions
        self._fetches = reading.fetches
        self._gate = Gate(self._cluster.network.wake)
        self._group: ConsumerGroup | None = None
        self._wants_thread = wiring.wants_heartbeat_thread
        self._thread: HeartbeatThread | None = None
        self._woken = False
        self._interrupted = False
        self._closing = False
        self._closed = False
        if read.get_optional("group.id") is not None:
            self._set_up_group(read, own_assignors)
        elif "enable.auto.commit" in read.given and read.get_bool("enable.auto.commit"):
            raise ConfigError("enable.auto.commit cannot be true without a group.id.")

    def _set_up_group(self, read: settings.ClientConfig, own_assignors: list[object] | None) -> None:
        from moldau.client.group.network import DrivenNetwork
        from moldau.client.group.session import ConsumerGroup
        from moldau.client.group.settings import read_group_settings

        self._group = ConsumerGroup(
            read_group_settings(read, own_assignors),
            self._cluster,
            self._fetcher,
            self._positions,
            request_timeout_ms=self._request_timeout_ms,
            metadata_age_max_ms=self._metadata_age_max_ms,
            exclude_internal=read.get_bool("exclude.internal.topics"),
            call=self._call_user,
        )
        self._group.wakeup_requested = self._take_wakeup
        self._cluster.network = DrivenNetwork(self._cluster.network, self._group.drive, self._group.until_due_ms)

    # Groups

    @_inside
    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Joins the group for these topics, or for those whose whole name the pattern matches; poll() does the rest.

        A pattern that is text is matched by the broker (RE2 syntax) where group.protocol is consumer; otherwise, and
        if it is compiled, it is matched here. Another subscription takes the place of the one before. No topics at all
        are the same as unsubscribe().

        Raises InvalidGroupIdError without a group.id, and InvalidRequestError while partitions are assigned.
        """
        self._check_open()
        group = self._require_group()
        names = None if topics is None else _checked_topics(topics)
        if (names is None) == (pattern is None):
            raise error_for(INVALID_REQUEST, "subscribe() takes either topics or a pattern.")
        if names is not None and not names:
            self.unsubscribe()
            return
        if not group.subscribed and self._fetcher.partitions:
            raise error_for(INVALID_REQUEST, _EXCLUSIVE)
        checked_methods("listener", listener, RebalanceListener)
        group.subscribe(names, _checked_pattern(pattern), listener)
        if self._thread is None and self._wants_thread:
            from moldau.client.group.heartbeat import HeartbeatThread

            self._thread = HeartbeatThread(
                self._gate,
                self._cluster.network.poll,
                lambda: group.coordinator.in_flight > 0,
                group.until_due_ms,
                f"moldau-heartbeat-{group.settings.group_id}",
            )
            self._thread.start()

    @_inside
    def unsubscribe(self) -> None:
        """Leaves the group, or forgets the partitions that were assigned. Nothing is committed by this."""
        self._check_open()
        group = self._group
        if group is not None and group.subscribed:
            group.check_not_rebalancing("unsubscribe")
            deadline_ms = self._cluster.network.now_ms() + self._api_timeout_ms
            group.leave(deadline_ms, "the consumer unsubscribed")
            group.raise_listener_error()
        self._fetcher.assign([])

    def subscription(self) -> set[str]:
        """The topics that are subscribed to; for a pattern, those that it matches as far as that is known here."""
        return set() if self._group is None else self._group.subscription()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """This consumer's place in its group, for offsets that a transaction commits."""
        return self._require_group().metadata()

    @_inside
    def enforce_rebalance(self, reason: str = "the user asked for a rebalance") -> None:
        """The next poll() joins the group again; in the protocol of KIP-848 the broker alone decides that."""
        group = self._require_group()
        if not group.subscribed:
            raise error_for(INVALID_REQUEST, "There is no rebalance to enforce: this consumer has no subscription.")
        group.enforce_rebalance(reason)

    # Commits

    @_inside
    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commits these offsets, or the positions behind all records that poll() gave, and waits until it is done.

        Raises CommitFailedError where this is not a member of the group any more, RebalanceInProgressError where
        poll() is to be called first, and RequestTimeoutError after timeout_ms (default.api.timeout.ms).
        """
        self._check_open()
        group = self._require_group()
        wanted = self._fetcher.consumed() if offsets is None else _checked_offsets(offsets)
        began_ns = time.monotonic_ns()
        group.commit_sync(wanted, self._api_timeout_ms if timeout_ms is None else timeout_ms)
        self._poll_meter.commit_sync_ns += time.monotonic_ns() - began_ns

    @_inside
    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: Callback | None = None,
    ) -> None:
        """Commits without waiting, once; callback(offsets, error or None) is called by a later poll() or close().

        The error is a RetriableCommitFailedError where committing again may help.
        """
        self._check_open()
        group = self._require_group()
        wanted = self._fetcher.consumed() if offsets is None else _checked_offsets(offsets)
        group.commit_async(wanted, callback, self._api_timeout_ms)

    @_inside
    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed for each partition; None where nothing.

        Raises RequestTimeoutError after timeout_ms (default.api.timeout.ms).
        """
        self._check_open()
        group = self._require_group()
        wanted = list(dict.fromkeys(checked_partitions(partitions, "committed")))
        began_ns = time.monotonic_ns()
        found = group.committed(wanted, self._api_timeout_ms if timeout_ms is None else timeout_ms) if wanted else {}
        self._poll_meter.committed_ns += time.monotonic_ns() - began_ns
        return found

    # Assignment and positions

    @_inside
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions from now on; those that were assigned before keep their position.

        With a group.id the others begin where the group committed; the group's members are not asked. No partitions
        at all are the same as unsubscribe(). Raises InvalidRequestError while there is a subscription.
        """
        self._check_open()
        wanted = checked_partitions(partitions, "assign")
        if not wanted:
            self.unsubscribe()
            return
        if self._group is not None and self._group.subscribed:
            raise error_for(INVALID_REQUEST, _EXCLUSIVE)
        self._fetcher.assign(wanted, from_committed=self._group is not None)

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are assigned now, by the user or by the group."""
        return list(self._fetcher.partitions)

    @_inside
    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """The next poll() reads the partition from this offset on.

        leader_epoch: that of the record before the offset, where known; a truncated log is noticed by it. Raises
        InvalidRequestError for a partition that is not assigned, as do the other methods that name one.
        """
        if checked_number("offset", offset) < 0:
            raise error_for(INVALID_REQUEST, f"Cannot seek to offset {offset}: it must not be negative.")
        state = self._state(checked_partition(partition, "seek"))
        self._fetcher.seek(state, offset, leader_epoch)
        state.validated_epoch = NO_EPOCH

    @_inside
    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """The next poll() reads these partitions (all, without any given) from their first record on."""
        for partition in checked_partitions(partitions, "seek_to_beginning") or self.assignment():
            self._fetcher.reset(self._state(partition), EARLIEST)

    @_inside
    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """The next poll() reads of these partitions (all, without any given) only what comes from now on."""
        for partition in checked_partitions(partitions, "seek_to_end") or self.assignment():
            self._fetcher.reset(self._state(partition), LATEST)

    @_inside
    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that poll() gives; found out where it is not known yet.

        Raises NoOffsetForPartitionError under auto.offset.reset=none, RequestTimeoutError after default.api.timeout.ms,
        and WakeupError.
        """
        state = self._state(checked_partition(partition, "position"))
        network = self._cluster.network
        deadline_ms = network.now_ms() + self._api_timeout_ms
        while state.position is None:
            self._raise_problem(False)
            if self._take_wakeup():
                raise WakeupError
            self._positions.ask_position(state)
            if self._group is not None:
                self._group.ask_committed()
            remaining_ms = deadline_ms - network.now_ms()
            if remaining_ms <= 0:
                reason = f" {self._positions.last_error.message}" if self._positions.last_error is not None else ""
                raise RequestTimeoutError(
                    f"The position of {partition} was not found out within {self._api_timeout_ms} ms.{reason}"
                )
            network.poll(min(remaining_ms, self._positions.until_retry_ms()))
        return state.position

    @_inside
    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """poll() gives no records of these partitions until resume(); the member stays in its group."""
        for partition in checked_partitions(partitions, "pause"):
            self._state(partition).paused = True

    @_inside
    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """poll() gives records of these partitions again."""
        for partition in checked_partitions(partitions, "resume"):
            self._state(partition).paused = False

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused now."""
        return [partition for partition, state in self._fetcher.partitions.items() if state.paused]

    @_inside
    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the position is behind the end as of the last fetch; None before the first."""
        state = self._state(checked_partition(partition, "lag"))
        end = state.last_stable_offset if self._isolation == READ_COMMITTED else state.high_watermark
        return None if end < 0 or state.position is None else max(0, end - state.position)

    def high_watermark(self, partition: TopicPartition) -> int:
        """The offset behind the partition's last committed record as of the last fetch; -1 before the first."""
        return self._state(checked_partition(partition, "high_watermark")).high_watermark

    # Records

    def client_instance_id(self, timeout_ms: int = 60_000) -> bytes:
        """The id by which brokers know the metrics that this consumer pushes (KIP-714); waits for it until timeout_ms.

        Raises ConfigError without enable.metrics.push, UnsupportedVersionError where brokers take no metrics, and
        RequestTimeoutError.
        """
        return self._telemetry.instance_id(timeout_ms)

    def metrics(self) -> Metrics:
        """What the consumer measures of itself, under the names of Kafka's metrics, as of now.

        A mapping of MetricName to numbers; `metrics()["records-consumed-total"]` for what the consumer has of it in
        all, `metrics().value("records-lag", topic="orders", partition=0)` for others. Rates, averages and maxima are
        those of the last 30 to 60 seconds (metrics.sample.window.ms); where nothing happened in that time an average
        is not a number. docs/client-metrics.md has them all.
        """
        from moldau.client.metrics.consumer import consumer_metrics

        group = None if self._group is None else self._group.meter
        return consumer_metrics(
            self._config, self._cluster, self._fetcher, self._poll_meter, self._started_wall_ms, group
        )

    @_inside
    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that arrived, at least one unless the timeout passes; at most max_records (max.poll.records).

        They are in order within each partition. In a group, this is also where members join and listeners are called.

        Raises, once the records before it were given: NoOffsetForPartitionError, OffsetOutOfRangeError and
        LogTruncationError under auto.offset.reset=none, FencedInstanceIdError, CorruptRecordError, and errors of
        authentication and authorization; also what a deserializer raises. A broker that is away is waited for.
        """
        limit = self._max_poll_records if max_records is None else max_records
        records = self._take_within(timeout_ms, lambda: self._fetcher.take(limit))
        if self._key_deserializer is not None or self._value_deserializer is not None:
            deserialize(records, self._key_deserializer, self._value_deserializer)
        return records

    @_inside
    def poll_arrow(
        self, timeout_ms: int = 0, max_rows: int = ARROW_ROWS, headers: bool = False, views: bool = False
    ) -> Any:
        """A pyarrow RecordBatch of what arrived, None if nothing does before the timeout.

        Whole batches are taken, so there may be some more rows than max_rows. Columns: topic, partition, offset,
        timestamp, timestamp_type, key, value, and headers if asked for. No object is made for a record. With views, key
        and value are of the type binary_view and point into what was fetched, which is quicker where values are large;
        not everything that takes Arrow takes that type. Raises as poll() does, and ConfigError without pyarrow.
        """
        from moldau.client.arrow import to_record_batch

        columns = ArrowColumns(headers)
        buffers: list[bytes] = []
        parts = self._take_within(timeout_ms, lambda: self._fetcher.take_arrow(max_rows, columns, buffers))
        return to_record_batch(parts, columns, buffers, views) if parts else None

    def _take_within(self, timeout_ms: int, take: Callable[[], R]) -> R:
        """What `take` finds among what arrived, as soon as it finds anything; nothing once the timeout has passed."""
        self._check_open()
        now_ms = self._cluster.network.now_ms
        began_ms = now_ms()
        deadline_ms = began_ms + checked_milliseconds(timeout_ms)
        self._poll_meter.on_start(began_ms)
        try:
            while True:
                if self._group is not None:
                    self._group.step()
                found = take()
                if not self._go_on(bool(found), deadline_ms):
                    return found or take()
        finally:
            self._poll_meter.on_end(now_ms())

    def _go_on(self, found: bool, deadline_ms: int) -> bool:
        """Asks the leaders ahead of the reader, and waits if nothing was found; False when it is time to return."""
        network = self._cluster.network
        self._raise_problem(found)
        remaining_ms = deadline_ms - network.now_ms()
        if not found:
            self._positions.ask()
        elif self._positions.any_unvalidated():
            self._positions.stale_topics.update(item.topic for item in self._fetcher.partitions)
        self._fetches.send()
        if found or remaining_ms <= 0 or self._woken or self._interrupted:
            self._woken = self._interrupted = False
            network.poll(0)
            return False
        network.poll(min(remaining_ms, self._positions.until_retry_ms()))
        return True

    def wakeup(self) -> None:
        """Ends what another thread waits for: poll() returns with nothing, commit() and the like raise WakeupError.

        Where nothing waits, the next such call ends at once. interrupt_poll() is for poll() alone.
        """
        self._woken = True
        self._cluster.network.wake()

    def interrupt_poll(self) -> None:
        """Makes a poll() that waits return with nothing, and nothing else; for other threads and signal handlers.

        A commit() after the loop of polls is not disturbed by it, as it is by wakeup().
        """
        self._interrupted = True
        self._cluster.network.wake()

    def _take_wakeup(self) -> bool:
        woken, self._woken = self._woken, False
        return woken

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records for ever, poll by poll."""
        while True:
            yield from self.poll(1000)

    # Questions

    @_inside
    def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic; raises UnknownTopicOrPartitionError where it does not exist."""
        self._check_open()
        found = self._cluster.topic(checked_topic(topic), self._api_timeout_ms)
        return [TopicPartition(topic, partition) for partition in sorted(found.partitions)]

    @_inside
    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition that can still be read.

        Raises the first partition's error, and RequestTimeoutError after default.api.timeout.ms; so do the others here.
        """
        return self._list(dict.fromkeys(checked_partitions(partitions, "beginning_offsets"), EARLIEST))

    @_inside
    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets behind the last records: high watermarks, or last stable offsets under read_committed."""
        return self._list(dict.fromkeys(checked_partitions(partitions, "end_offsets"), LATEST))

    @_inside
    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time, in ms since 1970; None where there is none so young."""
        self._check_open()
        wanted = checked_times(times, "offsets_for_times")
        found = list_offsets(self._cluster, wanted, self._api_timeout_ms, self._isolation)
        results = {partition: outcome.get() for partition, outcome in found.items()}
        return {partition: (None if row.offset < 0 else row) for partition, row in results.items()}

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, leave_group: bool | None = None) -> None:
        """Commits (with enable.auto.commit), tells the listener, leaves the group, and ends all connections.

        leave_group: None for Kafka's rule, by which static members stay, so that they find their partitions again.
        Raises what the listener raised. Calling it again does nothing.
        """
        group = self._group
        if group is not None:
            group.check_not_rebalancing("close")
        with self._gate:
            if self._closing:
                return
            self._closing = True
            deadline_ms = self._cluster.network.now_ms() + timeout_ms
        try:
            if group is not None:
                with self._gate:
                    self._close_group(group, deadline_ms, leave_group)
        finally:
            self._closed = True
            # Only now: a listener that takes its time still needs the heartbeats.
            if self._thread is not None:
                self._thread.stop()
            self._telemetry.close(timeout_ms)
            with self._gate:
                self._cluster.close()
        if group is not None:
            group.raise_listener_error()

    def _close_group(self, group: ConsumerGroup, deadline_ms: int, leave_group: bool | None) -> None:
        group.finish_commits(deadline_ms)
        if group.subscribed:
            group.leave(deadline_ms, "the consumer is being closed", None if leave_group is None else not leave_group)
        group.tell_commits()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _list(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self._check_open()
        found = list_offsets(self._cluster, wanted, self._api_timeout_ms, self._isolation)
        return {partition: outcome.get().offset for partition, outcome in found.items()}

    def _call_user(self, work: Callable[[], object]) -> None:
        """The user's own code, during which heartbeats go on and the consumer can be used."""
        with self._gate.left():
            work()

    def _require_group(self) -> ConsumerGroup:
        if self._group is None:
            raise error_for(INVALID_GROUP_ID, "Groups and commits need the setting group.id.")
        return self._group

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("The consumer is closed.")

    def _state(self, partition: TopicPartition) -> PartitionState:
        self._check_open()
        state = self._fetcher.partitions.get(partition)
        if state is None:
            raise error_for(INVALID_REQUEST, f"Partition {partition} is not assigned to this consumer.")
        return state

    def _raise_problem(self, found: bool) -> None:
        """An error waits until the records before it were handed out."""
        problem = self._positions.problem
        if problem is not None and not found:
            self._positions.problem = None
            raise problem


_EXCLUSIVE = "Partitions are either subscribed to or assigned: unsubscribe() first."


def _take_own_assignors(given: dict[str, object]) -> list[object] | None:
    """Takes partition.assignment.strategy out of the settings where it has classes or objects of the user's own."""
    for spelling, value in list(given.items()):
        if settings.dotted(spelling) != "partition.assignment.strategy":
            continue
        items = list(value) if isinstance(value, list | tuple) else [value]
        if not all(isinstance(item, str) for item in items):
            del given[spelling]
            return items
    return None


def _checked_topics(topics: Iterable[str]) -> list[str]:
    names = checked_names(topics, "subscribe")
    if any(not name.strip() for name in names):
        raise error_for(INVALID_REQUEST, "The name of a topic to subscribe to must not be empty.")
    return names


def _checked_pattern(pattern: str | re.Pattern[str] | None) -> str | re.Pattern[str] | None:
    if pattern is not None and not isinstance(pattern, str | re.Pattern):
        raise TypeError(f"The pattern is {kind_of(pattern)}: give text or what re.compile() makes of it.")
    if isinstance(pattern, str) and not pattern:
        raise error_for(INVALID_REQUEST, "The pattern to subscribe to must not be empty.")
    return pattern


def _checked_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    checked = checked_offsets(offsets)
    for partition, row in checked.items():
        if row.offset < 0:
            raise error_for(INVALID_REQUEST, f"The offset {row.offset} of {partition} must not be negative.")
    return checked
