"""What a scrape costs: a node with many partitions and groups on a simulated disk, CPU time and the longest slice.

    python -m bench.metrics [--partitions 10000] [--groups 1000] [--per-group 10] [--scrapes 5]

The first scrape is shown apart: it looks up the times of records that later ones know.
"""

from __future__ import annotations

import argparse
import gc
import time

from moldau.config.own_keys import METRICS_SPELLINGS
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.server.metrics.collect import Sources, collect
from moldau.server.metrics.metric import metric_pieces
from tests.unit.node.world import NodeWorld

PARTITIONS_PER_TOPIC = 10
SLICE_S = 0.002


def build(partitions: int, groups: int, per_group: int) -> NodeWorld:
    world = NodeWorld(log_cleaner_enable="false", offsets_topic_replication_factor="1").start()
    topics = max(1, partitions // PARTITIONS_PER_TOPIC)
    for number in range(topics):
        wanted = CreatableTopic(name=f"topic-{number}", num_partitions=PARTITIONS_PER_TOPIC, replication_factor=1)
        world.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 5)
        world.run(1000)
    while len(world.node.replicas.all()) < topics * PARTITIONS_PER_TOPIC:
        world.run(1000)
    world.ask(FindCoordinatorRequest(key="group-0", key_type=0), 3)
    world.run(3000)
    for number in range(groups):
        topic = f"topic-{number % topics}"
        first = number * per_group % PARTITIONS_PER_TOPIC
        if number < topics:
            for index in range(per_group):
                world.produce(topic, (first + index) % PARTITIONS_PER_TOPIC, 10)
        rows = [OffsetCommitRequestPartition((first + n) % PARTITIONS_PER_TOPIC, 3) for n in range(per_group)]
        request = OffsetCommitRequest(
            group_id=f"group-{number}", topics=[OffsetCommitRequestTopic(topic, partitions=rows)]
        )
        answer = world.ask(request, 7)
        assert answer.topics[0].partitions[0].error_code == 0
    gc.collect()
    gc.freeze()
    return world


def scrape(sources: Sources, now_ms: int) -> tuple[float, float, int, int]:
    """CPU seconds, the longest stretch between two places where others may have their turn, bytes and rows."""
    gc.disable()
    longest = 0.0
    size = rows = 0
    pieces: list[bytes] = []
    cpu = time.process_time()
    began = time.thread_time()
    for metric in collect(sources, now_ms, time.monotonic()):
        for text in metric_pieces(metric, METRICS_SPELLINGS[0]) if metric is not None else ("",):
            pieces.append(text.encode())
            now = time.thread_time()
            if now - began > longest:
                longest = now - began
            began = now
    cpu = time.process_time() - cpu
    gc.enable()
    for piece in pieces:
        size += len(piece)
        rows += piece.count(b"\n")
    return cpu, longest, size, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--per-group", type=int, default=10)
    parser.add_argument("--scrapes", type=int, default=5)
    options = parser.parse_args()
    world = build(options.partitions, options.groups, options.per_group)
    sources = Sources(world.node)
    for number in range(options.scrapes):
        cpu, longest, size, rows = scrape(sources, world.now_ms)
        print(
            f"scrape {number + 1}: {cpu * 1000:.1f} ms of CPU, longest stretch {longest * 1000:.2f} ms, "
            f"{rows} lines, {size / 1e6:.1f} MB"
        )
        world.run(1000)


if __name__ == "__main__":
    main()
