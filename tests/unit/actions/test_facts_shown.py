"""Small things that pages are told: health in words, since when a broker is gone, rates, lag, answers that are kept."""

from __future__ import annotations

import asyncio
import time

import pytest

from moldau.actions.broker_absences import BrokerAbsences
from moldau.actions.cached_result import CachedResult
from moldau.actions.group_lag import lag_of
from moldau.actions.health_words import health_sentences
from moldau.actions.rates import Rates
from moldau.client.admin import ClusterDescription
from moldau.client.connection.cluster import Broker, PartitionMetadata
from moldau.client.results import TopicPartition
from moldau.facts.cluster_health import degraded_topics, health_of
from tests.pace import deadline


def partition(number: int, leader: int, replicas: list[int], in_sync: list[int]) -> PartitionMetadata:
    return PartitionMetadata("orders", number, leader, 0, replicas, in_sync, [])


def words(
    partitions: list[PartitionMetadata], fenced: set[int], minimum: int, broker_absences: BrokerAbsences
) -> list[str]:
    brokers = [Broker(number, "host", 9092, None) for number in (1, 2, 3)]
    found = ClusterDescription("cluster", 1, brokers, fenced)
    health = health_of(found, None, partitions, dict.fromkeys(degraded_topics(partitions), minimum))
    return [str(row["text"]) for row in health_sentences(health, broker_absences)]


def test_a_healthy_cluster_has_one_sentence() -> None:
    assert words([partition(0, 1, [1, 2], [1, 2])], set(), 1, BrokerAbsences()) == [
        "Everything is as it should be: all brokers are there, all replicas are in sync."
    ]


def test_what_is_wrong_is_said_the_worst_first() -> None:
    broker_absences = BrokerAbsences()
    broker_absences.note([1, 2, 3], 1_000)
    broker_absences.note([1, 2], 2_000)
    partitions = [
        partition(0, 1, [1, 2, 3], [1, 2]),
        partition(1, 1, [1, 2, 3], [1, 2]),
        partition(2, -1, [3], []),
    ]
    found = words(partitions, {3}, 1, broker_absences)
    assert found[0] == "Broker 3 is gone"
    assert found[1].startswith("1 partition has no leader")
    assert any(text == "2 partitions have one replica less in sync than they should" for text in found)
    assert broker_absences.since(3) == 2_000


def test_too_few_replicas_for_writes_are_told() -> None:
    assert any(
        "writes with acks=all fail" in text
        for text in words([partition(0, 1, [1, 2, 3], [1])], set(), 2, BrokerAbsences())
    )
    assert any("one less" in text for text in words([partition(0, 1, [1, 2, 3], [1, 2])], set(), 2, BrokerAbsences()))


def test_a_broker_that_comes_back_is_not_gone() -> None:
    broker_absences = BrokerAbsences()
    for now_ms, there in enumerate(([1, 2], [1], [1], [1, 2], [1])):
        broker_absences.note(there, now_ms)
    assert broker_absences.gone == [2] and broker_absences.since(2) == 4
    assert broker_absences.since(7) is None


@pytest.mark.parametrize(
    ("offset", "end", "written", "lag"),
    [
        (10, 10, None, (0, 0.0)),
        (12, 10, None, (0, 0.0)),
        (None, 10, None, (None, None)),
        (3, None, None, (None, None)),
        (3, 10, 40_000, (7, 60.0)),
        (3, 10, None, (7, None)),
        (3, 10, 200_000, (7, 0.0)),
    ],
)
def test_lag_in_records_and_seconds(
    offset: int | None, end: int | None, written: int | None, lag: tuple[int | None, float | None]
) -> None:
    assert lag_of(offset, end, written, 100_000) == lag


def test_rates_come_from_two_looks() -> None:
    async def load() -> dict[TopicPartition, int]:
        return {}

    rates = Rates(load)
    one, two = TopicPartition("a", 0), TopicPartition("b", 0)
    rates.add({one: 100, two: 50}, 10.0, 10_000)
    assert not rates.points
    rates.add({one: 300, two: 40, TopicPartition("c", 0): 9}, 12.0, 12_000)
    assert rates.points[-1] == (12_000, 100.0)
    assert rates.by_topic == {"a": 100.0, "b": 0.0}


def test_an_answer_is_asked_for_once_and_kept() -> None:
    async def run() -> None:
        asked = 0

        async def load() -> int:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            if asked == 3:
                raise ValueError("away")
            return asked

        cached_result = CachedResult(load, fresh_s=1000, stale_s=2000)
        assert await asyncio.gather(cached_result.get(), cached_result.get(), cached_result.get()) == [1, 1, 1]
        assert await cached_result.get_new() == 2
        cached_result.forget()
        with pytest.raises(ValueError):
            await cached_result.get()
        assert await cached_result.get() == 4

    asyncio.run(run())


def test_a_stale_answer_is_given_while_a_new_one_is_asked_for() -> None:
    async def run() -> None:
        count = 0

        async def load() -> int:
            nonlocal count
            count += 1
            return count

        cached_result = CachedResult(load, fresh_s=0, stale_s=1000)
        assert await cached_result.get() == 1
        limit = deadline(5)
        while await cached_result.get() == 1:
            # Never waited for: what is known is given at once, and the new answer comes beside it.
            assert time.monotonic() < limit
            await asyncio.sleep(0.001)

    asyncio.run(run())


def test_who_waits_is_given_no_stale_answer() -> None:
    async def run() -> None:
        count = 0

        async def load() -> int:
            nonlocal count
            count += 1
            return count

        cached_result = CachedResult(load, fresh_s=0, stale_s=1000, waits=True)
        limit = deadline(5)
        while count < 3:
            value = await cached_result.get()
            await asyncio.sleep(0.005)
            # Nothing newer was asked for beside the answer that was given.
            assert value == count and time.monotonic() < limit

    asyncio.run(run())
