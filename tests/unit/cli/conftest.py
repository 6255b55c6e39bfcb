"""A data directory as a node leaves it behind, for the commands that look into one."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.records.builder import BatchBuilder
from moldau.sim.kernel.disk import SimDisk
from tests.unit.node.world import NodeWorld, produce_request


def copy_out(disk: SimDisk, path: str, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, size in disk.list_with_sizes(path).items():
        if size < 0:
            copy_out(disk, f"{path}/{name}", target / name)
        else:
            (target / name).write_bytes(disk.read_file(f"{path}/{name}"))


def idempotent(now_ms: int, producer_id: int, sequence: int) -> bytes:
    builder = BatchBuilder()
    builder.append(now_ms, b"key", b"v" * 30_000)
    return builder.build(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a node left behind at a clean stop: topics, an idempotent producer, several segments, metadata snapshots."""
    world = NodeWorld(
        **{
            "metadata.log.max.record.bytes.between.snapshots": "2000",
            "log.segment.bytes": "1048576",
            "log.index.interval.bytes": "1024",
        }
    ).start()
    for topic in ("orders", "payments"):
        assert world.create(topic, 2) == 0
    producer = world.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    for sequence in range(60):
        data = idempotent(world.now_ms, producer.producer_id, sequence)
        answer = world.ask(produce_request("orders", 0, data), 9).responses[0].partition_responses[0]
        assert answer.error_code == 0
        world.run(20)
    for number in range(20):
        assert world.create(f"more-{number}") == 0
    world.run(2000)
    world.leave()
    world.stop()
    target = tmp_path_factory.mktemp("written") / "data"
    copy_out(world.disk, "/data", target)
    return target
