"""One connection to a leader: one long poll outstanding, all partitions that it serves in one session.

A request names only partitions whose place changed since the last one (KIP-227), so an idle long poll costs nothing per
partition. The next request leaves in the turn in which a response was appended, before anybody here is told about it.
A partition that joins while the long poll waits at the leader need not wait with it: one more request of the session
names it, and the leader then responds to the first. Kafka: AbstractFetcherThread, FetchSessionHandler.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.model import EndPoint
from moldau.node.outbox import FAILURES, Channel, NoResponse, Outbox
from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import (
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS
from moldau.replication.follower import DELAYED, FETCHING, TRUNCATING, Follower
from moldau.replication.partition import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from moldau.replication.throttle import ReplicationQuota, is_throttled
from moldau.storage.log import Log

FETCH: Final = 1
LIST_OFFSETS: Final = 2
LIST_OFFSETS_VERSION: Final = 7
FIRST_REPLICA_STATE_VERSION: Final = 15
NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
EPOCH_MAX: Final = 0x7FFFFFFF
REGISTRATION_WAIT_MS: Final = 100

FETCH_VERSIONS: Final = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14))
"""From which level of metadata.version on brokers speak which version of Fetch to each other."""
LOWEST_FETCH_VERSION: Final = 13

SESSION_ERRORS: Final = (
    errors.FETCH_SESSION_ID_NOT_FOUND,
    errors.INVALID_FETCH_SESSION_EPOCH,
    errors.FETCH_SESSION_TOPIC_ID_ERROR,
)

PartitionKey = tuple[bytes, int]

log = logging.getLogger("moldau.node")


def fetch_version(metadata_version: int) -> int:
    for level, version in FETCH_VERSIONS:
        if metadata_version >= level:
            return version
    return LOWEST_FETCH_VERSION


class FetcherSettings:
    """What the configuration says about following."""

    def __init__(self) -> None:
        self.broker_id = -1
        self.fetchers = 1
        self.wait_max_ms = 500
        self.min_bytes = 1
        self.max_bytes = 1 << 20
        self.response_max_bytes = 10 << 20
        self.backoff_ms = 1000
        self.timeout_ms = 30_000
        self.fetch_version = LOWEST_FETCH_VERSION

    def read(self, config: BrokerConfig) -> None:
        self.broker_id = config.node_id
        self.fetchers = config.get_int("num.replica.fetchers")
        self.wait_max_ms = config.get_int("replica.fetch.wait.max.ms")
        self.min_bytes = config.get_int("replica.fetch.min.bytes")
        self.max_bytes = config.get_int("replica.fetch.max.bytes")
        self.response_max_bytes = config.get_int("replica.fetch.response.max.bytes")
        self.backoff_ms = config.get_int("replica.fetch.backoff.ms")
        self.timeout_ms = config.get_int("replica.socket.timeout.ms")


class FetcherContext:
    """What all fetchers of a broker share, and which of them fetches which partition."""

    def __init__(
        self, settings: FetcherSettings, outbox: Outbox, broker_epoch: Callable[[], int], quota: ReplicationQuota
    ) -> None:
        self.settings = settings
        self.outbox = outbox
        self.broker_epoch = broker_epoch
        self.quota = quota
        self.fetcher_of: dict[PartitionKey, Fetcher] = {}
        self.wake_at: Callable[[int], None] | None = None
        self.on_no_response: Callable[[int, int, int], None] | None = None
        """Told which leader gave no response to a fetch, why, and when."""

    def wake(self, deadline_ms: int) -> None:
        if self.wake_at is not None:
            self.wake_at(deadline_ms)


class Fetcher:
    """One connection to one leader, and the partitions that are fetched over it."""

    def __init__(self, leader: int, number: int, context: FetcherContext) -> None:
        self.leader = leader
        self.number = number
        self.context = context
        self.settings = context.settings
        self.host = ""
        self.port = -1
        self.channel: Channel | None = None
        # Requests without a response yet, all of one kind: fetches, or the questions of `_ask_offsets`.
        self.outstanding = 0
        self.is_asking_offsets = False
        self.request_number = 0
        self.closed = False
        self.retry_at_ms = 0
        self.followed = 0
        self.bytes_total = 0
        # By topic id and index: all that are followed here, and those that the leader must be told to forget.
        self.members: dict[PartitionKey, Follower] = {}
        self.changes: list[Follower] = []
        self.truncating: list[Follower] = []
        self.flushing: dict[PartitionKey, Follower] = {}
        self._delayed: list[tuple[int, int, Follower]] = []
        self._sequence = 0
        self._moved: list[Follower] = []
        self._asked: list[Follower] = []
        self._leader_ends: dict[PartitionKey, int] = {}
        self.session_id = NO_SESSION
        self.session_epoch = FIRST_EPOCH
        self.session_size = 0
        self._session_began = 0  # with the request of this number
        self._has_session = True  # the leader keeps one for this fetcher, as far as is known
        self._session_errors = 0
        self._is_urgent = False

    # Who is fetched

    def add(self, follower: Follower) -> None:
        self.members[(follower.topic_id, follower.index)] = follower
        self._is_urgent = True
        self.retry_at_ms = 0  # the metadata names this leader just now: it is not the one that was gone
        self.queue(follower)

    def remove(self, follower: Follower) -> None:
        """Not fetched any more; whatever is on its way for it is ignored."""
        follower.stop()
        key = (follower.topic_id, follower.index)
        if self.flushing.pop(key, None) is not None:
            self.context.wake(0)
        if self.members.get(key) is follower:
            if follower.in_session:
                self.queue(follower)
            else:
                del self.members[key]

    def queue(self, follower: Follower) -> None:
        """The next request says what became of it."""
        if not follower.queued:
            follower.queued = True
            self.changes.append(follower)

    def ask_again(self, follower: Follower) -> None:
        """The next request names it, and does not wait for the one that is out."""
        self._is_urgent = True
        self.queue(follower)

    # The connection

    def move_to(self, endpoint: EndPoint | None) -> None:
        """The leader is reached there from now on; None while nobody knows where."""
        host, port = ("", -1) if endpoint is None else (endpoint.host, endpoint.port)
        if (host, port) == (self.host, self.port):
            return
        self.disconnect()
        self.host, self.port = host, port
        self.retry_at_ms = 0

    def disconnect(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        self.outstanding = 0
        self.is_asking_offsets = False
        self.session_id = NO_SESSION
        self.start_over()

    def close(self) -> None:
        self.disconnect()
        self.closed = True

    def start_over(self) -> None:
        """The next request names everything and begins a new session in place of the one that was."""
        self.session_epoch = FIRST_EPOCH
        self.session_size = 0
        self._session_began = self.request_number + 1
        for key, follower in list(self.members.items()):
            follower.in_session = False
            if self.context.fetcher_of.get(key) is not self:
                del self.members[key]
            else:
                self.queue(follower)
        for follower in self._asked:
            follower.fetch_again()
        self._asked = []

    # Asking

    def poll(self, now_ms: int) -> int:
        """Sends what can be sent; returns when there is something to do without a response coming first."""
        if self.flushing:
            self._drop_flushed()
        if self.closed or not self.host or self.flushing:
            return NEVER_MS
        if now_ms < self.retry_at_ms:
            return self.retry_at_ms
        if self._delayed:
            self._resume_delayed(now_ms)
        if self._may_send():
            if self.context.broker_epoch() < 0:
                return now_ms + REGISTRATION_WAIT_MS
            if self.truncating and self.outstanding == 0:
                self._ask_offsets(now_ms)
            else:
                self._send_fetch(now_ms)
        return self._delayed[0][0] if self._delayed else NEVER_MS

    def _drop_flushed(self) -> None:
        for key, follower in list(self.flushing.items()):
            own_log = follower.partition.log
            if own_log is None or own_log.flush_target <= own_log.recovery_point:
                del self.flushing[key]

    def _may_send(self) -> bool:
        if self.outstanding == 0:
            return True
        is_session_open = self.session_epoch != FIRST_EPOCH and self.session_id != NO_SESSION
        return self.outstanding == 1 and self._is_urgent and is_session_open and not self.is_asking_offsets

    def _resume_delayed(self, now_ms: int) -> None:
        delayed = self._delayed
        while delayed and delayed[0][0] <= now_ms:
            follower = heapq.heappop(delayed)[2]
            if follower.state == DELAYED and follower.delayed_until_ms <= now_ms:
                follower.resume()
                self._is_urgent = True
                self.queue(follower)

    def _send_fetch(self, now_ms: int) -> None:
        topics: dict[bytes, FetchTopic] = {}
        forgotten: dict[bytes, ForgottenTopic] = {}
        settings = self.settings
        changes = self.changes
        self.request_number += 1
        if changes:
            self.changes = []
            for follower in changes:
                follower.queued = False
                self._name(follower, topics, forgotten, now_ms)
        self._is_urgent = False
        has_nothing_to_say = self.outstanding > 0 and not topics and not forgotten
        if self.session_size == 0 or has_nothing_to_say:
            self.request_number -= 1
            if self.session_size == 0:
                self.session_epoch = FIRST_EPOCH
            return
        # The first response of a session brings its id, without which nobody can join: it must not wait for records.
        opens_session = self.session_epoch == FIRST_EPOCH and self._has_session
        request = FetchRequest(
            None,
            -1,
            None,
            0 if opens_session else settings.wait_max_ms,
            settings.min_bytes,
            settings.response_max_bytes,
            0,
            self.session_id,
            self.session_epoch,
            list(topics.values()),
            list(forgotten.values()),
        )
        version = settings.fetch_version
        if version >= FIRST_REPLICA_STATE_VERSION:
            request.replica_state = ReplicaState(settings.broker_id, self.context.broker_epoch())
        else:
            request.replica_id = settings.broker_id
        if self.session_epoch == FIRST_EPOCH:
            self._session_began = self.request_number
            self.session_id = NO_SESSION  # until the response names the new one
        self.session_epoch = 1 if self.session_epoch == EPOCH_MAX else self.session_epoch + 1
        self._send(FETCH, version, request, settings.wait_max_ms + settings.timeout_ms, self._on_fetched)

    def _name(
        self,
        follower: Follower,
        topics: dict[bytes, FetchTopic],
        forgotten: dict[bytes, ForgottenTopic],
        now_ms: int,
    ) -> None:
        """Puts one partition into the request if the leader believes something else about it than what is so."""
        topic_id = follower.topic_id
        key = (topic_id, follower.index)
        if self.members.get(key) is not follower:
            return
        own_log = follower.partition.log
        if own_log is not None and own_log.config.follower_throttled_replicas and follower.state == FETCHING:
            self._maybe_hold_back(follower, own_log, now_ms)
        if follower.state == FETCHING and own_log is not None and own_log.holds == 0:
            if not follower.must_send():
                return
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic("", topic_id, [])
            topic.partitions.append(follower.fetch_partition(own_log, self.settings.max_bytes, self.request_number))
            if not follower.in_session:
                follower.in_session = True
                self.session_size += 1
            return
        if follower.in_session:
            follower.in_session = False
            self.session_size -= 1
            assert self.session_size >= 0, f"the session with broker {self.leader} has {self.session_size} partitions"
            known = forgotten.get(topic_id)
            if known is None:
                known = forgotten[topic_id] = ForgottenTopic("", topic_id, [])
            known.partitions.append(follower.index)
        if self.context.fetcher_of.get(key) is not self:
            del self.members[key]

    def _maybe_hold_back(self, follower: Follower, own_log: Log, now_ms: int) -> None:
        """A throttled replica that lags waits until the rate allows for more; one in sync is never (KIP-73)."""
        quota = self.context.quota
        if follower.lag != 0 and quota.is_exceeded(now_ms) and self._is_throttled(follower, own_log):
            follower.hold_back(now_ms + quota.wait_ms(now_ms))
            self._sequence += 1
            heapq.heappush(self._delayed, (follower.delayed_until_ms, self._sequence, follower))

    def _is_throttled(self, follower: Follower, own_log: Log) -> bool:
        return is_throttled(own_log.config.follower_throttled_replicas, follower.index, self.settings.broker_id)

    def _send(
        self,
        api_key: int,
        version: int,
        request: Message,
        timeout_ms: int,
        on_response: Callable[[Message | NoResponse, int], None],
    ) -> None:
        channel = self.channel
        if channel is None:
            channel = self.channel = self.context.outbox.open("replication", self.host, self.port)
        self.outstanding += 1
        channel.send(api_key, version, request, timeout_ms, on_response)

    # Responses to fetches

    def _on_fetched(self, response: Message | NoResponse, now_ms: int) -> None:
        number = self.request_number - self.outstanding + 1
        self.outstanding -= 1
        assert self.outstanding >= 0, f"broker {self.leader} responded to what it was not asked"
        if not isinstance(response, FetchResponse):
            assert isinstance(response, NoResponse)
            self._on_no_response(response, now_ms)
            return
        if number < self._session_began:
            self._go_on(now_ms)  # asked in a session that is over
            return
        if response.error_code != 0:
            self._on_session_error(response.error_code, now_ms)
            return
        self._session_errors = 0
        members = self.members
        for topic in response.responses:
            topic_id = topic.topic_id
            for data in topic.partitions:
                follower = members.get((topic_id, data.partition_index))
                # What was told in a later request is not what this responds to.
                if follower is not None and follower.sent_in_request <= number:
                    self._take(follower, data, now_ms)
        self.session_id = response.session_id
        self._has_session = response.session_id != NO_SESSION
        if not self._has_session:
            self.start_over()  # the leader keeps no session: everything is said each time
        self._go_on(now_ms)

    def _take(self, follower: Follower, data: PartitionData, now_ms: int) -> None:
        records = data.records
        if records is not None:
            self.bytes_total += records.size
        try:
            if follower.take(data, now_ms, self.settings.backoff_ms):
                self._moved.append(follower)
                own_log = follower.partition.log
                if own_log is not None and own_log.config.follower_throttled_replicas:
                    self._note_throttled(follower, own_log, data, now_ms)
        except Exception:
            # One partition in a state that nobody thought of does not end the replication of all others.
            log.exception(
                "unexpected error while following %s-%d; not fetching it any more",
                follower.partition.topic,
                follower.index,
            )
            follower.stop()
        self._after(follower)

    def _note_throttled(self, follower: Follower, own_log: Log, data: PartitionData, now_ms: int) -> None:
        records = data.records
        if records is not None and records.size > 0 and self._is_throttled(follower, own_log):
            self.context.quota.record(records.size, now_ms)

    def _after(self, follower: Follower) -> None:
        """Whatever the response did to it: what the next request must say."""
        state = follower.state
        if state == FETCHING:
            own_log = follower.partition.log
            if own_log is not None and own_log.flush_target > own_log.recovery_point:
                # `flush.messages`: to ask for what comes next says that all before it is safe here.
                self.flushing[(follower.topic_id, follower.index)] = follower
            if not follower.must_send():
                return
            self._is_urgent = True
        elif state == DELAYED:
            self._sequence += 1
            heapq.heappush(self._delayed, (follower.delayed_until_ms, self._sequence, follower))
        elif state == TRUNCATING:
            self.truncating.append(follower)
        self.queue(follower)

    def _go_on(self, now_ms: int) -> None:
        """The next request first; then whoever waits here for the partitions that moved."""
        deadline_ms = self.poll(now_ms)
        if deadline_ms != NEVER_MS:
            self.context.wake(deadline_ms)
        if self._moved:
            moved, self._moved = self._moved, []
            for follower in moved:
                if follower.partition.waiters:
                    follower.partition.notify_waiters(now_ms)

    def _on_no_response(self, response: NoResponse, now_ms: int) -> None:
        if now_ms < self.retry_at_ms:
            return  # the one before told so already
        log.info(
            "fetching from broker %d at %s:%d: %s; trying again",
            self.leader,
            self.host,
            self.port,
            FAILURES[response.reason],
        )
        if self.context.on_no_response is not None:
            self.context.on_no_response(self.leader, response.reason, now_ms)
        self._back_off(now_ms)

    def _on_session_error(self, code: int, now_ms: int) -> None:
        self._session_errors += 1
        if code == errors.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = NO_SESSION
        if code in SESSION_ERRORS and self._session_errors == 1:
            self.start_over()
            self._go_on(now_ms)
            return
        log.warning("broker %d rejects fetch requests of this broker: %s", self.leader, errors.error_name(code))
        self._back_off(now_ms)

    def _back_off(self, now_ms: int) -> None:
        self.start_over()
        self.retry_at_ms = now_ms + max(1, self.settings.backoff_ms)
        self.context.wake(self.retry_at_ms)

    # Where the leader's log begins and ends

    def _ask_offsets(self, now_ms: int) -> None:
        """Both questions leave at once; the responses come in order."""
        self._asked = [follower for follower in self.truncating if follower.state == TRUNCATING]
        self.truncating = []
        self._leader_ends = {}
        if not self._asked:
            self._send_fetch(now_ms)
            return
        timeout_ms = self.settings.timeout_ms
        self.is_asking_offsets = True
        self._send(
            LIST_OFFSETS, LIST_OFFSETS_VERSION, self._offsets_request(LATEST_TIMESTAMP), timeout_ms, self._on_ends
        )
        self._send(
            LIST_OFFSETS, LIST_OFFSETS_VERSION, self._offsets_request(EARLIEST_TIMESTAMP), timeout_ms, self._on_starts
        )

    def _offsets_request(self, timestamp: int) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for follower in self._asked:
            name = follower.partition.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = ListOffsetsTopic(name=name, partitions=[])
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=follower.index, current_leader_epoch=follower.leader_epoch, timestamp=timestamp
                )
            )
        return ListOffsetsRequest(replica_id=self.settings.broker_id, topics=list(topics.values()))

    def _on_ends(self, response: Message | NoResponse, now_ms: int) -> None:
        self.outstanding -= 1
        if isinstance(response, ListOffsetsResponse):
            self._leader_ends = self._offsets_in(response, now_ms)

    def _on_starts(self, response: Message | NoResponse, now_ms: int) -> None:
        self.outstanding -= 1
        self.is_asking_offsets = False
        if not isinstance(response, ListOffsetsResponse):
            assert isinstance(response, NoResponse)
            self._on_no_response(response, now_ms)
            return
        starts = self._offsets_in(response, now_ms)
        backoff_ms = self.settings.backoff_ms
        asked, self._asked = self._asked, []
        for follower in asked:
            key = (follower.topic_id, follower.index)
            if self.members.get(key) is not follower:
                continue
            start_offset, end_offset = starts.get(key, -1), self._leader_ends.get(key, -1)
            if start_offset >= 0 and end_offset >= 0:
                follower.on_leader_offsets(start_offset, end_offset, now_ms, backoff_ms)
                self._moved.append(follower)
            else:
                follower.on_leader_offsets_failed(errors.UNKNOWN_SERVER_ERROR, now_ms, backoff_ms)
            self._after(follower)
        self._go_on(now_ms)

    def _offsets_in(self, response: ListOffsetsResponse, now_ms: int) -> dict[PartitionKey, int]:
        """Offsets by partition; where there is an error instead, the follower takes notice of it."""
        asked = {(follower.partition.topic, follower.index): follower for follower in self._asked}
        found: dict[PartitionKey, int] = {}
        for topic in response.topics:
            for row in topic.partitions:
                follower = asked.get((topic.name, row.partition_index))
                if follower is None:
                    continue
                if row.error_code == 0:
                    found[(follower.topic_id, follower.index)] = row.offset
                else:
                    follower.on_leader_offsets_failed(row.error_code, now_ms, self.settings.backoff_ms)
        return found
