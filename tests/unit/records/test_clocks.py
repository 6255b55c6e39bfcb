"""The two clocks: which steps are believed when, and when ages may be told."""

from __future__ import annotations

import logging

import pytest

from moldau.records.clocks import LATE_MS, PART_MS_MAX, STEP_HOLDS_MS, TRUSTED_AGAIN_MS, SteadyClock, WallClock

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000


class Machine:
    """A wall clock and a monotonic one, read together."""

    def __init__(self) -> None:
        self.monotonic_ms = 1000
        self.wall_ms = START_MS
        self.steady = SteadyClock(self.monotonic_ms, self.wall_ms)
        self.wall = WallClock()
        self.read()

    def read(self) -> int:
        now_ms = self.steady.read(self.monotonic_ms)
        self.wall.note(now_ms, self.monotonic_ms, self.wall_ms)
        return now_ms

    def pass_ms(self, duration_ms: int, *, wall_speed: float = 1.0, every_ms: int = 1000) -> None:
        """Time goes by, with a reading every second."""
        for start_ms in range(0, duration_ms, every_ms):
            part_ms = min(every_ms, duration_ms - start_ms)
            self.monotonic_ms += part_ms
            self.wall_ms += int(part_ms * wall_speed)
            self.steady.due_ms = self.monotonic_ms + START_MS
            self.read()


# Whether ages are trusted


@pytest.mark.parametrize("step_ms", [10 * DAY_MS, -10 * DAY_MS, PART_MS_MAX + 1, -PART_MS_MAX - 1])
def test_nothing_is_deleted_by_age_from_a_large_step_until_it_has_held_for_minutes(step_ms: int) -> None:
    machine = Machine()
    machine.wall_ms += step_ms
    machine.read()
    assert not machine.wall.may_delete_by_age
    machine.pass_ms(TRUSTED_AGAIN_MS - 1000)
    assert not machine.wall.may_delete_by_age
    machine.pass_ms(2000)
    assert machine.wall.may_delete_by_age, "a step that stays is accepted in the end: the clock was wrong before"


def test_one_wrong_reading_holds_it_up_for_as_long() -> None:
    machine = Machine()
    machine.wall_ms += 10 * DAY_MS
    machine.read()
    machine.wall_ms -= 10 * DAY_MS
    machine.pass_ms(TRUSTED_AGAIN_MS - 1000)
    assert not machine.wall.may_delete_by_age
    machine.pass_ms(2000)
    assert machine.wall.may_delete_by_age
    assert machine.wall.disagreements_total == 1


@pytest.mark.parametrize("step_ms", [PART_MS_MAX - 1000, -PART_MS_MAX + 1000, 1, -1])
def test_small_steps_are_life(step_ms: int) -> None:
    machine = Machine()
    machine.wall_ms += step_ms
    machine.read()
    assert machine.wall.may_delete_by_age
    assert machine.wall.at(machine.read()) == machine.wall_ms


@pytest.mark.parametrize("speed", [0.0, 0.5, 2.0])
def test_a_clock_that_stands_still_or_runs_wild_is_noticed_and_stays_in_doubt(speed: float) -> None:
    machine = Machine()
    machine.pass_ms(4 * PART_MS_MAX, wall_speed=speed)
    assert not machine.wall.may_delete_by_age
    machine.pass_ms(2 * TRUSTED_AGAIN_MS, wall_speed=speed)
    assert not machine.wall.may_delete_by_age
    machine.pass_ms(TRUSTED_AGAIN_MS + 1000)
    assert machine.wall.may_delete_by_age


def test_a_slow_drift_over_days_is_none_of_it() -> None:
    machine = Machine()
    machine.pass_ms(3 * DAY_MS, wall_speed=1.0005, every_ms=60_000)
    assert machine.wall.disagreements_total == 0


def test_it_is_told_once_and_once_more_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    for _ in range(3):
        machine.wall_ms += 10 * DAY_MS
        machine.read()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert caplog.messages[0].startswith("the system clock is 864000 s ahead of where it should be")
    machine.pass_ms(TRUSTED_AGAIN_MS + 1000)
    assert len(caplog.messages) == 2
    assert "steady again" in caplog.messages[1]


# What is written


def test_a_large_step_counts_once_it_has_held_for_a_moment() -> None:
    machine = Machine()
    machine.wall_ms -= DAY_MS
    assert machine.wall.at(machine.read()) == machine.wall_ms + DAY_MS
    machine.pass_ms(STEP_HOLDS_MS, every_ms=100)
    assert machine.wall.at(machine.read()) == machine.wall_ms


def test_a_clock_that_jumps_about_is_not_followed() -> None:
    machine = Machine()
    for number in range(20):
        machine.pass_ms(700)
        machine.wall_ms += DAY_MS * (1 if number % 2 else -1)
        now_ms = machine.read()
        assert abs(machine.wall.at(now_ms) - START_MS) < 60_000


# The steady clock


def test_a_turn_on_time_counts_whole_and_a_late_one_up_to_what_was_asked_for() -> None:
    clock = SteadyClock(0, START_MS)
    clock.due_ms = START_MS + 500
    assert clock.read(500 + LATE_MS) == START_MS + 500 + LATE_MS
    clock.due_ms = START_MS + 1000
    assert clock.read(60_000) == START_MS + 1000 + LATE_MS
    assert clock.paused_ms == 60_000 - 1000 - LATE_MS
    assert clock.read(60_001) == START_MS + 1001 + LATE_MS, "and from there on it runs again"


def test_who_reads_all_the_time_is_not_held_back() -> None:
    """Frames come all the time and keep a timer waiting: that is no pause."""
    clock = SteadyClock(0, START_MS)
    clock.due_ms = START_MS + 10
    for monotonic_ms in range(0, 5000, 50):
        assert clock.read(monotonic_ms) == START_MS + monotonic_ms


def test_it_never_goes_back_whatever_was_asked_for() -> None:
    clock = SteadyClock(0, START_MS)
    assert clock.read(100) == START_MS + 100
    clock.due_ms = 0
    assert clock.read(150) == START_MS + 150
