"""Share fetches and acknowledgements on their way: one request at a time for each node, which may carry both.

What was said of records goes to the node that delivered them and nowhere else. It fails here, without being sent, where
that node does not lead the partition any more or its session is over: the records are somebody else's by then. Whatever
happens, each Acknowledgements object is finished once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from moldau.client.connection.cluster import Cluster
from moldau.client.connection.wire import Call
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError, error_for
from moldau.client.group.membership import FOREVER_MS
from moldau.client.metrics.reading import ShareMeter
from moldau.client.results import TopicPartition
from moldau.client.share.acknowledgements import Acknowledgements, SharePartition, to_ranges
from moldau.client.share.fetcher import ShareFetcher
from moldau.client.share.session import SESSION_ERRORS, Ranges, ShareSession
from moldau.protocol.errors import (
    INVALID_RECORD_STATE,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from moldau.protocol.messages import share_acknowledge_response as acknowledged
from moldau.protocol.messages import share_fetch_response as fetched
from moldau.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from moldau.protocol.messages.share_fetch_request import ShareFetchRequest
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords

Response = TypeVar("Response", bound=Message)

logger = logging.getLogger("moldau.client")

BATCH_OPTIMIZED = 0
RECORD_LIMIT = 1

# Errors of a partition after which its leader is somewhere else, or it is not there any more: nothing to try again.
_GONE = (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)


class ShareFetchSettings(NamedTuple):
    """How to fetch."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    acquire_mode: int
    request_timeout_ms: int


