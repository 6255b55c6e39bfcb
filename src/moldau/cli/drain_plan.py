"""Who takes over from a broker that is to be drained: other leaders, and if asked other replicas.

Only what the broker has is moved, each replica to the broker with the fewest of them, in another rack than the rest of
the partition where there is one. Its leaderships go to replicas that exist, so that they need no copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.client.connection.cluster import PartitionMetadata
from moldau.client.results import TopicPartition


class DrainPlan(NamedTuple):
    """The replicas that partitions are to have, the first to lead; and partitions for which nobody else is there."""

    changes: dict[TopicPartition, list[int]]
    stuck: list[TopicPartition]


def plan_drain(
    partitions: Iterable[PartitionMetadata], broker_id: int, racks: Mapping[int, str | None], with_replicas: bool
) -> DrainPlan:
    """racks: of all brokers that can take something over, by id."""
    rows = list(partitions)
    held = Counter(replica for item in rows for replica in item.replicas)
    led = Counter(item.replicas[0] for item in rows if item.replicas)
    plan = DrainPlan({}, [])
    for item in rows:
        if broker_id not in item.replicas:
            continue
        key = TopicPartition(item.topic, item.partition)
        others = [replica for replica in item.replicas if replica != broker_id]
        if with_replicas:
            chosen = _replacement(others, broker_id, racks, held)
            if chosen is None:
                plan.stuck.append(key)
                continue
            held[chosen] += 1
            wanted = [*others, chosen]
        elif others:
            wanted = [*others, broker_id]
        else:
            plan.stuck.append(key)
            continue
        if item.replicas[0] == broker_id:
            wanted = _with_leader(wanted, others, item.in_sync_replicas, racks, led)
        if wanted != item.replicas:
            plan.changes[key] = wanted
    return plan


def _replacement(others: list[int], broker_id: int, racks: Mapping[int, str | None], held: Counter[int]) -> int | None:
    free = [broker for broker in sorted(racks) if broker != broker_id and broker not in others]
    if not free:
        return None
    taken = {racks.get(replica) for replica in others} - {None}
    return min(free, key=lambda broker: (racks[broker] in taken, held[broker], broker))


def _with_leader(
    wanted: list[int], others: list[int], in_sync: list[int], racks: Mapping[int, str | None], led: Counter[int]
) -> list[int]:
    """Puts the replica first that leads the fewest, of those that could lead at once; the new one if there is none."""
    able = [replica for replica in others if replica in in_sync and replica in racks] or others or wanted
    first = min(able, key=lambda replica: (led[replica], wanted.index(replica)))
    led[first] += 1
    return [first, *(replica for replica in wanted if replica != first)]
