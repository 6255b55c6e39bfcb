"""Measures what holds up the event loop of a node with many partitions: CPU time of the longest turn of each kind.

    python bench/turns.py [--topics 200] [--partitions 50] [--rounds 5]

Nothing here uses a socket or a thread: only what the node's own thread computes is measured, in milliseconds of CPU,
the best of some rounds. Metadata is asked for all topics at once, in version 12: for the first time, again when nothing
has changed, and after the leader of one partition has. Snapshots, housekeeping and checkpoints take many turns; what
counts is the longest of them.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from moldau.api.call import Call
from moldau.api.metadata import handle_metadata
from moldau.config.broker_config import BrokerConfig
from moldau.config.log_config import LogConfig
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import LATEST_METADATA_VERSION, METADATA_VERSION
from moldau.metadata.image import MetadataImage
from moldau.node.context import ClientContext
from moldau.node.metadata_snapshots import SnapshotInProgress
from moldau.node.node import Node
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.stored import metadata_records as r
from moldau.records.builder import BatchBuilder
from moldau.records.clocks import NEVER_MS
from moldau.server.posix_disk import PosixDisk
from moldau.sim.kernel.disk import SimDisk
from moldau.storage.log_manager import LogManager
from moldau.storage.log_rounds import PAUSE_MS

BROKERS = (1, 2, 3)
START_MS = 1_700_000_000_000
SECONDS = (1, 2, 3, 60, 120)


def cpu_ms(action: Callable[[], Any]) -> float:
    began = time.process_time()
    action()
    return (time.process_time() - began) * 1000


def best(rounds: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(rounds))


def apply(image: MetadataImage, records: list[Any]) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply(image.offset + len(records), 1, START_MS)


def topic_id(topic: int) -> bytes:
    return (topic + 1000).to_bytes(16, "big")


def make_image(topics: int, partitions: int) -> MetadataImage:
    records: list[Any] = [r.FeatureLevelRecord(METADATA_VERSION, LATEST_METADATA_VERSION)]
    for broker in BROKERS:
        end_points = [r.BrokerEndpoint("PLAINTEXT", f"host-{broker}", 9092, 0)]
        directory = bytes([broker]) * 16
        records.append(
            r.RegisterBrokerRecord(
                broker,
                incarnation_id=directory,
                broker_epoch=1,
                end_points=end_points,
                fenced=False,
                log_dirs=[directory],
            )
        )
    for topic in range(topics):
        records.append(r.TopicRecord(f"topic-{topic}", topic_id(topic)))
        for index in range(partitions):
            first = (topic + index) % len(BROKERS)
            replicas = [*BROKERS[first:], *BROKERS[:first]]
            directories = [bytes([replica]) * 16 for replica in replicas]
            records.append(
                r.PartitionRecord(
                    index, topic_id(topic), replicas, replicas, leader=replicas[0], directories=directories
                )
            )
    return apply(MetadataImage(), records)


class World:
    """A node that knows an image and nothing else."""

    def __init__(self, image: MetadataImage) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "log.dirs": "/data",
        }
        self.node = Node(BrokerConfig(settings, warn=False), SimDisk(1), random.Random(1), bytes(16))
        self.node.image = image

    def ask_all(self) -> None:
        call = Call(
            self.node,
            ClientContext("PLAINTEXT", "client:1", False),
            api_key=3,
            version=12,
            correlation_id=1,
            client_id="client",
            flexible_response_header=True,
            now_ms=START_MS,
        )
        handle_metadata(call, MetadataRequest(topics=None))


def measure_metadata(image: MetadataImage, rounds: int) -> list[tuple[str, float]]:
    def cold() -> float:
        return cpu_ms(World(image).ask_all)

    world = World(image)
    world.ask_all()
    epochs = iter(range(1 << 30))

    def after_a_change() -> float:
        leader = BROKERS[next(epochs) % len(BROKERS)]
        world.node.image = apply(world.node.image, [r.PartitionChangeRecord(0, topic_id(0), leader=leader)])
        return cpu_ms(world.ask_all)

    return [
        ("Metadata of all topics, first time", best(rounds, cold)),
        ("Metadata of all topics, nothing changed", best(rounds, lambda: cpu_ms(world.ask_all))),
        ("Metadata of all topics, one changed", best(rounds, after_a_change)),
    ]


class NoVoters:
    """A quorum without a history, at which it is always the same time."""

    @property
    def voter_history(self) -> NoVoters:
        return self

    @property
    def wall(self) -> NoVoters:
        return self

    def at(self, now_ms: int) -> int:
        return now_ms

    def voters_before(self, offset: int) -> tuple[int, None]:
        return 0, None


def measure_snapshot(image: MetadataImage, rounds: int) -> list[tuple[str, float]]:
    raft: Any = NoVoters()

    def turns() -> list[float]:
        snapshot = SnapshotInProgress(image, raft, START_MS)
        times: list[float] = []
        done: list[bytes | None] = [None]

        def step() -> None:
            done[0] = snapshot.step()

        while done[0] is None:
            times.append(cpu_ms(step))
        return times

    runs = [turns() for _ in range(rounds)]
    return [
        ("snapshot of the metadata, all turns", min(sum(run) for run in runs)),
        ("snapshot of the metadata, longest turn", min(max(run) for run in runs)),
    ]


def measure_housekeeping(topics: int, partitions: int, rounds: int) -> list[tuple[str, float]]:
    place = tempfile.TemporaryDirectory(prefix="moldau-turns-")
    disk = PosixDisk()
    logs = LogManager(disk, [place.name], lambda topic: LogConfig())
    logs.load(START_MS)
    builder = BatchBuilder()
    builder.append(START_MS, b"key", b"value")
    data = builder.build(producer_id=7, producer_epoch=0, base_sequence=0)
    for topic in range(topics):
        for index in range(partitions):
            log = logs.create(f"topic-{topic}", index, topic_id(topic), START_MS)
            log.append_as_leader(MemoryRecords(data, 0, len(data)), 1, START_MS)
    idle: list[float] = []
    busy: list[float] = []
    for second in SECONDS:
        now_ms = START_MS + second * 1000
        times = [cpu_ms(partial(logs.housekeeping, now_ms))]
        while logs.rounds.poll(now_ms) < NEVER_MS:
            now_ms += PAUSE_MS
            times.append(cpu_ms(partial(logs.rounds.poll, now_ms)))
        (busy if second >= 60 else idle).append(max(times))
    end_offsets = iter(range(1, 1 << 30))

    def checkpoint() -> float:
        now_ms, offset = START_MS + 500_000, next(end_offsets)
        times = [cpu_ms(lambda: logs.rounds.begin_high_watermarks(logs.logs.values(), lambda log: offset))]
        while not logs.rounds.is_over:
            now_ms += PAUSE_MS
            times.append(cpu_ms(partial(logs.rounds.poll, now_ms)))
        return max(times)

    rows = [
        ("housekeeping of all logs, longest turn", min(idle)),
        ("housekeeping with checkpoints, longest turn", min(busy)),
        ("checkpoint of high watermarks, longest turn", best(rounds, checkpoint)),
    ]
    disk.close()
    place.cleanup()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=50, help="of each topic")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    image = make_image(options.topics, options.partitions)
    print(f"{options.topics * options.partitions:,} partitions in {options.topics:,} topics, ms of CPU in one turn")
    rows = measure_metadata(image, options.rounds)
    rows += measure_snapshot(image, options.rounds)
    rows += measure_housekeeping(options.topics, options.partitions, options.rounds)
    for name, value in rows:
        print(f"{name:<48}{value:>10.2f}")


if __name__ == "__main__":
    main()