class _Node:
    """One broker: the session with it, what waits for it, and whether something is on its way."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.session = ShareSession()
        self.pending: list[Acknowledgements] = []
        self.in_flight = False
        self.fetching = False
        self.not_before_ms = 0
        self.failures = 0


_Sent = dict[SharePartition, list[Acknowledgements]]


class ShareRequests:
    """The requests of one share consumer to the leaders of its partitions."""

    def __init__(
        self,
        cluster: Cluster,
        fetcher: ShareFetcher,
        settings: ShareFetchSettings,
        stale_topics: set[str],
        when_finished: Callable[[Acknowledgements], None],
        meter: ShareMeter,
    ) -> None:
        """when_finished: told of each Acknowledgements object once its fate is known."""
        self._cluster = cluster
        self._fetcher = fetcher
        self._settings = settings
        self._stale_topics = stale_topics
        self._when_finished = when_finished
        self._meter = meter
        self._nodes: dict[int, _Node] = {}
        # The partitions to fetch, and whether anybody wants their records now.
        self.partitions: list[SharePartition] = []
        self.wants_records = False
        self.closing = False
        # What the user has to be told by the next poll().
        self.problem: ClientError | None = None
        self.lock_duration_ms: int | None = None
        self.in_flight = 0
        self._turn = 0
        self._leader_failures = 0
        self._leaders_not_before_ms = 0

    # What is wanted

    def submit(self, acknowledgements: Acknowledgements) -> None:
        """Goes out with the next request to the node that delivered the records."""
        self._node(acknowledgements.node_id).pending.append(acknowledgements)

    def assign(self, partitions: Iterable[SharePartition]) -> None:
        self.partitions = list(partitions)

    def _node(self, node_id: int) -> _Node:
        return self._nodes.setdefault(node_id, _Node(node_id))

    @property
    def busy(self) -> bool:
        """Something is on its way or waits to be."""
        return self.in_flight > 0 or any(node.pending for node in self._nodes.values())

    def next_deadline_ms(self) -> int:
        """When step() has something to send, apart from fetches, which only poll() wants."""
        idle = [node for node in self._nodes.values() if not node.in_flight]
        waits = [node.not_before_ms for node in idle if node.pending]
        if self.wants_records:
            now_ms = self._cluster.network.now_ms()
            waits += [node.not_before_ms for node in idle if node.not_before_ms > now_ms]
            waits.append(self._leaders_not_before_ms if self._leader_failures else FOREVER_MS)
        return min(waits, default=FOREVER_MS)

    def step(self, now_ms: int) -> None:
        """Sends whatever can leave now."""
        wanted = self._by_leader(now_ms) if self.wants_records and not self.closing else {}
        for node_id in wanted:
            self._node(node_id)
        nodes = list(self._nodes.values())
        leaders = set(wanted)
        if self._settings.acquire_mode == RECORD_LIMIT and wanted:
            wanted = self._only_one(nodes, wanted, now_ms)
        for node in nodes:
            if not node.in_flight and now_ms >= node.not_before_ms:
                idle = self.wants_records and not self.closing and node.node_id not in leaders
                self._send_to(node, wanted.get(node.node_id), idle)

    def _by_leader(self, now_ms: int) -> dict[int, list[SharePartition]]:
        found: dict[int, list[SharePartition]] = {}
        leaderless: set[str] = set()
        for item in self.partitions:
            leader = self._cluster.leader(item.name)
            if leader is None:
                leaderless.add(item.topic)
            else:
                found.setdefault(leader.leader, []).append(item)
        if not leaderless:
            self._leader_failures = 0
        elif now_ms >= self._leaders_not_before_ms:
            self._leader_failures += 1
            self._leaders_not_before_ms = now_ms + self._cluster.backoff.delay_ms(self._leader_failures)
            self._stale_topics.update(leaderless)
        return found

    def _only_one(
        self, nodes: list[_Node], wanted: dict[int, list[SharePartition]], now_ms: int
    ) -> dict[int, list[SharePartition]]:
        """Records up to a limit can be asked of one node at a time only, each in its turn."""
        ready = sorted(
            node.node_id
            for node in nodes
            if node.node_id in wanted and not node.in_flight and now_ms >= node.not_before_ms
        )
        if not ready or any(node.fetching for node in nodes):
            return {}
        self._turn += 1
        chosen = ready[self._turn % len(ready)]
        return {chosen: wanted[chosen]}

    # Requests

    def _send_to(self, node: _Node, wanted: list[SharePartition] | None, idle: bool) -> None:
        """idle: the node leads nothing that is wanted, which it is to know."""
        acknowledgements = self._sendable(node)
        if idle and node.session.held:
            wanted = []
        renews = any(item.renews for item in acknowledgements)
        if wanted is not None and not renews and node.node_id in self._cluster.brokers:
            self._send_fetch(node, wanted, acknowledgements)
        elif acknowledgements:
            self._send_acknowledge(node, acknowledgements, renews)

    def _sendable(self, node: _Node) -> list[Acknowledgements]:
        pending, node.pending = node.pending, []
        sendable: list[Acknowledgements] = []
        for item in pending:
            leader = self._cluster.leader(item.partition.name)
            if node.session.is_new or (leader is not None and leader.leader != node.node_id):
                self._finish(item, error_for(NOT_LEADER_OR_FOLLOWER, _moved(item)))
            elif node.node_id not in self._cluster.brokers:
                self._finish(item, NetworkError(f"Broker {node.node_id} is not in the cluster's metadata."))
            else:
                sendable.append(item)
                self._meter.acknowledgements.add(len(item.types))
        return sendable

    def _send_fetch(self, node: _Node, wanted: list[SharePartition], acknowledgements: list[Acknowledgements]) -> None:
        settings = self._settings
        sent, ranges = _merge(acknowledgements)
        request = ShareFetchRequest(
            group_id=settings.group_id,
            member_id=settings.member_id,
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            max_records=settings.max_records if wanted else 0,
            batch_size=settings.max_records,
            share_acquire_mode=settings.acquire_mode,
        )
        node.session.fill_fetch(request, wanted, ranges)
        named = {(item.topic_id, item.partition): item for item in [*wanted, *sent]}

        def on_done(call: Call[fetched.ShareFetchResponse]) -> None:
            self._on_fetched(call, node, sent, named)

        node.fetching = bool(wanted)
        self._start(
            node,
            Call(
                request,
                fetched.ShareFetchResponse,
                settings.request_timeout_ms + settings.max_wait_ms,
                when_done=on_done,
            ),
        )

    def _send_acknowledge(self, node: _Node, acknowledgements: list[Acknowledgements], renews: bool) -> None:
        sent, ranges = _merge(acknowledgements)
        request = ShareAcknowledgeRequest(
            group_id=self._settings.group_id, member_id=self._settings.member_id, is_renew_ack=renews
        )
        node.session.fill_acknowledge(request, ranges)
        self._start(node, self._acknowledge_call(node, request, sent, self._settings.request_timeout_ms))

    def _acknowledge_call(
        self, node: _Node, request: ShareAcknowledgeRequest, sent: _Sent, timeout_ms: int
    ) -> Call[acknowledged.ShareAcknowledgeResponse]:
        def on_done(call: Call[acknowledged.ShareAcknowledgeResponse]) -> None:
            self._on_acknowledged(call, node, sent)

        return Call(request, acknowledged.ShareAcknowledgeResponse, timeout_ms, when_done=on_done)

    def _start(self, node: _Node, call: Call[Response]) -> None:
        node.in_flight = True
        self.in_flight += 1
        self._cluster.submit(self._cluster.broker_address(node.node_id), call)

    # Responses

    def _on_fetched(
        self,
        call: Call[fetched.ShareFetchResponse],
        node: _Node,
        sent: _Sent,
        named: dict[tuple[bytes, int], SharePartition],
    ) -> None:
        node.fetching = False
        if not self._on_response(node, call.error, None if call.error is not None else call.response(), sent):
            return
        response = call.response()
        if response.acquisition_lock_timeout_ms > 0:
            self.lock_duration_ms = response.acquisition_lock_timeout_ms
        now_ms = self._cluster.network.now_ms()
        self._cluster.window.tick(now_ms)
        known = {(item.topic_id, item.partition): item for item in node.session.held} | named
        failed = False
        for topic in response.responses:
            for row in topic.partitions:
                item = known.get((topic.topic_id, row.partition_index))
                if item is None:
                    continue
                self._finish_all(sent.pop(item, ()), row.acknowledge_error_code, row.acknowledge_error_message, row)
                if row.error_code == NONE:
                    self._count(item.topic, row)
                    self._fetcher.add(item, node.node_id, row, now_ms)
                else:
                    failed = True
                    self._on_fetch_error(item, row)
        self._meter.end_response(now_ms - (call.deadline_ms - call.timeout_ms))
        self._finish_missing(sent)
        self._pause(node, failed)
        if not self._fetcher.empty:
            self.wants_records = False

    def _count(self, topic: str, row: fetched.PartitionData) -> None:
        if isinstance(row.records, MemoryRecords) and row.acquired_records:
            acquired = sum(item.last_offset - item.first_offset + 1 for item in row.acquired_records)
            self._meter.add_fetched(topic, int(row.records.size), acquired)

    def _on_acknowledged(self, call: Call[acknowledged.ShareAcknowledgeResponse], node: _Node, sent: _Sent) -> None:
        if not self._on_response(node, call.error, None if call.error is not None else call.response(), sent):
            return
        response = call.response()
        if response.acquisition_lock_timeout_ms > 0:
            self.lock_duration_ms = response.acquisition_lock_timeout_ms
        by_id = {(item.topic_id, item.partition): item for item in sent}
        failed = False
        for topic in response.responses:
            for row in topic.partitions:
                item = by_id.get((topic.topic_id, row.partition_index))
                if item is not None and item in sent:
                    failed = failed or row.error_code != NONE
                    self._finish_all(sent.pop(item), row.error_code, row.error_message, row)
        self._finish_missing(sent)
        self._pause(node, failed)

    def _on_response(
        self,
        node: _Node,
        error: ClientError | None,
        response: fetched.ShareFetchResponse | acknowledged.ShareAcknowledgeResponse | None,
        sent: _Sent,
    ) -> bool:
        """What both kinds of responses have in common; False if there is nothing more to see."""
        node.in_flight = False
        self.in_flight -= 1
        if response is None:
            assert error is not None
            self._end_session(node)
            if isinstance(error, NetworkError | RequestTimeoutError):
                self._stale_topics.update(item.topic for item in self.partitions)
            elif not self.closing:
                self.problem = error
        else:
            for row in response.node_endpoints:
                self._cluster.learn_broker(row.node_id, row.host, row.port, row.rack)
            if response.error_code == NONE:
                node.session.on_response(NONE)
                return True
            error = error_for(response.error_code, response.error_message)
            node.session.on_response(response.error_code)
            if response.error_code in SESSION_ERRORS:
                self._end_session(node)
            elif not error.retriable and not self.closing:
                self.problem = error
        for items in sent.values():
            for item in items:
                self._finish(item, error)
        self._pause(node, True)
        return False

    def _end_session(self, node: _Node) -> None:
        """Whatever the broker had locked for us it has released, or will."""
        node.session.reset()
        self._fetcher.forget_node(node.node_id)
        pending, node.pending = node.pending, []
        for item in pending:
            self._finish(item, error_for(NOT_LEADER_OR_FOLLOWER, _moved(item)))

    def _pause(self, node: _Node, failed: bool) -> None:
        """After a failure, and where the broker throttles: what is sent then would only wait."""
        network = self._cluster.network
        node.failures = node.failures + 1 if failed else 0
        pause_ms = self._cluster.backoff.delay_ms(node.failures) if failed else 0
        if node.node_id in self._cluster.brokers:
            pause_ms = max(pause_ms, network.throttled_ms(self._cluster.broker_address(node.node_id)))
        node.not_before_ms = network.now_ms() + pause_ms if pause_ms else 0

    def _on_fetch_error(self, item: SharePartition, row: fetched.PartitionData) -> None:
        error = error_for(row.error_code, row.error_message)
        if error.refresh_metadata or row.error_code in _GONE:
            if not self._learn_leader(item.name, row):
                self._stale_topics.add(item.topic)
        elif row.error_code == TOPIC_AUTHORIZATION_FAILED:
            self.problem = error_for(row.error_code, f"Not authorized to read topic {item.topic}.")
        elif error.retriable or row.error_code == UNKNOWN_SERVER_ERROR:
            logger.warning("Cannot fetch %s for now: %s", item.name, error)
        else:
            self.problem = error

    def _learn_leader(self, partition: TopicPartition, row: fetched.PartitionData | acknowledged.PartitionData) -> bool:
        """KIP-951: the response may have named the new leader."""
        hint = row.current_leader
        return hint is not None and self._cluster.learn_leader(partition, hint.leader_id, hint.leader_epoch)

    # The fate of acknowledgements

    def _finish_all(
        self,
        items: Iterable[Acknowledgements],
        code: int,
        message: str | None,
        row: fetched.PartitionData | acknowledged.PartitionData,
    ) -> None:
        for item in items:
            if code == NONE:
                self._finish(item, None)
                continue
            error = error_for(code, message)
            if error.refresh_metadata and not self._learn_leader(item.partition.name, row):
                self._stale_topics.add(item.partition.topic)
            again = error.retriable and not error.refresh_metadata and code not in _GONE
            if again and self._cluster.network.now_ms() < item.deadline_ms:
                self.submit(item)
            else:
                self._finish(item, error)

    def _finish_missing(self, sent: _Sent) -> None:
        for items in sent.values():
            for item in items:
                sentence = f"The broker did not say what became of the acknowledgements of {item.partition.name}."
                self._finish(item, error_for(INVALID_RECORD_STATE, sentence))

    def _finish(self, item: Acknowledgements, error: ClientError | None) -> None:
        if not item.done:
            if error is not None:
                self._meter.failed_acknowledgements.add(len(item.types))
            item.finish(error)
            self._when_finished(item)

    def give_up(self, item: Acknowledgements, error: ClientError) -> None:
        """Nobody waits for it any longer; where it is on its way it may still be carried out."""
        for node in self._nodes.values():
            if item in node.pending:
                node.pending.remove(item)
        self._finish(item, error)

    # The end

    def close(self, deadline_ms: int) -> None:
        """Sends what was said last and ends all sessions, so that the brokers release what is still locked."""
        self.closing = True
        self.wants_records = False
        network = self._cluster.network
        ended: set[int] = set()
        while network.now_ms() < deadline_ms:
            for node in self._nodes.values():
                if not node.in_flight and node.node_id not in ended:
                    ended.add(node.node_id)
                    self._send_last(node, max(1, deadline_ms - network.now_ms()))
            if not self.in_flight and len(ended) == len(self._nodes):
                break
            network.poll(deadline_ms - network.now_ms())
        for node in self._nodes.values():
            for item in list(node.pending):
                self.give_up(item, RequestTimeoutError("The consumer was closed before this could be sent."))

    def _send_last(self, node: _Node, timeout_ms: int) -> None:
        acknowledgements = self._sendable(node)
        if node.session.is_new or node.node_id not in self._cluster.brokers:
            return
        sent, ranges = _merge(acknowledgements)
        renews = any(item.renews for item in acknowledgements)
        request = ShareAcknowledgeRequest(
            group_id=self._settings.group_id, member_id=self._settings.member_id, is_renew_ack=renews
        )
        node.session.fill_acknowledge(request, ranges, last=True)
        timeout_ms = min(timeout_ms, self._settings.request_timeout_ms)
        self._start(node, self._acknowledge_call(node, request, sent, timeout_ms))


def _merge(acknowledgements: list[Acknowledgements]) -> tuple[_Sent, Ranges]:
    """By partition; of an offset that is named twice the later type counts."""
    sent: _Sent = {}
    types: dict[SharePartition, dict[int, int]] = {}
    for item in acknowledgements:
        sent.setdefault(item.partition, []).append(item)
        types.setdefault(item.partition, {}).update(item.types)
    return sent, {partition: to_ranges(found) for partition, found in types.items()}


def _moved(item: Acknowledgements) -> str:
    return (
        f"The records of {item.partition.name} were delivered by broker {item.node_id}, which does not lead the"
        " partition any more or has ended the session: they are delivered to somebody again."
    )
