"""Fetch as a follower sends it: takes note of how far it is, then reads for it up to the end of the log.

In this order, all in one turn: positions of the partitions it names, high watermarks, responses to producers who waited
for them, then reading. The response has records, errors, divergences of logs (KIP-595), and high watermarks and
log starts that the follower has not heard of. Kafka: ReplicaManager.fetchMessages, Partition.fetchRecords.
"""

from __future__ import annotations

from typing import Final

from moldau.api.call import Call
from moldau.api.fetch_context import FIRST_SESSION_VERSION, FIRST_TOPIC_ID_VERSION, list_targets, topic_name
from moldau.api.fetch_responses import FetchLimits, add_partition, failed_read
from moldau.node.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, FetchedPartition, SessionKey
from moldau.node.node import Node
from moldau.node.replica_session import FollowedPartition, ReplicaSession, note_connection
from moldau.node.waiting import ParkedRequest
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.records_data import FileRecords, Records
from moldau.protocol.uuids import ZERO_UUID
from moldau.replication.partition import Partition, PartitionRead
from moldau.storage.disk import ColdRead, File

NO_ERROR: Final = 0
WARMINGS_MAX: Final = 3


class FollowerRound:
    """What one pass over the partitions of a session found worth telling."""

    def __init__(self) -> None:
        self.targets: list[FollowedPartition] = []
        self.reads: list[PartitionRead] = []
        self.size = 0
        self.respond_now = False

    def add(self, target: FollowedPartition, read: PartitionRead) -> None:
        self.targets.append(target)
        self.reads.append(read)


class ParkedFollowerFetch(ParkedRequest):
    """A follower's long poll. Its partitions wake it up; see `ReplicaSession`."""

    def __init__(
        self, call: Call, session: ReplicaSession, limits: FetchLimits, incremental: bool, deadline_ms: int
    ) -> None:
        super().__init__(call.reply, [], deadline_ms)
        self.call = call
        self.session = session
        self.limits = limits
        self.incremental = incremental

    def maybe_respond(self, now_ms: int) -> bool:
        self.session.is_woken = False
        found = read_ready(self.call.node, self.session, self.limits, self.incremental, now_ms)
        if found.size < self.limits.min_bytes and not found.respond_now:
            return False
        self.session.parked = None
        respond(self.call, self.session, found, self.incremental)
        return True

    def respond_at_deadline(self, now_ms: int) -> None:
        self.session.parked = None
        self.call.node.waiting.expired_follower_fetches += 1
        found = read_ready(self.call.node, self.session, self.limits, self.incremental, now_ms)
        respond(self.call, self.session, found, self.incremental)

    def cancel(self) -> None:
        self.finished = True
        if self.session.parked is self:
            self.session.parked = None
        if self.session.session_id == NO_SESSION:
            self.session.close()


def handle_follower_fetch(call: Call, request: FetchRequest, replica_id: int) -> None:
    node = call.node
    epoch = request.session_epoch if call.version >= FIRST_SESSION_VERSION else FINAL_EPOCH
    incremental = epoch not in (INITIAL_EPOCH, FINAL_EPOCH)
    if incremental:
        known = node.fetch_sessions.get(request.session_id)
        error = check_session(known, epoch, replica_id, call.version)
        if error != NO_ERROR or not isinstance(known, ReplicaSession):
            call.respond(FetchResponse(error_code=error))
            return
        session = known
        continue_session(node, session, call.now_ms)
    else:
        session = open_session(call, request, replica_id, epoch == INITIAL_EPOCH)
    if session.connection is not call.context and session.session_id != NO_SESSION:
        note_connection(node.fetch_sessions, session, call.context)
    session.clock.last_fetch_ms = call.now_ms
    is_registered_anew = incremental and session.broker_epoch != request.replica_state.replica_epoch
    session.broker_epoch = request.replica_state.replica_epoch
    named = take_named(node, session, request, call.version)
    # Under another epoch the follower has all its partitions, also those that did not move.
    for target in list(session.followed.values()) if is_registered_anew else named:
        note_position(node, session, target, call.now_ms)
    if incremental and not session.followed:
        # Nothing left to fetch: Kafka drops the session and responds without one.
        node.fetch_sessions.remove(session.session_id)
        session.session_id = NO_SESSION
    limits = FetchLimits(request, node.fetch_bytes_max, call)
    found = read_ready(node, session, limits, incremental, call.now_ms)
    if found.size >= limits.min_bytes or found.respond_now or request.max_wait_ms <= 0 or not session.followed:
        respond(call, session, found, incremental)
        return
    deadline_ms = call.now_ms + request.max_wait_ms
    session.park(ParkedFollowerFetch(call, session, limits, incremental, deadline_ms), call.now_ms)


