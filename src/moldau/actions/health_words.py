"""A cluster's health in sentences that need no explanation."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.actions.broker_absences import BrokerAbsences
from moldau.client.connection.cluster import PartitionMetadata
from moldau.facts.cluster_health import Health

BAD = "bad"
WARNING = "warning"
GOOD = "good"
NAMED_MAX = 3

Sentence = dict[str, object]


def health_sentences(health: Health, broker_absences: BrokerAbsences) -> list[Sentence]:
    """The worst first; one that all is well where it is."""
    found: list[Sentence] = []
    if health.controller < 0:
        found.append(_sentence(BAD, "There is no controller: nothing can be created, changed or elected."))
    for broker_id in sorted({*health.fenced, *broker_absences.gone}):
        found.append(_sentence(BAD, f"Broker {broker_id} is gone", since_ms=broker_absences.since(broker_id)))
    if health.offline:
        what = f"{_partitions(health.offline)} no leader: nobody can read or write {_them(health.offline)}"
        found.append(_sentence(BAD, what, health.offline))
    if health.under_min:
        count = _partitions(health.under_min)
        what = f"{count} fewer replicas in sync than min.insync.replicas: writes with acks=all fail"
        found.append(_sentence(BAD, what, health.under_min))
    if health.at_min:
        what = f"{_partitions(health.at_min)} only min.insync.replicas in sync: one less, and writes with acks=all fail"
        found.append(_sentence(WARNING, what, health.at_min))
    found += _less_replicas(health)
    for voter in health.voters_behind:
        found.append(_sentence(WARNING, f"Controller {voter} is behind the others."))
    if not found:
        found.append(_sentence(GOOD, "Everything is as it should be: all brokers are there, all replicas are in sync."))
    return found


def _less_replicas(health: Health) -> list[Sentence]:
    """How many replicas are missing, partitions with the same number together."""
    by_missing: dict[int, list[PartitionMetadata]] = {}
    for item in health.under_replicated:
        if item.leader < 0:
            continue  # said already, and worse
        by_missing.setdefault(len(item.replicas) - len(item.in_sync_replicas), []).append(item)
    return [
        _sentence(
            WARNING,
            f"{_partitions(items)} {'one replica' if missing == 1 else f'{missing} replicas'} less in sync than"
            f" {'they' if len(items) > 1 else 'it'} should",
            items,
        )
        for missing, items in sorted(by_missing.items(), reverse=True)
    ]


def _partitions(items: Sequence[PartitionMetadata]) -> str:
    return "1 partition has" if len(items) == 1 else f"{len(items):,} partitions have"


def _them(items: Sequence[PartitionMetadata]) -> str:
    return "it" if len(items) == 1 else "them"


def _sentence(level: str, text: str, items: Sequence[PartitionMetadata] = (), since_ms: int | None = None) -> Sentence:
    """text has no full stop where a page adds since when, or which partitions."""
    named = [{"topic": item.topic, "partition": item.partition} for item in items[:NAMED_MAX]]
    return {"level": level, "text": text, "since_ms": since_ms, "partitions": named, "count": len(items)}
