"""Looks into the leaders of share partitions of a simulated cluster after each of their turns; a sentence per check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.node.node import Node
from moldau.node.share.partition import ACTIVE, SharePartition
from moldau.node.share.record_states import ACQUIRED
from moldau.node.share.sessions import ShareSession
from moldau.sim.cluster.checks import node_of
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.world import Violation

if TYPE_CHECKING:
    from moldau.sim.share.world import ShareWorld

RunView = tuple[int, int, int, str, int, int]
"""First and last offset, state, owner, until when it is locked, delivery count."""


class Lock:
    """Who holds a record, until when, by which session, and how often its owner was done with it before."""

    __slots__ = ("count", "owner", "sent_before", "session", "until_ms")

    def __init__(self, owner: str, until_ms: int, count: int, session: ShareSession | None, sent_before: int) -> None:
        self.owner = owner
        self.until_ms = until_ms
        self.count = count
        self.session = session
        self.sent_before = sent_before


class View:
    """What was seen of one share partition at its leader."""

    def __init__(self, one: SharePartition, generation: int) -> None:
        self.one = one
        self.generation = generation
        self.runs: tuple[RunView, ...] = ()
        self.start = -1
        self.seen_ms = 0
        self.locks: dict[int, Lock] = {}


class ShareChecks:
    def __init__(self, setting: ShareWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.acquired = 0
        self.delivered_again = 0
        self._views: dict[tuple[int, SharePartitionKey], View] = {}

    def on_turn(self, host: Host) -> None:
        node = node_of(host)
        if node is None or not node.shares.found:
            return
        for key, one in list(node.shares.found.items()):
            if one.state == ACTIVE:
                self._look(host, node, key, one)

    def is_below_a_start(self, key: SharePartitionKey, offset: int, since_ms: int) -> bool:
        """Whether a leader that has been seen since then was done with the record, though that may not be stored."""
        return any(
            view.seen_ms >= since_ms and offset < view.start for (_, other), view in self._views.items() if other == key
        )

    def _look(self, host: Host, node: Node, key: SharePartitionKey, one: SharePartition) -> None:
        window = one.window
        runs = tuple(
            [
                (run.first, run.last, run.state, run.owner, run.locked_until_ms, run.count)
                for batch in window.batches
                for run in batch.runs
            ]
        )
        view = self._views.get((host.host_id, key))
        if view is None or view.one is not one:
            view = self._views[host.host_id, key] = View(one, self.setting.ledger.share(key).generation)
        view.seen_ms = self.world.now_ms
        if view.runs == runs and view.start == window.start_offset:
            return
        window.check()
        view.runs = runs
        self._look_at_start(host, key, one, view)
        locks: dict[int, Lock] = {}
        for first, last, state, owner, until_ms, count in runs:
            if state != ACQUIRED:
                continue
            session = node.shares.sessions.sessions.get((key[0], owner))
            for offset in range(first, last + 1):
                before = view.locks.get(offset)
                if before is not None and before.owner == owner and before.count == count:
                    before.until_ms = until_ms
                    locks[offset] = before
                    continue
                locks[offset] = Lock(owner, until_ms, count, session, self.setting.ledger.sent[key, offset, owner])
                self._on_acquired(host, node, key, one, view, offset, locks[offset])
        self._check_given_back(host, node, key, view, locks)
        view.locks = locks

    def _look_at_start(self, host: Host, key: SharePartitionKey, one: SharePartition, view: View) -> None:
        start = one.window.start_offset
        if start < view.start:
            raise Violation(f"a start offset never goes back: {self._name(key)} at {host.host_id}, {start}")
        view.start = start
        if view.generation == self.setting.ledger.share(key).generation:
            self.setting.ledger.check_start(key, start, f"leader {host.host_id}")

    def _name(self, key: SharePartitionKey) -> str:
        return self.setting.ledger.name_of(key)

    def _on_acquired(
        self, host: Host, node: Node, key: SharePartitionKey, one: SharePartition, view: View, offset: int, lock: Lock
    ) -> None:
        ledger = self.setting.ledger
        where = f"{self._name(key)} offset {offset} at {host.host_id} for {lock.owner}"
        self.acquired += 1
        self.delivered_again += lock.count > 1
        if lock.count > one.limits.delivery_count_max:
            raise Violation(f"a record is delivered no more often than allowed: {where}, count {lock.count}")
        if lock.count >= one.limits.delivery_count_max:
            ledger.on_limit(key, offset)
        if lock.until_ms < min(host.now_ms, node._now_ms) + one.limits.lock_ms:
            raise Violation(
                f"a record is locked for as long as was promised: {where}, {lock.until_ms - host.now_ms} ms"
            )
        before = view.locks.get(offset)
        if before is not None and before.owner != lock.owner:
            self._check_over(host, node, key, offset, before)
        share = ledger.share(key)
        epoch = share.told.get(offset)
        if epoch is not None and view.generation == share.generation and one.leader_epoch >= epoch:
            raise Violation(f"what was accepted durably is never delivered again: {where} (epoch {one.leader_epoch})")

    def _check_given_back(
        self, host: Host, node: Node, key: SharePartitionKey, view: View, locks: dict[int, Lock]
    ) -> None:
        """A lock ends with its time, its session or by its owner's word; or because the record is gone."""
        for offset, lock in view.locks.items():
            if offset not in locks and offset >= view.start:
                self._check_over(host, node, key, offset, lock)

    def _check_over(self, host: Host, node: Node, key: SharePartitionKey, offset: int, lock: Lock) -> None:
        if host.now_ms >= lock.until_ms or self.setting.ledger.sent[key, offset, lock.owner] > lock.sent_before:
            return
        session = node.shares.sessions.sessions.get((key[0], lock.owner))
        if session is None or session is not lock.session:
            return
        topic = self.setting.model.by_id(key[1])
        if topic is not None and offset < topic.partitions[key[2]].start_high:
            return
        raise Violation(
            f"a record is locked by one member at a time: {self._name(key)} offset {offset} was locked by {lock.owner}"
            f" at {host.host_id} for another {lock.until_ms - host.now_ms} ms"
        )
