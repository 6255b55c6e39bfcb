"""Rates over samples: Kafka's worked example, bursts, idle time, what is taken back."""

from __future__ import annotations

import random

from moldau.quota.rates import SimpleRate, WindowedRate
from moldau.quota.token_bucket import TokenBucket


def test_a_spike_above_the_quota_waits_as_in_kafka() -> None:
    """400 a second for ten seconds, then 2,300 at once, with a quota of 500: (600 - 500) / 500 of 10.5 s."""
    rate = WindowedRate(11, 1000)
    for second in range(10):
        rate.record(400, second * 1000)
        assert rate.excess_ms(500, second * 1000) == 0
    rate.record(2300, 10_500)
    assert rate.per_second(10_500) == 600.0
    assert rate.excess_ms(500, 10_500) == 2100


def test_it_is_over_when_little_came_since() -> None:
    rate = WindowedRate(11, 1000)
    rate.record(6300, 0)
    for second in range(1, 12):
        rate.record(400, second * 1000)
    assert rate.excess_ms(500, 22_000) == 0


def test_the_first_request_may_be_ten_seconds_worth() -> None:
    rate = WindowedRate(11, 1000)
    rate.record(5000, 77)
    assert rate.excess_ms(500, 77) == 0, "equal is fine"
    rate.record(1, 77)
    assert rate.excess_ms(500, 77) == 2


def test_idle_time_makes_no_samples_and_is_counted() -> None:
    rate = WindowedRate(11, 1000)
    rate.record(1000, 0)
    assert rate.per_second(10_999) == 1000 * 1000 / 10_999
    assert rate.per_second(11_000) == 0.0, "too old by now"


def test_what_is_taken_back_does_not_count() -> None:
    rate = WindowedRate(11, 1000)
    rate.record(9000, 0)
    rate.record(-9000, 0)
    assert rate.per_second(0) == 0.0


def test_the_sum_is_that_of_the_samples_that_are_left() -> None:
    chance = random.Random(3)
    rate = WindowedRate(11, 1000)
    recorded: list[tuple[int, int]] = []
    now_ms = 0
    for _ in range(3000):
        now_ms += chance.choice((0, 1, 10, 900, 1000, 5000, 12_000))
        value = chance.randrange(1000)
        rate.record(value, now_ms)
        recorded.append((now_ms, value))
        rate.forget_old(now_ms)
        youngest = sum(v for t, v in recorded if t > now_ms - 11_000)
        oldest = sum(v for t, v in recorded if t > now_ms - 13_000)
        assert youngest <= rate.total <= oldest


def test_a_simple_rate_begins_with_one_whole_sample() -> None:
    rate = SimpleRate(11, 1000)
    rate.record(1000, 0)
    assert rate.per_second(0) == 1000.0
    assert rate.per_second(4000) == 250.0


def test_a_bucket_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(2.0, 10, 1000, 0)
    assert bucket.tokens(0) == 20.0
    bucket.take(30, 0)
    assert bucket.is_exhausted(0)
    assert bucket.wait_ms(0) == 5000
    assert not bucket.is_exhausted(5000), "0 is not exhausted"
    assert bucket.tokens(60_000) == 20.0, "never more than the burst"


def test_a_changed_rate_keeps_what_is_there() -> None:
    bucket = TokenBucket(2.0, 10, 1000, 0)
    bucket.take(15, 0)
    bucket.change_rate(4.0, 0)
    assert bucket.tokens(0) == 5.0
    bucket.change_rate(0.2, 0)
    assert bucket.tokens(0) == 2.0
