"""The node's clock follows the system's forwards, and never runs back or stands still."""

from __future__ import annotations

import time

import pytest

from moldau.server.clock import Clock


class Times:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_ms = 1_700_000_000_000
        self.monotonic_ms = 5_000
        monkeypatch.setattr(time, "time_ns", lambda: self.wall_ms * 1_000_000)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.monotonic_ms * 1_000_000)

    def pass_ms(self, duration_ms: int) -> None:
        self.wall_ms += duration_ms
        self.monotonic_ms += duration_ms


def test_it_is_the_system_clock_and_follows_jumps_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    clock = Clock()
    assert clock() == times.wall_ms
    times.wall_ms += 3_600_000
    assert clock() == times.wall_ms


@pytest.mark.parametrize("back_ms", [500, 5_000, 59_000, 3_600_000])
def test_set_back_it_goes_on_at_half_speed_until_the_system_has_caught_up(
    monkeypatch: pytest.MonkeyPatch, back_ms: int
) -> None:
    times = Times(monkeypatch)
    clock = Clock()
    before = clock()
    times.wall_ms -= back_ms
    assert clock() == before
    for _ in range(100):
        times.pass_ms(3)
        clock()
    times.pass_ms(100)
    assert before + 199 <= clock() <= before + 200, "a deadline in 200 ms is over after 400"
    times.pass_ms(2 * back_ms)
    assert clock() == times.wall_ms


def test_a_clock_that_was_set_back_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    times = Times(monkeypatch)
    clock = Clock()
    clock()
    times.wall_ms -= 5000
    for _ in range(10):
        times.pass_ms(10)
        clock()
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "the system's clock was set back by 4990 ms"
    ]