def refuse_follower(call: Call, request: FetchRequest, replica_id: int) -> None:
    """For who is no broker: every partition is refused, and nothing is learned from the request."""
    epoch = request.session_epoch if call.version >= FIRST_SESSION_VERSION else FINAL_EPOCH
    response = FetchResponse()
    targets: list[FetchedPartition] = []
    if epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        known = call.node.fetch_sessions.get(request.session_id)
        error = check_session(known, epoch, replica_id, call.version)
        if error != NO_ERROR or not isinstance(known, ReplicaSession):
            call.respond(FetchResponse(error_code=error))
            return
        targets.extend(known.followed.values())
    else:
        targets.extend(list_targets(call.node, request, call.version))
    for target in targets:
        add_partition(call, response, target, failed_read(errors.TOPIC_AUTHORIZATION_FAILED))
    call.respond(response)


# Sessions


def check_session(session: object, epoch: int, replica_id: int, version: int) -> int:
    if not isinstance(session, ReplicaSession) or session.replica_id != replica_id:
        return errors.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != epoch:
        return errors.INVALID_FETCH_SESSION_EPOCH
    if session.uses_topic_ids != (version >= FIRST_TOPIC_ID_VERSION):
        return errors.FETCH_SESSION_TOPIC_ID_ERROR
    return NO_ERROR


def continue_session(node: Node, session: ReplicaSession, now_ms: int) -> None:
    session.bump_epoch()
    node.fetch_sessions.touch(session, now_ms)
    parked = session.parked
    if parked is not None:
        # The follower asks again on another connection: nobody reads the response to what it asked before.
        parked.on_deadline(now_ms)


def open_session(call: Call, request: FetchRequest, replica_id: int, wants_session: bool) -> ReplicaSession:
    """Without a free slot, or without the wish for one, the session lasts for this one fetch."""
    node = call.node
    if request.session_id != NO_SESSION:
        node.fetch_sessions.remove(request.session_id)
    uses_ids = call.version >= FIRST_TOPIC_ID_VERSION
    session_id = node.new_session_id() if wants_session else NO_SESSION
    session = ReplicaSession(session_id, uses_ids, replica_id, call.now_ms, node.waiting, node.replicas.context)
    if wants_session and not node.fetch_sessions.maybe_add(session, call.now_ms):
        session.session_id = NO_SESSION
    return session


def take_named(node: Node, session: ReplicaSession, request: FetchRequest, version: int) -> list[FollowedPartition]:
    """The partitions the request names, as they are in the session now."""
    by_id = version >= FIRST_TOPIC_ID_VERSION
    named: list[FollowedPartition] = []
    for topic in request.topics:
        name = topic_name(node, topic.topic, topic.topic_id, version)
        topic_id = topic.topic_id if by_id else ZERO_UUID
        for wanted in topic.partitions:
            key = key_of(name, topic_id, wanted.partition)
            target = session.followed.get(key)
            if target is None:
                target = FollowedPartition(session, name, topic_id, wanted.partition)
                session.followed[key] = target
            target.fetch_offset = wanted.fetch_offset
            target.max_bytes = wanted.partition_max_bytes
            target.current_leader_epoch = wanted.current_leader_epoch
            target.last_fetched_epoch = wanted.last_fetched_epoch
            target.log_start_offset = wanted.log_start_offset
            named.append(target)
    for forgotten in request.forgotten_topics_data:
        name = topic_name(node, forgotten.topic, forgotten.topic_id, version)
        topic_id = forgotten.topic_id if by_id else ZERO_UUID
        for index in forgotten.partitions:
            session.forget(key_of(name, topic_id, index))
    return named


