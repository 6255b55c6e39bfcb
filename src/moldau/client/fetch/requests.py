"""Sends fetches to leaders, or to the replicas they name, and takes the responses over; one at a time per broker."""

from __future__ import annotations

from moldau.client.connection.cluster import Cluster
from moldau.client.connection.wire import Call
from moldau.client.errors import ClientError, error_for
from moldau.client.fetch.fetcher import NO_EPOCH, NO_REPLICA, Fetcher, PartitionState
from moldau.client.fetch.positions import Positions
from moldau.client.fetch.session import FetchSession, Wanted
from moldau.client.results import TopicPartition
from moldau.protocol.errors import OFFSET_OUT_OF_RANGE
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.uuids import ZERO_UUID

# From this version on, Fetch names topics by id.
FETCH_TOPIC_ID_VERSION = 13


class FetchSettings:
    """How to fetch."""

    def __init__(
        self,
        *,
        isolation: int,
        max_wait_ms: int,
        min_bytes: int,
        partition_max_bytes: int,
        rack: str,
        request_timeout_ms: int,
        metadata_age_max_ms: int,
        reset_policy: str,
    ) -> None:
        self.isolation = isolation
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.partition_max_bytes = partition_max_bytes
        self.rack = rack
        self.request_timeout_ms = request_timeout_ms
        self.metadata_age_max_ms = metadata_age_max_ms
        self.reset_policy = reset_policy


class FetchRequests:
    """The fetches of one consumer."""

    def __init__(self, cluster: Cluster, fetcher: Fetcher, positions: Positions, settings: FetchSettings) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._positions = positions
        self._settings = settings
        self._partition_max_bytes = settings.partition_max_bytes
        self._sessions: dict[int, FetchSession] = {}

    def limit_partition_bytes(self, limit: int) -> None:
        """Requests from now on ask for at most so many bytes of a partition, in place of what the settings say."""
        self._partition_max_bytes = limit

    def send(self) -> None:
        """Asks for whatever may be fetched now."""
        by_broker: dict[int, list[PartitionState]] = {}
        network = self._cluster.network
        now_ms = network.now_ms()
        for state in self._fetcher.fetchable(now_ms):
            broker_id = self._broker_for(state, now_ms)
            if broker_id is None:
                self._positions.want_leader(state)
            elif not self._positions.is_unvalidated(state):
                address = self._cluster.broker_address(broker_id)
                if not network.in_flight_count(address) and not network.throttled_ms(address):
                    by_broker.setdefault(broker_id, []).append(state)
        for broker_id, states in by_broker.items():
            self._send_fetch(broker_id, states)

    def _broker_for(self, state: PartitionState, now_ms: int) -> int | None:
        """The leader, or the replica nearer to us that it named (KIP-392)."""
        leader = self._cluster.leader(state.partition)
        if leader is None:
            return None
        if state.preferred_replica != NO_REPLICA:
            if now_ms < state.preferred_until_ms and state.preferred_replica in self._cluster.brokers:
                return state.preferred_replica
            state.preferred_replica = NO_REPLICA
        return leader.leader

    def _send_fetch(self, broker_id: int, states: list[PartitionState]) -> None:
        wanted: dict[TopicPartition, Wanted] = {}
        asked: dict[TopicPartition, int] = {}
        for state in states:
            leader = self._cluster.leader(state.partition)
            topic_id = self._cluster.topics[state.partition.topic].topic_id
            epoch = NO_EPOCH if leader is None else leader.leader_epoch
            wanted[state.partition] = Wanted(topic_id, state.fetch_offset, epoch, self._partition_max_bytes)
            asked[state.partition] = state.fetch_offset
            state.in_flight = True
        request = FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=max(1, self._fetcher.bytes_wanted),
            isolation_level=self._settings.isolation,
            rack_id=self._settings.rack,
        )
        self._sessions.setdefault(broker_id, FetchSession()).fill(request, wanted)
        highest = FETCH_TOPIC_ID_VERSION - 1 if any(row.topic_id == ZERO_UUID for row in wanted.values()) else None

        def on_done(call: Call[FetchResponse]) -> None:
            self._on_response(call, broker_id, states, asked)

        timeout_ms = self._settings.request_timeout_ms + self._settings.max_wait_ms
        call = Call(request, FetchResponse, timeout_ms, highest, True, on_done)
        self._cluster.submit(self._cluster.broker_address(broker_id), call)

    def _on_response(
        self, call: Call[FetchResponse], broker_id: int, states: list[PartitionState], asked: dict[TopicPartition, int]
    ) -> None:
        for state in states:
            state.in_flight = False
        session = self._sessions[broker_id]
        error = call.error
        if error is None:
            session.on_response(call.response().session_id, call.response().error_code)
            if call.response().error_code != 0:
                error = error_for(call.response().error_code)
        else:
            session.reset()
        if error is not None:
            for state in states:
                state.preferred_replica = NO_REPLICA
                self._on_error(state, error)
            return
        response = call.response()
        now_ms = self._cluster.network.now_ms()
        sent_ms = call.deadline_ms - call.timeout_ms
        self._cluster.window.tick(now_ms)
        for node in response.node_endpoints:
            self._cluster.learn_broker(node.node_id, node.host, node.port, node.rack)
        for topic in response.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                found = self._fetcher.partitions.get(TopicPartition(name, row.partition_index))
                if found is not None and found.partition in asked:
                    self._on_row(found, asked[found.partition], row)
        self._fetcher.meter.end_response(now_ms - sent_ms)

    def _on_row(self, state: PartitionState, asked: int, row: PartitionData) -> None:
        if row.preferred_read_replica >= 0 and row.error_code == 0:
            state.preferred_replica = row.preferred_read_replica
            state.preferred_until_ms = self._cluster.network.now_ms() + self._settings.metadata_age_max_ms
        problem = self._fetcher.on_partition(state, asked, row)
        if problem is None:
            return
        if state.preferred_replica != NO_REPLICA:
            state.preferred_replica = NO_REPLICA  # ask the leader before believing it
            return
        hint = row.current_leader
        if problem.refresh_metadata and self._cluster.learn_leader(state.partition, hint.leader_id, hint.leader_epoch):
            return  # KIP-951: the response named the leader, go on there at once
        self._on_error(state, problem)

    def _on_error(self, state: PartitionState, error: ClientError) -> None:
        if error.code != OFFSET_OUT_OF_RANGE:
            self._positions.on_error(state, error)
        elif self._settings.reset_policy != "none":
            self._fetcher.reset(state, self._positions.reset_timestamp())
        else:
            sentence = f"Offset {state.fetch_offset} of {state.partition} is out of range."
            self._positions.problem = error_for(error.code, sentence)
