"""ShareFetch: records for a member of a share group, each locked for it, and what it says of those it had before.

Versions 1-2: 1 says how long locks last, 2 adds the acquire mode and renewals (KIP-1206, KIP-1222). First the checks of
the request, then its session, then its acknowledgements, then the fetch; the response waits for both. A fetch waits
until `min_bytes` can be had or `max_wait_ms` is over.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import denied_topics
from moldau.api.call import Call
from moldau.api.share_acknowledge import FIRST_RENEW_VERSION, Acknowledging, Results
from moldau.api.share_checks import ERRORS_WITH_LEADER, LeaderHints, check_member, check_partition, entries_of
from moldau.node.cold_requests import ColdWait
from moldau.node.share.acknowledgement import Acknowledgement
from moldau.node.share.partition import CLOSED, LOADING, RecordsWaiter, SharePartition
from moldau.node.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, PlaceKey, ShareSession
from moldau.node.waiting import TimedWaiter
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.share_fetch_request import ShareFetchRequest
from moldau.protocol.messages.share_fetch_response import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from moldau.protocol.records_data import MemoryRecords
from moldau.records.clocks import AT_ONCE_MS
from moldau.security.rights import READ
from moldau.storage.disk import ColdRead

BY_RECORD: Final = 1
NO_RECORDS: Final = MemoryRecords(b"", 0, 0)


class Target:
    """A partition to fetch from. Its error is final for this request, its share partition may still be loading."""

    __slots__ = ("error", "key", "name", "one", "place")

    def __init__(self, place: PlaceKey) -> None:
        self.place = place
        self.key = ("", place[0], place[1])
        self.name = ""
        self.one: SharePartition | None = None
        self.error: KafkaError | None = None


class BroughtRecords(TimedWaiter):
    """The disk has read what a fetch waited for, which goes on in a turn that knows the time: locks begin with it."""

    def __init__(self, fetch: ShareFetchCall) -> None:
        super().__init__()
        self._fetch = fetch

    def on_deadline(self, now_ms: int) -> None:
        self.finished = True
        self._fetch.on_brought(now_ms)

    def on_partition_moved(self, now_ms: int) -> None:
        """It waits for no partition."""
        raise NotImplementedError


class ShareFetchCall(RecordsWaiter):
    """One ShareFetch on its way: its acknowledgements, and its wait for records."""

    def __init__(self, call: Call, request: ShareFetchRequest, session: ShareSession) -> None:
        super().__init__()
        self._call = call
        self._request = request
        self._session = session
        self._node = call.node
        self._targets: list[Target] = []
        self._acknowledged: Results | None = None
        self._rows: dict[PlaceKey, PartitionData] | None = None
        self._cold: ColdWait | None = None
        self._is_late = False  # its time is over: whatever there is when the disk has read is the response
        self._bytes_max = min(request.max_bytes, call.node.fetch_bytes_max)
        if call.node.quotas.is_on and self._bytes_max > 0:
            self._bytes_max = max(1, call.limit_fetch(self._bytes_max))
        self._bytes_min = min(request.min_bytes, self._bytes_max)

    def begin(self, entries: dict[PlaceKey, list[Acknowledgement]]) -> None:
        group_id, member_id = self._session.key
        call, request = self._call, self._request
        renews = request.is_renew_ack and call.version >= FIRST_RENEW_VERSION
        Acknowledging(call, group_id, member_id, renews, self._on_acknowledged).begin(entries)
        if request.share_session_epoch == FINAL_EPOCH:
            self._node.shares.end_session(self._session, call.now_ms)
            self._rows = {}
        elif request.is_renew_ack or request.max_records <= 0 or self._bytes_max <= 0:
            self._rows = {}
        else:
            self._find_targets()
            if not self.maybe_respond(call.now_ms):
                self._wait()
        self._maybe_respond()

    def _on_acknowledged(self, results: Results) -> None:
        self._acknowledged = results
        self._maybe_respond()

    # Fetching

    def _find_targets(self) -> None:
        group_id = self._session.key[0]
        for partition in self._session.in_order(self._request.share_session_epoch):
            target = Target((partition.topic_id, partition.index))
            target.key = (group_id, partition.topic_id, partition.index)
            self._targets.append(target)
        if self._node.rights is not None:
            self._refuse_denied()

    def _refuse_denied(self) -> None:
        by_id = self._node.image.topics_by_id
        names = {id(one): by_id[one.place[0]].name for one in self._targets if one.place[0] in by_id}
        denied = denied_topics(self._call, READ, list(names.values()))
        for target in self._targets:
            if names.get(id(target)) in denied:
                target.error = KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)

    def _prepare(self, target: Target, now_ms: int) -> None:
        """Finds the share partition, or why there is none."""
        if target.error is not None or (target.one is not None and target.one.state != CLOSED):
            return
        try:
            if target.one is not None:
                raise target.one.failure or KafkaError(errors.UNKNOWN_SERVER_ERROR)
            target.name = check_partition(self._node, *target.place)
            partition = self._node.replicas.find(target.name, target.place[1])
            if partition is None:
                raise self._node.replicas.why_missing(target.name, target.place[1])
            target.one = self._node.shares.find_or_load(target.key, partition, now_ms)
        except KafkaError as error:
            target.error = error

    def _wait(self) -> None:
        deadline_ms = self._call.now_ms + max(0, self._request.max_wait_ms)
        for target in self._targets:
            if target.one is not None:
                target.one.wait(self)
        self._call.reply.on_abandon = self._cancel
        self._node.waiting.call_at(deadline_ms, self)

    def _cancel(self) -> None:
        """The client is gone; what it holds is given back when its session ends."""
        self.finished = True
        if self._cold is not None:
            self._cold.abandon()
        self._drop_from_partitions()

    def _drop_from_partitions(self) -> None:
        for target in self._targets:
            if target.one is not None:
                target.one.wait_no_more(self)

    def maybe_respond(self, now_ms: int) -> bool:
        if self._rows is not None or self._call.reply.done:
            return True
        for target in self._targets:
            self._prepare(target, now_ms)
        if self._targets and all(target.error is not None for target in self._targets):
            self._fetch(now_ms)
            return True
        if not self._has_enough():
            return not self._targets and self._fetch(now_ms)
        return self._fetch(now_ms, only_with_records=True)

    def _has_enough(self) -> bool:
        size = 0
        share = self._share_of_bytes()
        for target in self._targets:
            one = target.one
            if target.error is None and one is not None and one.may_have_records() and one.state != LOADING:
                try:
                    size += self._available_bytes(one, share)
                except KafkaError as error:
                    target.error = error
                    return True
                if size >= self._bytes_min and size > 0:
                    return True
        return False

    def _share_of_bytes(self) -> int:
        """What each partition may give, so that one does not take all."""
        ready = sum([1 for target in self._targets if target.one is not None and target.one.may_have_records()])
        return self._bytes_max // max(1, ready)

    def _fetch(self, now_ms: int, only_with_records: bool = False) -> bool:
        """Acquires what there is; False if that is nothing, and somebody is to wait for more."""
        if self._node.quotas.is_on and self._call.charge_fetch(0) > 0:
            self._fetch_nothing()
            return True
        rows: dict[PlaceKey, PartitionData] = {}
        left = self._request.max_records
        share = self._share_of_bytes()
        for target in self._targets:
            row = PartitionData(target.place[1], records=NO_RECORDS)
            if target.error is None and target.one is not None and target.one.state != LOADING and left > 0:
                left -= self._fetch_from(target, target.one, share, left, row, now_ms)
            rows[target.place] = row
        found = any(row.acquired_records for row in rows.values())
        is_to_wait = only_with_records or self._is_reading()
        if is_to_wait and not found and not any(target.error is not None for target in self._targets):
            return False
        self._rows = rows
        if found:
            fetched = sum([1 for row in rows.values() if row.acquired_records])
            group_id, waited_ms = self._session.key[0], now_ms - self._call.now_ms
            self._node.shares.counts.on_fetched(group_id, waited_ms, len(rows), fetched)
        self.finished = True
        self._drop_from_partitions()
        self._maybe_respond()
        return True

    def _fetch_nothing(self) -> None:
        """Its client has used too much already: nothing is acquired, it asks again later."""
        self.finished = True
        self._drop_from_partitions()
        self._targets = []
        self._rows = {}
        self._maybe_respond()

    def _fetch_from(
        self, target: Target, one: SharePartition, bytes_max: int, left: int, row: PartitionData, now_ms: int
    ) -> int:
        request = self._request
        by_record = request.share_acquire_mode == BY_RECORD
        self._begin_try()
        try:
            got = one.acquire(self._session.key[1], bytes_max, left, request.batch_size, by_record, now_ms)
        except ColdRead as cold:
            self._bring(cold)
            return 0
        except KafkaError as error:
            target.error = error
            return 0
        finally:
            self._end_try()
        if got is None:
            return 0
        read, acquired = got
        row.records = read.records
        if read.records is not None:
            one.partition.counts.bytes_out += read.records.size
        row.acquired_records = [AcquiredRecords(found.first, found.last, found.count) for found in acquired]
        self._session.move_to_end(target.place)
        return sum([found.last - found.first + 1 for found in acquired])

    def on_deadline(self, now_ms: int) -> None:
        """With whatever can be had at this moment."""
        if self._rows is None and not self._call.reply.done:
            self._node.shares.counts.expired_fetches_total += 1
            self._is_late = True
            self._fetch_late(now_ms)

    def _fetch_late(self, now_ms: int) -> None:
        for target in self._targets:
            self._prepare(target, now_ms)
        self._fetch(now_ms)

    # Cold data: nothing is acquired before it can be read, so a partition that is cold is merely asked again

    def _available_bytes(self, one: SharePartition, bytes_max: int) -> int:
        self._begin_try()
        try:
            return one.available_bytes(bytes_max)
        except ColdRead as cold:
            self._bring(cold)
            return 0
        finally:
            self._end_try()

    def _begin_try(self) -> None:
        if self._cold is not None:
            self._cold.begin_try()
        else:
            self._node.disk.refuses_cold = True

    def _end_try(self) -> None:
        if self._cold is not None:
            self._cold.end_try()
        else:
            self._node.disk.refuses_cold = False

    def _bring(self, cold: ColdRead) -> None:
        """One read at a time; another partition's turn comes when this one is here."""
        if self._cold is None:
            self._cold = ColdWait(self._node.disk, self._on_read)
        if not self._cold.is_reading:
            self._cold.bring(cold)

    def _is_reading(self) -> bool:
        return self._cold is not None and self._cold.is_reading

    def _on_read(self) -> None:
        self._node.waiting.call_at(AT_ONCE_MS, BroughtRecords(self))

    def on_brought(self, now_ms: int) -> None:
        if self.finished or self._rows is not None or self._call.reply.done:
            return
        if self._is_late:
            self._fetch_late(now_ms)
        else:
            self.maybe_respond(now_ms)

    # Responding

    def _maybe_respond(self) -> None:
        if self._rows is None or self._acknowledged is None or self._call.reply.done:
            return
        if any(target.error is not None for target in self._targets):
            self._node.shares.counts.failed_fetches_total += 1
        call = self._call
        response = self._response(self._rows, self._acknowledged)
        if self._node.quotas.is_on and call.throttle_ms == 0:
            # What was acquired is delivered, whatever it weighs: its locks and its delivery count cannot be taken back.
            call.charge_fetch(call.size_of(response), takes_back=False)
        call.respond(response)

    def _response(self, rows: dict[PlaceKey, PartitionData], acknowledged: Results) -> ShareFetchResponse:
        node, group_id = self._node, self._session.key[0]
        hints = LeaderHints(self._call)
        for target in self._targets:
            self._add_error(rows[target.place], target, hints)
        for place, error in acknowledged.items():
            row = rows.setdefault(place, PartitionData(place[1], records=NO_RECORDS))
            if error is not None:
                row.acknowledge_error_code = error.code
                row.acknowledge_error_message = str(error) or errors.default_text(error.code)
                topic = node.image.topics_by_id.get(place[0])
                if error.code in ERRORS_WITH_LEADER and topic is not None:
                    row.current_leader = LeaderIdAndEpoch(*hints.leader_of(topic.name, place[1]))
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=node.shares.settings.limits_of(node.image, group_id).lock_ms
        )
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        for place, row in rows.items():
            if not self._is_in_response(place, row, place in acknowledged):
                continue
            if place[0] not in topics:
                topics[place[0]] = ShareFetchableTopicResponse(place[0])
                response.responses.append(topics[place[0]])
            topics[place[0]].partitions.append(row)
        response.node_endpoints = [NodeEndpoint(*endpoint) for endpoint in hints.endpoints]
        return response

    def _add_error(self, row: PartitionData, target: Target, hints: LeaderHints) -> None:
        if target.error is None:
            return
        row.error_code = target.error.code
        if target.error.code in ERRORS_WITH_LEADER and target.name:
            row.current_leader = LeaderIdAndEpoch(*hints.leader_of(target.name, target.place[1]))

    def _is_in_response(self, place: PlaceKey, row: PartitionData, is_acknowledged: bool) -> bool:
        """An incremental response leaves out partitions of which there is nothing to say."""
        partition = self._session.partitions.get(place)
        is_due = partition is not None and partition.is_due
        if partition is not None:
            partition.is_due = row.error_code != errors.NONE
        if self._request.share_session_epoch == INITIAL_EPOCH or is_acknowledged:
            return True
        return is_due or bool(row.acquired_records) or row.error_code != errors.NONE