def key_of(name: str, topic_id: bytes, index: int) -> SessionKey:
    return ("", topic_id, index) if topic_id != ZERO_UUID else (name, topic_id, index)


# Positions


def find_partition(node: Node, target: FollowedPartition) -> Partition:
    partition = target.partition
    if partition is not None:
        return partition
    if not target.topic:
        # The topic may have become known since the follower named it.
        target.topic = node.replicas.topic_name(target.topic_id) or ""
        if not target.topic:
            raise KafkaError(errors.UNKNOWN_TOPIC_ID)
    found = node.replicas.find(target.topic, target.index)
    if found is None:
        raise node.replicas.why_missing(target.topic, target.index)
    if target.topic_id != ZERO_UUID and target.topic_id != found.topic_id:
        raise KafkaError(errors.INCONSISTENT_TOPIC_ID)
    target.attach(found)
    return found


def note_position(node: Node, session: ReplicaSession, target: FollowedPartition, now_ms: int) -> None:
    target.mark_ready()
    target.position = None
    try:
        partition = find_partition(node, target)
        if target.partition is None:
            return  # the follower has a later session: what an earlier one says is not how far it is now
        position = partition.on_follower_fetch(
            session.replica_id,
            session.broker_epoch,
            target.fetch_offset,
            target.log_start_offset,
            target.current_leader_epoch,
            target.last_fetched_epoch,
            now_ms,
        )
    except KafkaError:
        return  # reading fails in the same way, and the response says so
    position.clock = session.clock
    target.position = position


# Reading


def read_ready(
    node: Node, session: ReplicaSession, limits: FetchLimits, incremental: bool, now_ms: int
) -> FollowerRound:
    """Reads the partitions that are ready, in their order, until the limit is used up; those that have nothing any more
    leave the list, those that were read go to its end."""
    found = FollowerRound()
    ready, session.ready = session.ready, []
    served: list[FollowedPartition] = []
    left = limits.max_bytes
    min_one_batch = True
    for target in ready:
        if target.is_forgotten:
            continue
        if incremental and left <= 0 and not min_one_batch:
            session.ready.append(target)
            continue
        if target.is_waiting_for_disk():
            session.ready.append(target)  # those who are in sync do not wait for one who catches up from a slow disk
            continue
        if target.partition is None:
            note_position(node, session, target, now_ms)
        try:
            read = read_without_waiting(node, session, target, left, min_one_batch, now_ms)
        except KafkaError as error:
            found.add(target, failed_read(error.code))
            found.respond_now = True
            served.append(target)
            continue
        if read is None:
            session.ready.append(target)
            continue
        records = read.records
        if records is not None and records.size > 0:
            min_one_batch = False
            found.size += records.size
            left = max(0, left - records.size)
            found.add(target, read)
            served.append(target)
        elif read.diverging_end_offset >= 0:
            found.respond_now = True
            found.add(target, read)
            served.append(target)
        elif target.partition is None or has_unread(target, target.partition):
            session.ready.append(target)
        else:
            target.is_ready = False
            if read.log_start_offset != target.sent_log_start_offset and target.sent_log_start_offset >= 0:
                found.respond_now = True
            if differs_from_last_response(target, read):
                target.mark_behind(now_ms)
    session.ready.extend(served)
    return found


