"""Replication throttles: whom the settings name, and when a rate is used up."""

from __future__ import annotations

import pytest

from moldau.replication.throttle import UNLIMITED, ReplicationQuota, is_throttled


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [("", False), ("*", True), ("0:1", True), ("0:2", False), ("1:1", False), ("1:1,0:1", True), ("1:1, 0:1", True)],
)
def test_a_setting_names_partitions_on_brokers(replicas: str, throttled: bool) -> None:
    assert is_throttled(replicas, 0, 1) is throttled


def test_without_a_limit_nothing_is_exceeded() -> None:
    quota = ReplicationQuota()
    quota.record(UNLIMITED, 0)
    assert not quota.is_exceeded(0)


def test_a_rate_is_used_up_and_recovers() -> None:
    quota = ReplicationQuota()
    quota.limit = 1000
    quota.record(1000, 0)
    assert not quota.is_exceeded(0), "a second's worth"
    quota.record(1000, 0)
    assert quota.is_exceeded(500)
    assert not quota.is_exceeded(2000), "two seconds' worth in two seconds"


def test_in_the_long_run_the_rate_is_the_limit() -> None:
    quota = ReplicationQuota()
    quota.limit = 1000
    sent = 0
    for now_ms in range(0, 120_000, 10):
        if not quota.is_exceeded(now_ms):
            quota.record(100, now_ms)
            sent += 100
    assert 0.9 < sent / 120 / 1000 < 1.15