def handle_share_fetch(call: Call, request: ShareFetchRequest) -> None:
    entries: dict[PlaceKey, list[Acknowledgement]] = {}
    added: list[PlaceKey] = []
    for topic in request.topics:
        for partition in topic.partitions:
            place = (topic.topic_id, partition.partition_index)
            added.append(place)
            if partition.acknowledgement_batches:
                entries[place] = entries_of(partition.acknowledgement_batches)
    call.node.shares.counts.fetches_total += 1
    removed = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
    try:
        group_id, member_id = check_member(call, request.group_id, request.member_id)
        check_renewal(request)
        sessions = call.node.shares.sessions
        session = sessions.for_fetch((group_id, member_id), request.share_session_epoch, added, removed, bool(entries))
    except KafkaError as error:
        refuse(call, request, error)
        return
    if request.share_session_epoch == INITIAL_EPOCH:
        call.node.shares.hold(call.context, session)
    ShareFetchCall(call, request, session).begin(entries)


def check_renewal(request: ShareFetchRequest) -> None:
    """A request that renews fetches nothing."""
    limits = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
    if request.is_renew_ack and any(limits):
        raise KafkaError(errors.INVALID_REQUEST)


def refuse(call: Call, request: ShareFetchRequest, error: KafkaError) -> None:
    """One session too many is told late: whoever gets that asks again at once."""
    response = ShareFetchResponse(error_code=error.code)
    call.node.shares.counts.failed_fetches_total += 1
    if error.code == errors.SHARE_SESSION_LIMIT_REACHED and request.max_wait_ms > 0:
        call.node.waiting.call_at(call.now_ms + request.max_wait_ms, LateRefusal(call, response))
    else:
        call.respond(response)


class LateRefusal(RecordsWaiter):
    def __init__(self, call: Call, response: ShareFetchResponse) -> None:
        super().__init__()
        self._call = call
        self._response = response

    def on_deadline(self, now_ms: int) -> None:
        if not self._call.reply.done:
            self._call.respond(self._response)
