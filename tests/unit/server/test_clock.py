"""The clock of the process: steady whatever the wall clock does, and not counting what the process slept through."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast
from unittest.mock import Mock

import pytest

from moldau.server import clock as clock_module
from moldau.server.clock import Clock
from moldau.server.process import Pump

if TYPE_CHECKING:
    from moldau.node.node import Node

DAY_MS = 86_400_000


class Times:
    """The machine's clocks, as the tests set them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_ms = 1_700_000_000_000
        self.monotonic_ms = 5_000
        self.boot_ms = 9_000
        monkeypatch.setattr(time, "time_ns", lambda: self.wall_ms * 1_000_000)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.monotonic_ms * 1_000_000)
        monkeypatch.setattr(time, "clock_gettime_ns", lambda _: self.boot_ms * 1_000_000)
        monkeypatch.setattr(clock_module, "BOOT_CLOCK", 7)

    def pass_ms(self, duration_ms: int) -> None:
        self.wall_ms += duration_ms
        self.monotonic_ms += duration_ms
        self.boot_ms += duration_ms

    def sleep_ms(self, duration_ms: int) -> None:
        """The machine is suspended."""
        self.wall_ms += duration_ms
        self.boot_ms += duration_ms


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch)


@pytest.mark.parametrize("step_ms", [10 * DAY_MS, 60_000, -500, -5_000, -3_600_000])
def test_deadlines_do_not_move_when_the_system_clock_is_set(times: Times, step_ms: int) -> None:
    clock = Clock()
    before = clock()
    assert before == times.wall_ms, "it begins with the calendar's time"
    times.wall_ms += step_ms
    times.pass_ms(1)
    assert clock() == before + 1
    times.pass_ms(250)
    assert clock() == before + 251


def test_what_is_written_follows_the_system_clock_forwards_and_back(times: Times) -> None:
    clock = Clock()
    for step_ms in (30_000, -45_000, 3_600_000, -2 * DAY_MS):
        times.wall_ms += step_ms
        for _ in range(3):
            times.pass_ms(600)
            now_ms = clock()
        assert clock.wall.at(now_ms) == times.wall_ms


def test_a_step_after_slow_drift_counts_once_it_has_lasted(times: Times) -> None:
    """Large for the clock that was followed, and not for the one of an hour ago: nothing is in doubt, and no reading
    after it tells anything new."""
    clock = Clock()
    times.wall_ms += 30_000
    times.pass_ms(100)
    clock()
    times.wall_ms -= 70_000
    times.pass_ms(100)
    clock()
    assert clock.wall.may_delete_by_age
    for _ in range(3):
        times.pass_ms(600)
        now_ms = clock()
    assert clock.wall.at(now_ms) == times.wall_ms


def test_one_wrong_reading_is_written_nowhere(times: Times) -> None:
    clock = Clock()
    clock()
    times.wall_ms += 10 * DAY_MS
    times.pass_ms(1)
    assert clock.wall.at(clock()) == times.wall_ms - 10 * DAY_MS
    assert not clock.wall.may_delete_by_age, "it was noticed"
    times.wall_ms -= 10 * DAY_MS
    times.pass_ms(5000)
    assert clock.wall.at(clock()) == times.wall_ms


def test_a_pause_of_the_process_does_not_count_and_the_calendar_stays_right(times: Times) -> None:
    clock = Clock()
    now_ms = clock()
    clock.steady.due_ms = now_ms + 1000
    times.pass_ms(14_000)
    assert clock() == now_ms + 1200, "as far as it was asked for, and a little late"
    assert clock.wall.at(clock()) == times.wall_ms
    times.pass_ms(100)
    assert clock() == now_ms + 1300
    assert clock.wall.may_delete_by_age, "both clocks went on"


def test_after_a_suspension_of_the_machine_the_calendar_is_right_at_once(times: Times) -> None:
    clock = Clock()
    before = clock()
    times.sleep_ms(8 * 3_600_000)
    times.pass_ms(1)
    now_ms = clock()
    assert now_ms == before + 1
    assert clock.wall.at(now_ms) == times.wall_ms
    assert clock.wall.may_delete_by_age, "the system tells how long it slept"


def test_where_the_system_does_not_tell_of_suspensions_they_are_steps(
    times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_module, "BOOT_CLOCK", None)
    clock = Clock()
    clock()
    times.sleep_ms(8 * 3_600_000)
    times.pass_ms(1)
    clock()
    assert not clock.wall.may_delete_by_age
    times.pass_ms(2000)
    assert clock.wall.at(clock()) == times.wall_ms


class IdleNode:
    """A node that wants its next turn in a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.on_step: object = None

    def set_wake_up(self, wake_at: object) -> None:
        """Nothing of it calls."""

    def poll(self, now_ms: int) -> int:
        return now_ms + 1000


def test_a_turn_that_is_wanted_at_once_makes_no_pause_of_the_wait_before(times: Times) -> None:
    """What a disk has finished wakes an idle node: the time up to then was spent waiting, as was asked."""
    clock = Clock()
    loop = Mock(spec=asyncio.AbstractEventLoop)
    pump = Pump(cast("Node", IdleNode(clock)), clock, loop, Mock())
    pump.run()
    before = clock()
    times.pass_ms(900)
    pump.wake_at(0)
    assert loop.call_later.call_args.args[0] == 0.0
    assert clock() == before + 900 and clock.steady.paused_ms == 0
    times.pass_ms(5_000)
    assert clock() == before + 900 + 200 and clock.steady.paused_ms == 4_800, "it was wanted at once and came late"
