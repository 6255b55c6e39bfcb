"""The overview: brokers, quorum, health in words, and how many records a second arrive."""

from __future__ import annotations

from moldau.actions.calls import Call, reading
from moldau.actions.health_words import health_sentences
from moldau.actions.refusals import error_row
from moldau.actions.topic_facts import AllTopics
from moldau.actions.viewer import BrokersAndQuorum
from moldau.client.admin import QuorumInfo
from moldau.facts.cluster_health import health_of, min_in_sync


async def show_overview(call: Call) -> object:
    viewer = call.viewer
    described = await viewer.cluster.get()
    known = await viewer.topics.get()
    degraded = {item.topic for item in known.degraded}
    minimums = await viewer.clients.ask(lambda admin: min_in_sync(admin, degraded)) if degraded else {}
    health = health_of(described.cluster, described.quorum, known.degraded, minimums)
    return {
        "cluster_id": described.cluster.cluster_id,
        "controller": health.controller,
        "topics": len(known.topics) - known.internal,
        "internal_topics": known.internal,
        "partitions": known.partitions,
        "healthy": health.healthy and not viewer.broker_absences.gone,
        "health": health_sentences(health, viewer.broker_absences),
        "brokers": broker_rows(described, known),
        "quorum": _quorum_summary(described),
    }


def broker_rows(described: BrokersAndQuorum, known: AllTopics) -> list[dict[str, object]]:
    """Each broker with how much it leads and has."""
    return [
        {
            "id": broker.id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "fenced": broker.id in described.cluster.fenced,
            "leaders": known.leaders.get(broker.id, 0),
            "replicas": known.replicas.get(broker.id, 0),
            "out_of_sync": known.behind.get(broker.id, 0),
        }
        for broker in described.cluster.brokers
    ]


def _quorum_summary(described: BrokersAndQuorum) -> dict[str, object]:
    if described.quorum is None:
        assert described.quorum_error is not None
        return error_row(described.quorum_error)
    quorum = described.quorum
    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": len(quorum.voters),
        "observers": len(quorum.observers),
    }


async def show_rates(call: Call) -> object:
    """The last few minutes, and the busiest topics now."""
    rates = call.viewer.rates
    rates.watch()
    busiest = sorted(rates.by_topic.items(), key=lambda pair: -pair[1])[:8]
    return {
        "points": [{"at_ms": at_ms, "per_second": value} for at_ms, value in rates.points],
        "busiest": [{"topic": topic, "per_second": value} for topic, value in busiest if value > 0],
    }


async def show_quorum(call: Call) -> object:
    """The controllers: who leads, who votes, how far each is."""
    described = await call.viewer.cluster.get()
    if described.quorum is None:
        assert described.quorum_error is not None
        raise described.quorum_error
    quorum = described.quorum
    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": _replica_rows(quorum, voters=True),
        "observers": _replica_rows(quorum, voters=False),
    }


def _replica_rows(quorum: QuorumInfo, voters: bool) -> list[dict[str, object]]:
    replicas = quorum.voters if voters else quorum.observers
    every = [*quorum.voters, *quorum.observers]
    leader_end = max((item.log_end_offset for item in every if item.replica_id == quorum.leader_id), default=None)
    return [
        {
            "id": item.replica_id,
            "directory_id": item.directory_id.hex(),
            "log_end_offset": item.log_end_offset,
            "lag": None if leader_end is None or item.log_end_offset < 0 else max(0, leader_end - item.log_end_offset),
            "last_fetch_ms": item.last_fetch_timestamp,
            "last_caught_up_ms": item.last_caught_up_timestamp,
            "endpoints": [
                f"{where.listener}://{where.host}:{where.port}" for where in quorum.nodes.get(item.replica_id, [])
            ],
        }
        for item in sorted(replicas, key=lambda item: item.replica_id)
    ]


ROUTES = [
    reading("/api/overview", show_overview),
    reading("/api/rates", show_rates),
    reading("/api/quorum", show_quorum),
]
