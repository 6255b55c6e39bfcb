"""A share consumer's place in its group: joins coordinator, membership and topics, and says which partitions to fetch.

drive() may be called by any thread that is inside the gate: it sends what is due and takes responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClientError
from moldau.client.group.coordinator import Coordinator
from moldau.client.group.membership import FOREVER_MS
from moldau.client.group.topics import GroupTopics
from moldau.client.metrics.membership import GroupMeter
from moldau.client.share.acknowledgements import SharePartition
from moldau.client.share.membership import ShareMembership
from moldau.protocol.errors import NONE
from moldau.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from moldau.protocol.primitives import Message

# How often topics are looked at without any news of them: their metadata may have grown old.
LOOK_AGAIN_MS = 200


class ShareGroup:
    """Everything of one share consumer that has to do with its group's coordinator."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        membership: ShareMembership,
        request_timeout_ms: int,
        metadata_age_max_ms: int,
        on_assignment: Callable[[list[SharePartition]], None],
    ) -> None:
        """on_assignment: told which partitions to fetch whenever these are others."""
        self._cluster = cluster
        self.membership = membership
        self._request_timeout_ms = request_timeout_ms
        self._on_assignment = on_assignment
        self.meter = membership.meter = GroupMeter(cluster.window, cluster.network.now_ms)
        self.coordinator = Coordinator(cluster, group_id, request_timeout_ms)
        self.coordinator.on_response = self.touch
        self.topics = GroupTopics(cluster, request_timeout_ms, metadata_age_max_ms, False)
        self.subscription: set[str] = set()
        self._assigned: list[SharePartition] = []
        self._looked_at = -1
        self._look_again_ms = 0
        self._next_due_ms = 0

    def subscribe(self, topics: Iterable[str]) -> None:
        self.subscription = set(topics)
        self.topics.names = set(self.subscription)
        self.membership.subscribe(self.subscription)
        self.touch()

    def touch(self) -> None:
        """Something changed: the next drive() looks at everything."""
        self._next_due_ms = 0

    def until_due_ms(self) -> int:
        """How long drive() has nothing to do; 0 or less: it has something to do now."""
        return self._next_due_ms - self._cluster.network.now_ms()

    def on_poll(self, now_ms: int) -> None:
        if self.membership.on_poll(now_ms):
            self.touch()

    def drive(self) -> None:
        now_ms = self._cluster.network.now_ms()
        self.topics.stale.intersection_update(self.topics.names)
        news = self._looked_at != self._cluster.metadata_version or bool(self.topics.stale)
        if not news and now_ms < self._next_due_ms and now_ms < self._look_again_ms:
            return
        membership = self.membership
        if self.subscription:
            membership.tick(now_ms)
            self.topics.ids = set(membership.assignment)
            self.topics.step(now_ms)
        if self._needs_coordinator():
            self.coordinator.find(now_ms)
        while self.coordinator.known and (request := membership.next_request(now_ms)) is not None:
            self._send(request)
        self._take_over()
        self._looked_at = self._cluster.metadata_version
        self._look_again_ms = now_ms + LOOK_AGAIN_MS
        self._next_due_ms = self._next_deadline_ms()

    def _needs_coordinator(self) -> bool:
        return bool(self.subscription and self.membership.fatal is None) or self.membership.leaving

    def _next_deadline_ms(self) -> int:
        deadline_ms = self.topics.next_deadline_ms() if self.subscription else FOREVER_MS
        if self.coordinator.known:
            return min(deadline_ms, self.membership.next_deadline_ms())
        if self._needs_coordinator():
            return min(deadline_ms, self.coordinator.next_deadline_ms())
        return deadline_ms

    def _send(self, request: Message) -> None:
        membership = self.membership
        sent_ms = self._cluster.network.now_ms()
        self.meter.on_request(request)

        def when_done(response: ShareGroupHeartbeatResponse | None, error: ClientError | None) -> None:
            now_ms = self._cluster.network.now_ms()
            if response is not None and response.error_code == NONE:
                self.meter.on_response(request, now_ms - sent_ms)
            if response is None:
                assert error is not None
                membership.on_failure(request, error, now_ms)
            elif not membership.on_response(request, response, now_ms):
                self.coordinator.forget("it said that the group is elsewhere.")

        self.coordinator.send(request, ShareGroupHeartbeatResponse, self._request_timeout_ms, when_done)

    def _take_over(self) -> None:
        """The assignment by name; a topic whose name is not known yet is asked for, and comes later."""
        names = self.topics.resolve(self.membership.assignment)
        found = [
            SharePartition(topic_id, names[topic_id], partition)
            for topic_id, partitions in sorted(self.membership.assignment.items())
            if topic_id in names
            for partition in sorted(partitions)
        ]
        if found != self._assigned:
            self._assigned = found
            self._on_assignment(found)

    def take_problem(self) -> ClientError | None:
        """What the user has to be told, once; an error that stays is told every time."""
        if self.subscription and self.membership.fatal is not None:
            return self.membership.fatal
        for owner in (self.membership, self.coordinator, self.topics):
            problem = owner.problem
            if problem is not None:
                owner.problem = None
                return problem
        return None

    def leave(self, deadline_ms: int, reason: str) -> None:
        """Leaves and waits for the response until the deadline."""
        network = self._cluster.network
        self.membership.leave(network.now_ms(), reason)
        self.subscription = set()
        self.topics.names = set()
        self.touch()
        failures = self.coordinator.failures
        while self.membership.leaving and network.now_ms() < deadline_ms:
            if not self.coordinator.known and self.coordinator.failures > failures:
                break  # nobody to tell: the session will end by itself
            network.poll(deadline_ms - network.now_ms())
        self._take_over()
