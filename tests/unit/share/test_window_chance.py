"""Random lives of a share partition, held against a model that knows every offset by itself."""

from __future__ import annotations

import random

import pytest

from moldau.node.share.acknowledgement import Acknowledgement, Change, acknowledge, expire_locks, finish, release
from moldau.node.share.acquisition import Acquisition
from moldau.node.share.record_states import ACCEPT, ACQUIRED, GAP, REJECT, RELEASE, is_final
from moldau.node.share.window import Limits, StateBatch, Window
from moldau.protocol.errors import KafkaError

MEMBERS = ("a", "b", "c")
STEPS = 400


class Life:
    """One partition: its log, the window, and what each offset has been through."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log: list[tuple[int, int]] = []
        offset = 0
        while offset < 400:
            size = self.rng.choice((1, 1, 2, 5, 20))
            self.log.append((offset, offset + size - 1))
            offset += size + (self.rng.randint(1, 3) if self.rng.random() < 0.1 else 0)
        self.limits = Limits(100, self.rng.choice((2, 3, 5)), self.rng.choice((10, 50, 2000)))
        self.window = Window(0)
        self.now_ms = 0
        self.stored: dict[int, tuple[int, int]] = {}
        self.holders: dict[int, tuple[str, int]] = {}  # who holds an offset, and until when
        self.counts: dict[int, int] = {}
        self.accepted: set[int] = set()
        self.changes: list[tuple[Change, str]] = []

    def acquire(self) -> None:
        window, rng = self.window, self.rng
        offset = window.next_fetch_offset()
        read = [batch for batch in self.log if batch[1] >= offset][: rng.randint(1, 4)]
        by_record, wanted, member = rng.random() < 0.4, rng.randint(1, 30), rng.choice(MEMBERS)
        found = Acquisition(window, member, self.limits, wanted, by_record, self.now_ms).acquire(offset, read, 10)
        if by_record:
            assert sum(one.last - one.first + 1 for one in found) <= wanted, "record mode keeps its limit"
        for one in found:
            for taken in range(one.first, one.last + 1):
                assert taken not in self.holders, f"{taken} is locked by one member at a time"
                assert taken not in self.accepted, f"{taken} was accepted and is not delivered again"
                self.counts[taken] = self.counts.get(taken, 0) + 1
                assert self.counts[taken] == one.count <= self.limits.delivery_count_max
                self.holders[taken] = (member, self.now_ms + self.limits.lock_ms)

    def acknowledge(self) -> None:
        rng = self.rng
        if not self.holders:
            return
        first = rng.choice(sorted(self.holders))
        member = self.holders[first][0] if rng.random() < 0.9 else rng.choice(MEMBERS)
        last = first + rng.choice((0, 0, 1, 4, 15))
        types = [rng.choice((ACCEPT, ACCEPT, RELEASE, REJECT, GAP)) for _ in range(last - first + 1)]
        kinds = types if rng.random() < 0.5 else types[:1]
        try:
            change = acknowledge(self.window, member, [Acknowledgement(first, last, kinds)], self.limits, self.now_ms)
        except KafkaError:
            return
        for batch in change.batches:
            for offset in range(batch.first, batch.last + 1):
                assert self.holders[offset][0] == member, "only who holds a record says what becomes of it"
        self.changes.append((change, member))

    def release(self) -> None:
        member = self.rng.choice(MEMBERS)
        self.changes.append((release(self.window, member, self.limits), member))

    def finish(self) -> None:
        if not self.changes:
            return
        change, _ = self.changes.pop(self.rng.randrange(len(self.changes)))
        stored = self.rng.random() < 0.8
        expired = finish(self.window, change, stored, self.limits, self.now_ms)
        if stored:
            for batch in change.batches:
                for offset in range(batch.first, batch.last + 1):
                    del self.holders[offset]
                    if batch.state == 2:
                        self.accepted.add(offset)
            self.store(change.batches)
        self.give_back(expired)

    def expire(self) -> None:
        self.now_ms += self.rng.randint(0, 60)
        self.give_back(expire_locks(self.window, self.limits, self.now_ms))

    def give_back(self, expired: list[StateBatch]) -> None:
        for batch in expired:
            for offset in range(batch.first, batch.last + 1):
                assert self.holders.pop(offset)[1] <= self.now_ms, "a lock lasts as long as it was promised"
        self.store(expired)

    def store(self, batches: list[StateBatch]) -> None:
        for batch in batches:
            for offset in range(batch.first, batch.last + 1):
                self.stored[offset] = (batch.state, batch.count)

    def check(self) -> None:
        self.window.check()
        held = {
            offset: run.owner
            for batch in self.window.batches
            for run in batch.runs
            if run.state == ACQUIRED
            for offset in range(run.first, run.last + 1)
        }
        assert held == {offset: holder for offset, (holder, _) in self.holders.items()}
        for first, last in self.log:
            if first < self.window.start_offset:
                for offset in range(first, min(last + 1, self.window.start_offset)):
                    assert is_final(self.stored[offset][0]), "the start never passes an unfinished record"

    def drain(self) -> None:
        """Everything that is left is delivered and accepted, or has reached its limit."""
        while self.changes:
            self.finish()
        for _ in range(100_000):
            self.expire()
            window = self.window
            if window.start_offset > self.log[-1][1]:
                return
            offset = window.next_fetch_offset()
            read = [batch for batch in self.log if batch[1] >= offset]
            for one in Acquisition(window, "a", self.limits, 100, False, self.now_ms).acquire(offset, read, 10):
                change = acknowledge(
                    window, "a", [Acknowledgement(one.first, one.last, [ACCEPT])], self.limits, self.now_ms
                )
                finish(window, change, True, self.limits, self.now_ms)
                self.store(change.batches)
                self.accepted.update(range(one.first, one.last + 1))
            self.now_ms += 50
        raise AssertionError(f"never done: starts at {self.window.start_offset}")


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_lost_doubled_or_locked_twice(seed: int) -> None:
    life = Life(seed)
    steps = [life.acquire, life.acquire, life.acknowledge, life.acknowledge, life.finish, life.expire, life.release]
    for _ in range(STEPS):
        life.rng.choice(steps)()
        life.check()
    life.drain()
    for first, last in life.log:
        for offset in range(first, last + 1):
            assert is_final(life.stored[offset][0]), f"{offset} is forgotten"


@pytest.mark.parametrize("seed", range(30))
def test_another_leader_goes_on_with_what_was_stored(seed: int) -> None:
    """Nothing that was accepted comes again; everything else does, or is archived."""
    life = Life(seed)
    for _ in range(STEPS):
        life.rng.choice([life.acquire, life.acknowledge, life.finish, life.expire])()
    stored = [StateBatch(o, o, s, c) for o, (s, c) in sorted(life.stored.items()) if o >= life.window.start_offset]
    accepted = set(life.accepted)
    successor = Life(seed)
    successor.window = Window(life.window.start_offset)
    successor.window.load(stored)
    successor.stored = dict(life.stored)
    successor.accepted = accepted
    successor.counts = {offset: count for offset, (_, count) in life.stored.items()}
    successor.window.check()
    before = set(accepted)
    successor.drain()
    for first, last in life.log:
        for offset in range(first, last + 1):
            assert is_final(successor.stored[offset][0]), f"{offset} is forgotten"
    assert before <= successor.accepted
