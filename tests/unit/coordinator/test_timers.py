"""Timers: one per key, moved often, fired in order."""

from __future__ import annotations

import random

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.records.clocks import NEVER_MS


def nothing(now_ms: int) -> Outcome | None:
    return None


def fire(timers: Timers, now_ms: int) -> list[str]:
    keys = []
    timer = timers.take_due(now_ms)
    while timer is not None:
        keys.append(timer.key)
        timer = timers.take_due(now_ms)
    return keys


def test_timers_fire_in_the_order_of_their_times() -> None:
    timers = Timers()
    for key, due_ms in (("c", 30), ("a", 10), ("b", 20)):
        timers.schedule(key, due_ms, nothing)
    assert timers.next_ms() == 10
    assert fire(timers, 25) == ["a", "b"]
    assert fire(timers, 30) == ["c"] and timers.next_ms() == NEVER_MS


def test_a_timer_that_was_moved_fires_at_its_new_time() -> None:
    timers = Timers()
    timers.schedule("a", 10, nothing)
    timers.schedule("a", 50, nothing)
    assert fire(timers, 49) == [] and fire(timers, 50) == ["a"]
    timers.schedule("b", 100, nothing)
    timers.schedule("b", 60, nothing)
    assert fire(timers, 60) == ["b"] and fire(timers, 1000) == []


def test_a_cancelled_timer_does_not_fire() -> None:
    timers = Timers()
    timers.schedule("a", 10, nothing)
    timers.cancel("a")
    assert not timers.is_scheduled("a") and fire(timers, 100) == []


def test_whoever_waits_is_told_of_an_earlier_time() -> None:
    timers = Timers()
    told: list[int] = []
    timers.on_earlier = told.append
    timers.schedule("a", 50, nothing)
    timers.schedule("b", 60, nothing)
    timers.schedule("c", 40, nothing)
    assert told == [50, 40]


def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers()
    for number in range(10_000):
        timers.schedule("session", 1_000_000 - number, nothing)
        timers.cancel("join")
        timers.schedule("join", 2_000_000 + number, nothing)
    assert len(timers._heap) < 500 and len(timers) == 2


def test_random_moves_fire_each_timer_once_and_on_time() -> None:
    rng = random.Random(5)
    timers = Timers()
    expected: dict[str, int] = {}
    now_ms = 0
    for _ in range(5000):
        key = f"k{rng.randrange(50)}"
        choice = rng.randrange(10)
        if choice < 6:
            expected[key] = now_ms + rng.randrange(1, 100)
            timers.schedule(key, expected[key], nothing)
        elif choice < 7:
            expected.pop(key, None)
            timers.cancel(key)
        else:
            now_ms += rng.randrange(20)
            due = {name for name, due_ms in expected.items() if due_ms <= now_ms}
            assert set(fire(timers, now_ms)) == due
            for name in due:
                del expected[name]
        assert len(timers) == len(expected)