def read_without_waiting(
    node: Node, session: ReplicaSession, target: FollowedPartition, left: int, min_one_batch: bool, now_ms: int
) -> PartitionRead | None:
    """None if something is cold that has to be looked at, or the records are: a thread then brings it into memory."""
    disk = node.disk
    wait = target.cold_wait
    disk.refuses_cold = True
    try:
        if wait is not None:
            wait.begin_try()
        read = read_partition(node, session, target, left, min_one_batch, now_ms)
    except ColdRead as cold:
        target.bring(disk, cold)
        return None
    finally:
        disk.refuses_cold = False
        if wait is not None:
            wait.end_try()
    target.cold_wait = None
    records = read.records
    if records is not None and records.size > 0 and is_kept_waiting(target, records):
        return None
    return read


def read_partition(
    node: Node, session: ReplicaSession, target: FollowedPartition, left: int, min_one_batch: bool, now_ms: int
) -> PartitionRead:
    return find_partition(node, target).read_as_follower(
        session.replica_id,
        session.broker_epoch,
        target.fetch_offset,
        min(target.max_bytes, left),
        min_one_batch=min_one_batch,
        current_leader_epoch=target.current_leader_epoch,
        last_fetched_epoch=target.last_fetched_epoch,
        now_ms=now_ms,
    )


def is_kept_waiting(target: FollowedPartition, records: Records) -> bool:
    """Whether the records are cold and a thread now brings them into memory; they are told with a later response. What
    reaches the end of the log was just written, and is not asked about."""
    partition = target.partition
    log = None if partition is None else partition.log
    if log is None or not isinstance(records, FileRecords):
        return False
    file = records.file
    assert isinstance(file, File)
    active = log.active
    if file is active.file and records.position + records.size == active.size:
        return False
    if target.warmings >= WARMINGS_MAX or file.is_resident(records.position, records.size):
        target.warmings = 0
        return False
    target.warm(file, records.position, records.size)
    return True


def has_unread(target: FollowedPartition, partition: Partition) -> bool:
    """Records that did not fit under the limits come later."""
    log = partition.log
    return log is not None and target.fetch_offset < log.log_end_offset


def differs_from_last_response(target: FollowedPartition, read: PartitionRead) -> bool:
    return (
        read.high_watermark != target.sent_high_watermark
        or read.log_start_offset != target.sent_log_start_offset
        or target.sent_error != NO_ERROR
    )


# Responding


def respond(call: Call, session: ReplicaSession, found: FollowerRound, incremental: bool) -> None:
    response = FetchResponse(session_id=session.session_id)
    for index in range(len(found.targets)):
        target, read = found.targets[index], found.reads[index]
        tell(call, response, target, read)
        records, partition = read.records, target.partition
        if records is not None and partition is not None:
            partition.count_replicated(records.size, session.replica_id)
            if partition.is_throttled_as_leader():
                partition.context.leader_quota.record(records.size, call.now_ms)
    behind, session.behind = session.behind, []
    for target in behind:
        target.is_behind = False
        if not target.is_ready and not target.is_forgotten:
            tell_state(call, response, target)
    if not incremental:
        for target in session.followed.values():
            if target.sent_error < NO_ERROR:
                tell_state(call, response, target)  # a full response has every partition
    session.last_used_ms = call.now_ms
    if session.session_id == NO_SESSION:
        session.close()
    call.respond(response)


def tell(call: Call, response: FetchResponse, target: FollowedPartition, read: PartitionRead) -> None:
    add_partition(call, response, target, read)
    target.sent_high_watermark = read.high_watermark
    target.sent_log_start_offset = read.log_start_offset
    target.sent_error = read.error


def tell_state(call: Call, response: FetchResponse, target: FollowedPartition) -> None:
    """High watermark and log start alone, if the follower does not know them."""
    partition = target.partition
    log = None if partition is None else partition.log
    if partition is None or log is None:
        return
    high_watermark = partition.high_watermark.offset
    read = PartitionRead(high_watermark, log.last_stable_offset(high_watermark), log.log_start_offset)
    if differs_from_last_response(target, read):
        tell(call, response, target, read)
