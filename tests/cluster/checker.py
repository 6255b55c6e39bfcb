"""Holds what readers find against what was acknowledged: nothing lost, nothing twice, nothing out of order."""

from __future__ import annotations

import itertools
import time

from moldau.client import Consumer, TopicPartition
from moldau.client.admin import Admin
from moldau.client.admin.placement import PREFERRED
from tests.cluster.cluster_nodes import Cluster, wait_for
from tests.cluster.load import Load, PartitionLoad, Reader, number_of
from tests.pace import patience

READ_S_MAX = patience(60)


def read_all(
    bootstrap: str, topic: str, partitions: int, security: dict[str, object] | None = None
) -> list[dict[int, int]]:
    """Of every partition: offset and number of each record, up to the end there is now."""
    found: list[dict[int, int]] = [{} for _ in range(partitions)]
    everywhere = [TopicPartition(topic, number) for number in range(partitions)]
    with Consumer(bootstrap, config={"request.timeout.ms": 5000, **(security or {})}) as consumer:
        consumer.assign(everywhere)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(everywhere)
        deadline = time.monotonic() + READ_S_MAX
        while any(consumer.position(partition) < ends[partition] for partition in everywhere):
            assert time.monotonic() < deadline, f"the end {ends} was not reached"
            for record in consumer.poll(500):
                found[record.partition][record.offset] = number_of(record.partition, record.value or b"")
    return found


def check_partition(part: PartitionLoad, found: dict[int, int], who: str) -> None:
    where = f"partition {part.partition} as {who} has it"
    numbers = list(found.values())
    assert len(set(numbers)) == len(numbers), f"{where}: records twice: {duplicates(numbers)[:5]}"
    assert all(a < b for a, b in itertools.pairwise(numbers)), f"{where}: records out of order"
    missing = [number for number, offset in part.offsets.items() if found.get(offset) != number]
    assert not missing, (
        f"{where}: {len(missing)} of {len(part.offsets)} acknowledged records are not where they were acknowledged: "
        f"{[(number, part.offsets[number], found.get(part.offsets[number])) for number in missing[:5]]}"
    )
    assert not numbers or numbers[-1] < part.sent, f"{where}: a record that was never sent"


def duplicates(numbers: list[int]) -> list[int]:
    seen: set[int] = set()
    return [number for number in numbers if number in seen or seen.add(number)]  # type: ignore[func-returns-value]


def check_load(load: Load, reader: Reader | None, found: list[dict[int, int]], who: str) -> None:
    for part in load.parts:
        check_partition(part, found[part.partition], who)
        if reader is not None:
            seen = reader.seen[part.partition]
            differing = [
                (o, n, found[part.partition].get(o)) for o, n in seen.items() if found[part.partition].get(o) != n
            ]
            assert not differing, f"partition {part.partition}: a reader saw something else before: {differing[:5]}"


def check_every_replica(cluster: Cluster, load: Load, reader: Reader | None) -> None:
    """Makes each node the leader of everything in turn, and reads everything from it."""
    topic, partitions = load.topic, len(load.parts)
    first: list[dict[int, int]] | None = None
    for node_id in cluster.ids:
        make_leader(cluster, topic, partitions, node_id)
        found = read_all(cluster.bootstrap, topic, partitions, cluster.security)
        check_load(load, reader, found, f"node {node_id}")
        first = found if first is None else first
        assert found == first, f"node {node_id} has other records than node {cluster.ids[0]}"


def make_leader(cluster: Cluster, topic: str, partitions: int, node_id: int) -> None:
    admin: Admin = cluster.admin
    others = [other for other in cluster.ids if other != node_id]
    everywhere = [TopicPartition(topic, number) for number in range(partitions)]
    for outcome in admin.alter_partition_reassignments(
        {partition: [node_id, *others] for partition in everywhere}
    ).values():
        outcome.get()
    wait_for(
        lambda: not admin.list_partition_reassignments(), 30, "the replicas are in their new order", cluster.outputs
    )
    cluster.await_full_isr(topic)
    admin.elect_leaders(PREFERRED, everywhere)
    wait_for(
        lambda: set(cluster.leaders(topic).values()) == {node_id},
        30,
        f"node {node_id} leads everything",
        lambda: f"{cluster.leaders(topic)}\n{cluster.outputs()}",
        0.1,
    )
