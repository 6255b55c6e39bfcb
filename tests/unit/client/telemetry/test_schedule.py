"""When a client asks and pushes, and what each error of a broker does to that."""

from __future__ import annotations

import pytest

from moldau.client.telemetry.schedule import ASKS, INTERVAL_MS_DEFAULT, NEVER_MS, OFF, PUSHES, Schedule, Subscription
from moldau.protocol import errors
from moldau.records.codecs import GZIP, LZ4, NONE, ZSTD

WANTED = Subscription(b"i" * 16, 7, 1000, (ZSTD, LZ4, GZIP), 10_000, True, ("org.apache.kafka.producer", "x"))


def pushing(at_ms: int = 0) -> Schedule:
    schedule = Schedule()
    schedule.on_subscription(WANTED, 0.5, at_ms)
    return schedule


def test_the_subscription_is_asked_for_at_once() -> None:
    assert (Schedule().state, Schedule().due_ms) == (ASKS, 0)


@pytest.mark.parametrize(("chance", "due_ms"), [(0.0, 5500), (0.5, 6000), (1.0, 6500)])
def test_first_pushes_are_spread_and_the_others_come_at_the_interval(chance: float, due_ms: int) -> None:
    schedule = Schedule()
    schedule.on_subscription(WANTED, chance, 5000)
    assert (schedule.state, schedule.due_ms) == (PUSHES, due_ms)
    schedule.on_pushed(due_ms + 3)
    assert (schedule.state, schedule.due_ms) == (PUSHES, due_ms + 1003)


def test_who_is_asked_for_nothing_asks_again() -> None:
    schedule = Schedule()
    schedule.on_subscription(WANTED._replace(metrics=()), 0.5, 0)
    assert (schedule.state, schedule.due_ms) == (ASKS, 1000)


@pytest.mark.parametrize("code", [errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE])
def test_some_errors_ask_again_at_once(code: int) -> None:
    schedule = pushing()
    schedule.on_error(code, 50)
    assert (schedule.state, schedule.due_ms) == (ASKS, 50)


@pytest.mark.parametrize("code", [errors.TELEMETRY_TOO_LARGE, errors.THROTTLING_QUOTA_EXCEEDED])
def test_some_wait_an_interval(code: int) -> None:
    schedule = pushing()
    schedule.on_error(code, 50)
    assert (schedule.state, schedule.due_ms) == (ASKS, 1050)
    fresh = Schedule()
    fresh.on_error(code, 50)
    assert (fresh.state, fresh.due_ms) == (ASKS, 50 + INTERVAL_MS_DEFAULT)


@pytest.mark.parametrize("code", [errors.INVALID_REQUEST, errors.INVALID_RECORD, errors.UNSUPPORTED_VERSION, 9999])
def test_all_others_end_it(code: int) -> None:
    schedule = pushing()
    schedule.on_error(code, 50)
    assert (schedule.state, schedule.due_ms) == (OFF, NEVER_MS)


def test_a_broker_that_is_away_is_tried_again_later() -> None:
    schedule = pushing()
    schedule.on_no_response(50)
    assert (schedule.state, schedule.due_ms) == (ASKS, 50 + INTERVAL_MS_DEFAULT)


def test_a_codec_that_was_refused_is_not_used_again() -> None:
    schedule = pushing()
    used = []
    for _ in range(4):
        used.append(schedule.codec())
        schedule.on_error(errors.UNSUPPORTED_COMPRESSION_TYPE, 0)
        schedule.on_subscription(WANTED, 0.5, 0)
    assert used == [ZSTD, LZ4, GZIP, NONE]


def test_prefixes_choose_metrics() -> None:
    assert WANTED.wants("org.apache.kafka.producer.record.send.total") and WANTED.wants("x.y")
    assert not WANTED.wants("org.apache.kafka.consumer.a")
    assert WANTED._replace(metrics=("*",)).wants("anything")
    assert not WANTED._replace(metrics=()).wants("anything")
