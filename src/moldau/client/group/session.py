"""A consumer's place in its group: joins coordinator, membership, topics, commits and rebalances, for both protocols.

drive() may be called by any thread that is inside the gate: it sends what is due and takes responses. step() is the
user's, called by poll(): it does what only the user's thread may do, such as calling the listener.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable
from functools import partial

from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClientError, RequestTimeoutError, WakeupError, error_for
from moldau.client.fetch.fetcher import Fetcher, PartitionState
from moldau.client.fetch.positions import Positions
from moldau.client.group.classic import ClassicMembership
from moldau.client.group.commits import Callback, Commit, Commits, Offsets
from moldau.client.group.consumer import ConsumerMembership
from moldau.client.group.coordinator import Coordinator
from moldau.client.group.leader import ClassicLeader
from moldau.client.group.listener import RebalanceListener
from moldau.client.group.membership import Membership, new_member_id
from moldau.client.group.offsets import Committed, CommittedOffsets
from moldau.client.group.rebalance import ClassicRebalance, ConsumerRebalance, Rebalance
from moldau.client.group.settings import CLASSIC, GroupSettings
from moldau.client.group.subscription import Subscription
from moldau.client.group.topics import GroupTopics
from moldau.client.metrics.membership import GroupMeter
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from moldau.protocol import api_keys
from moldau.protocol.errors import INVALID_REQUEST, NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

Pattern = str | re.Pattern[str]

# How often topics are looked at without any news of them: their metadata may have grown old.
LOOK_AGAIN_MS = 200


class ConsumerGroup:
    """Everything of one consumer that has to do with its group."""

    def __init__(
        self,
        settings: GroupSettings,
        cluster: Cluster,
        fetcher: Fetcher,
        positions: Positions,
        *,
        request_timeout_ms: int,
        metadata_age_max_ms: int,
        exclude_internal: bool,
        call: Callable[[Callable[[], object]], None],
    ) -> None:
        """call: runs the user's code, outside of the gate."""
        self.settings = settings
        self._cluster = cluster
        self._fetcher = fetcher
        self._positions = positions
        self._request_timeout_ms = request_timeout_ms
        self._call = call
        self.meter = GroupMeter(cluster.window, cluster.network.now_ms)
        self.coordinator = Coordinator(cluster, settings.group_id, request_timeout_ms)
        self.topics = GroupTopics(cluster, request_timeout_ms, metadata_age_max_ms, exclude_internal)
        self._subscription = Subscription()
        self._leader = ClassicLeader(settings, self.topics, self._subscription, self._owned)
        self._classic: ClassicMembership | None = None
        self._modern: ConsumerMembership | None = None
        if settings.protocol == CLASSIC:
            self._classic = ClassicMembership(settings, cluster.backoff, self._protocols)
        else:
            self._modern = ConsumerMembership(settings, cluster.backoff, new_member_id())
        self.membership.meter = self.meter
        self._identity = ConsumerGroupMetadata(settings.group_id, group_instance_id=settings.instance_id)
        self.commits = Commits(
            cluster, self.coordinator, self._active, self._identity, request_timeout_ms, positions.stale_topics.add
        )
        self.commits.meter = self.meter
        self.committed_offsets = CommittedOffsets(
            cluster,
            self.coordinator,
            self._asker,
            settings.require_stable,
            request_timeout_ms,
            positions.stale_topics.add,
        )
        self._rebalance = Rebalance(settings, fetcher, self._commit_before_rebalance, call)
        self._rebalance.meter = self.meter
        self._duties: ClassicRebalance | ConsumerRebalance
        if self._classic is not None:
            self._duties = ClassicRebalance(
                self._rebalance, self._classic, self._subscription.includes, self._on_assigned
            )
        else:
            assert self._modern is not None
            self._duties = ConsumerRebalance(self._rebalance, self._modern, self.topics.resolve, self._on_assigned)
        self._asked_committed = False
        self._in_duty = False
        self._looked_at = -1
        self._look_again_ms = 0
        self._next_due_ms = 0
        self.coordinator.on_response = self.touch
        self._next_auto_commit_ms: int | None = None
        self._auto_commit: Commit | None = None
        self.wakeup_requested: Callable[[], bool] = _never

    @property
    def membership(self) -> Membership:
        membership = self._classic or self._modern
        assert membership is not None
        return membership

    @property
    def subscribed(self) -> bool:
        return self._subscription.active

    def _owned(self) -> list[TopicPartition]:
        return list(self._fetcher.partitions)

    def _protocols(self) -> list[tuple[str, bytes]]:
        assert self._classic is not None
        return self._leader.protocols(self._classic.generation_id)

    def _active(self) -> Membership | None:
        """None while the user assigns partitions: commits are then made outside of any membership."""
        return self.membership if self.subscribed else None

    def _asker(self) -> ConsumerGroupMetadata:
        """Who asks for committed offsets: with a member epoch, a stale member is noticed (KIP-848)."""
        if self._modern is not None and self.subscribed and self._modern.epoch > 0:
            return self._modern.metadata()
        return self._identity

    def metadata(self) -> ConsumerGroupMetadata:
        return self.membership.metadata() if self.subscribed else self._identity

    # Subscription

    def subscribe(
        self, names: Iterable[str] | None, pattern: Pattern | None, listener: RebalanceListener | None
    ) -> None:
        """A pattern as text is the broker's to match in the protocol of KIP-848; else its matches are found here."""
        self._rebalance.listener = listener
        self.touch()
        if isinstance(pattern, re.Pattern) or (pattern is not None and self._classic is not None):
            self._subscription.set(None, re.compile(pattern))
            self.topics.forget_all()
            return
        self._subscription.set(names, None)
        if self._modern is not None:
            self._modern.subscribe(self._subscription.names, pattern)

    def subscription(self) -> set[str]:
        """The names of the topics; empty for a pattern that only the broker knows the matches of."""
        return set(self._subscription.names or ())

    # Any thread: requests out, responses in

    def drive(self) -> None:
        now_ms = self._cluster.network.now_ms()
        news = self._looked_at != self._cluster.metadata_version
        if not news and now_ms < self._next_due_ms and now_ms < self._look_again_ms:
            return
        membership = self.membership
        if self.subscribed:
            membership.tick(now_ms)
            self._look_around(now_ms)
        if self._needs_coordinator():
            self.coordinator.find(now_ms)
        while self.coordinator.known and (request := membership.next_request(now_ms)) is not None:
            self._send(membership, request)
        self.commits.step(now_ms)
        self._looked_at = self._cluster.metadata_version
        self._look_again_ms = now_ms + LOOK_AGAIN_MS
        self._next_due_ms = self._next_deadline_ms()

    def touch(self) -> None:
        """Something changed: the next drive() looks at everything."""
        self._next_due_ms = 0

    def until_due_ms(self) -> int:
        """How long drive() has nothing to do; 0 or less: it has something to do now."""
        return self._next_due_ms - self._cluster.network.now_ms()

    def _next_deadline_ms(self) -> int:
        deadlines = [self.commits.next_deadline_ms()]
        if self.subscribed:
            deadlines.append(self.topics.next_deadline_ms())
        if self.coordinator.known:
            deadlines.append(self.membership.next_deadline_ms())
        elif self._needs_coordinator():
            deadlines.append(self.coordinator.next_deadline_ms())
        return min(deadlines)

    def _needs_coordinator(self) -> bool:
        if self.subscribed and self.membership.fatal is None:
            return True
        return self.membership.leaving or self.commits.pending or self._wants_committed()

    def _look_around(self, now_ms: int) -> None:
        """Topics come and go."""
        subscription = self._subscription
        if subscription.match(self.topics) and self._modern is not None:
            self._modern.subscribe(subscription.names, None)
        if self._classic is not None:
            self._leader.step(self._classic, self._cluster.metadata_version, now_ms)
        self.topics.everything = subscription.pattern is not None
        self.topics.names = (subscription.names or set()) | self._leader.group_names
        self.topics.ids = set() if self._modern is None else set(self._modern.target)
        self.topics.step(now_ms)

    def _wants_committed(self) -> bool:
        return self._asked_committed or any(state.awaiting_committed for state in self._fetcher.partitions.values())

    def _send(self, membership: Membership, request: Message) -> None:
        sent_ms = self._cluster.network.now_ms()
        self.meter.on_request(request)

        def when_done(response: Message | None, error: ClientError | None) -> None:
            now_ms = self._cluster.network.now_ms()
            if getattr(response, "error_code", None) == NONE:
                self.meter.on_response(request, now_ms - sent_ms)
            if response is None:
                assert error is not None
                membership.on_failure(request, error, now_ms)
            elif not membership.on_response(request, response, now_ms):
                self.coordinator.forget("it said that the group is elsewhere.")

        response_class = api_keys.response_class(request.API_KEY)
        timeout_ms = membership.timeout_ms(request, self._request_timeout_ms)
        aside = membership.is_urgent(request)
        self.coordinator.send(request, response_class, timeout_ms, when_done, aside=aside)

    # The user's thread

    def step(self) -> None:
        """What poll() does for the group: callbacks, rebalances, commits, positions; raises what the user must know."""
        network = self._cluster.network
        self.check_not_rebalancing("poll")
        if self.subscribed:
            if self.membership.on_poll(network.now_ms()):
                self.touch()
            self._do_duties()
            self.drive()
        self.tell_commits()
        self._raise_problems()
        self._maybe_auto_commit(network.now_ms())
        self.ask_committed()

    def _do_duties(self) -> None:
        self._in_duty = True
        try:
            # A pattern has to be matched before the group is joined with its matches.
            while self._subscription.is_known and self._duties.step(self._cluster.network.now_ms()):
                self.touch()
                self.raise_listener_error()
        finally:
            self._in_duty = False

    def check_not_rebalancing(self, what: str) -> None:
        """A listener is called in the middle of a rebalance, which cannot be left or gone on with from there."""
        if self._in_duty:
            raise error_for(INVALID_REQUEST, f"{what}() cannot be called by a rebalance listener.")

    def raise_listener_error(self) -> None:
        raised, self._rebalance.raised = self._rebalance.raised, None
        if raised is not None:
            raise raised

    def _raise_problems(self) -> None:
        if self.subscribed and self.membership.fatal is not None:
            raise self.membership.fatal
        for owner in (self.membership, self.coordinator, self.topics):
            problem = owner.problem
            if problem is not None:
                owner.problem = None
                raise problem

    def tell_commits(self) -> None:
        while self.commits.to_tell:
            commit = self.commits.to_tell.popleft()
            callback = commit.callback
            assert callback is not None
            self._call(partial(callback, commit.offsets, commit.error))

    def _on_assigned(self, now_ms: int) -> None:
        self._next_auto_commit_ms = now_ms + self.settings.auto_commit_interval_ms

    # Commits

    def _commit_before_rebalance(self, partitions: Iterable[TopicPartition], now_ms: int) -> Commit:
        deadline_ms = now_ms + self.settings.max_poll_interval_ms
        return self._start(Commit(self._fetcher.consumed(partitions), deadline_ms, patient=True))

    def _start(self, commit: Commit) -> Commit:
        self.touch()
        return self.commits.start(commit)

    def _maybe_auto_commit(self, now_ms: int) -> None:
        if not self.settings.auto_commit:
            return
        if self._next_auto_commit_ms is None:
            self._next_auto_commit_ms = now_ms + self.settings.auto_commit_interval_ms
        if self._auto_commit is not None and self._auto_commit.done:
            if self._auto_commit.error is not None and self._auto_commit.error.retriable:
                self._next_auto_commit_ms = now_ms + self._cluster.backoff.delay_ms(1)
            self._auto_commit = None
        if self._auto_commit is not None or now_ms < self._next_auto_commit_ms:
            return
        self._next_auto_commit_ms = now_ms + self.settings.auto_commit_interval_ms
        if self.can_commit() and (offsets := self._fetcher.consumed()):
            deadline_ms = now_ms + self._request_timeout_ms
            self._auto_commit = self._start(Commit(offsets, deadline_ms, patient=False))
            self.drive()

    def can_commit(self, last: bool = False) -> bool:
        try:
            self.check_commit(last)
        except ClientError:
            return False
        return True

    def check_commit(self, last: bool = False) -> None:
        if self.subscribed:
            self.membership.check_commit(last)

    def commit_sync(self, offsets: Offsets, timeout_ms: int) -> None:
        """Commits and waits; the commits that were started before come first.

        With nothing to commit there is nothing to refuse, whoever this consumer is to the group at the moment.
        """
        deadline_ms = self._cluster.network.now_ms() + timeout_ms
        if not offsets:
            self._wait(lambda: not self.commits.pending, deadline_ms)
            self.tell_commits()
            return
        self.check_commit()
        commit = self._start(Commit(dict(offsets), deadline_ms, patient=True))
        try:
            self._wait(lambda: commit.done, deadline_ms + 1)
        finally:
            commit.patient = False  # nobody waits for it any more
        self.tell_commits()
        if commit.error is not None:
            raise commit.error

    def commit_async(self, offsets: Offsets, callback: Callback | None, timeout_ms: int) -> None:
        deadline_ms = self._cluster.network.now_ms() + timeout_ms
        self._start(Commit(dict(offsets), deadline_ms, patient=False, callback=callback))
        self.drive()

    # Committed offsets

    def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Asks and waits, through errors that pass."""
        deadline_ms = self._cluster.network.now_ms() + timeout_ms
        results: list[Committed] = []
        self._asked_committed = True
        self.touch()
        try:
            while True:
                self._wait(lambda: self._try_committed(partitions, results), deadline_ms)
                self._wait(lambda: bool(results), deadline_ms)
                found = results.pop()
                error = next((row.error for row in found.values() if row.error is not None), None)
                if error is None:
                    return {item: found[item].get() for item in partitions}
                if not self._passes(error):
                    raise error
        finally:
            self._asked_committed = False

    def _try_committed(self, partitions: Collection[TopicPartition], results: list[Committed]) -> bool:
        return self.committed_offsets.ask(partitions, self._cluster.network.now_ms(), results.append)

    def _passes(self, error: ClientError) -> bool:
        return error.retriable or error.code in (STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID)

    def ask_committed(self) -> None:
        """Asks for the positions of partitions that begin where the group committed."""
        states = [state for state in self._fetcher.partitions.values() if state.awaiting_committed]
        if not states:
            return

        def when_done(found: Committed) -> None:
            for state in states:
                if self._fetcher.partitions.get(state.partition) is not state or not state.awaiting_committed:
                    continue
                outcome = found[state.partition]
                if outcome.error is not None:
                    if not self._passes(outcome.error):
                        self._positions.problem = outcome.error
                    continue
                committed = outcome.get()
                state.awaiting_committed = False
                if committed is not None:
                    self._seek(state, committed)

        self.committed_offsets.ask([state.partition for state in states], self._cluster.network.now_ms(), when_done)

    def _seek(self, state: PartitionState, committed: OffsetAndMetadata) -> None:
        self._fetcher.seek(state, committed.offset, committed.leader_epoch)
        leader = self._cluster.leader(state.partition)
        if leader is not None and leader.leader_epoch < committed.leader_epoch:
            # Who committed knew a later leader than this consumer does (KIP-320).
            self._positions.stale_topics.add(state.partition.topic)

    # Leaving

    def leave(self, deadline_ms: int, reason: str, remain: bool | None = None) -> None:
        """Gives up all partitions and leaves; waits for the response until the deadline."""
        membership = self.membership
        lost = self._classic.is_lost if self._classic is not None else not self.can_commit()
        self._in_duty = True
        try:
            self._rebalance.drop_all(lost)
        finally:
            self._in_duty = False
        membership.leave(self._cluster.network.now_ms(), reason, remain)
        self.touch()
        self._subscription.clear()
        self._leader.forget()
        network = self._cluster.network
        failures = self.coordinator.failures
        while membership.leaving and network.now_ms() < deadline_ms:
            if not self.coordinator.known and self.coordinator.failures > failures:
                break  # nobody to tell: the session will end by itself
            network.poll(deadline_ms - network.now_ms())

    def finish_commits(self, deadline_ms: int) -> None:
        """Before the end: what was consumed is committed, and what was started is waited for."""
        now_ms = self._cluster.network.now_ms()
        if self.settings.auto_commit and self.can_commit(last=True):
            self._start(Commit(self._fetcher.consumed(), deadline_ms, patient=True, last=True))
        while self.commits.pending and now_ms < deadline_ms:
            self._cluster.network.poll(deadline_ms - now_ms)
            now_ms = self._cluster.network.now_ms()
        self.commits.step(now_ms)

    def enforce_rebalance(self, reason: str) -> None:
        if self._classic is not None:
            self._classic.request_rejoin(reason)
        else:
            logger.warning("A member of a group of the consumer protocol cannot enforce a rebalance.")

    def _wait(self, is_done: Callable[[], bool], deadline_ms: int) -> None:
        network = self._cluster.network
        while not is_done():
            if self.wakeup_requested():
                raise WakeupError
            self._raise_problems()
            self._positions.ask_stale_metadata()
            remaining_ms = deadline_ms - network.now_ms()
            if remaining_ms <= 0:
                last = self.coordinator.last_error
                reason = f" {last.message}" if last is not None else ""
                raise RequestTimeoutError(
                    f"The coordinator of group {self.settings.group_id} did not respond in time.{reason}"
                )
            network.poll(min(remaining_ms, self._until_retry_ms()))

    def _until_retry_ms(self) -> int:
        return max(1, min(1_000, self.committed_offsets.next_deadline_ms() - self._cluster.network.now_ms()))


def _never() -> bool:
    return False
