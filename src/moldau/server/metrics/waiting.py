"""Requests that wait, and what fetch sessions keep: the names of Kafka's purgatories and of its session cache."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.api.fetch import ParkedFetch
from moldau.api.fetch_follower import ParkedFollowerFetch
from moldau.api.offsets import ParkedDeletion
from moldau.api.produce import ParkedProduce
from moldau.node.fetch_session import FetchSessionCache
from moldau.node.replica_session import ReplicaSession
from moldau.node.share.partition import RecordsWaiter
from moldau.node.waiting import ParkedRequest, TimedWaiter, WaitingRoom
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.metric import GAUGE, Metric, meter

PURGATORY = "kafka_server_delayedoperationpurgatory"
SESSIONS = "kafka_server_fetchsessioncache"
PRODUCE, FETCH, DELETE_RECORDS, SHARE_FETCH = "Produce", "Fetch", "DeleteRecords", "ShareFetch"


def waiting_metrics(waiting: WaitingRoom) -> Iterator[Metric | None]:
    parked = dict.fromkeys((PRODUCE, FETCH, DELETE_RECORDS, SHARE_FETCH), 0)
    watched = dict(parked)
    waiters = waiting.waiters()
    for start in range(0, len(waiters), BLOCK_SIZE):
        for waiter in waiters[start : start + BLOCK_SIZE]:
            if waiter.finished:
                continue
            operation = operation_of(waiter)
            if operation:
                parked[operation] += 1
                watched[operation] += len(waiter.partitions) if isinstance(waiter, ParkedRequest) else 1
        yield None
    sizes = Metric(f"{PURGATORY}_purgatorysize", GAUGE, "Partitions that waiting requests wait for, by kind of request")
    counts = Metric(f"{PURGATORY}_numdelayedoperations", GAUGE, "Requests that wait, by kind")
    for operation, count in parked.items():
        labels = (("delayedOperation", operation),)
        sizes.values[labels] = watched[operation]
        counts.values[labels] = count
    yield sizes
    yield counts
    fetches = meter(
        "kafka_server_delayedfetchmetrics_expires", "Fetches that waited as long as they may, by who sent them"
    )
    fetches.values[(("fetcherType", "consumer"),)] = waiting.expired_fetches
    fetches.values[(("fetcherType", "follower"),)] = waiting.expired_follower_fetches
    yield fetches
    about = "Partitions of Produce requests that were not replicated in time"
    yield meter("kafka_server_delayedproducemetrics_expires", about, waiting.expired_produces)


def operation_of(waiter: TimedWaiter) -> str:
    """Empty for what no client waits for."""
    if isinstance(waiter, ParkedFetch | ParkedFollowerFetch):
        return FETCH
    if isinstance(waiter, ParkedProduce):
        return PRODUCE
    if isinstance(waiter, RecordsWaiter):
        return SHARE_FETCH
    return DELETE_RECORDS if isinstance(waiter, ParkedDeletion) else ""


def session_metrics(cache: FetchSessionCache) -> Iterator[Metric | None]:
    partitions = 0
    sessions = cache.all()
    for number, session in enumerate(sessions):
        partitions += len(session.followed if isinstance(session, ReplicaSession) else session.partitions)
        if number % BLOCK_SIZE == BLOCK_SIZE - 1:
            yield None
    yield Metric(f"{SESSIONS}_numincrementalfetchsessions", GAUGE, "Fetch sessions", len(sessions))
    yield Metric(f"{SESSIONS}_numincrementalfetchpartitionscached", GAUGE, "Partitions in fetch sessions", partitions)
    about = "Fetch sessions that had to make room for others"
    yield meter(f"{SESSIONS}_incrementalfetchsessionevictions", about, cache.evictions_total)
