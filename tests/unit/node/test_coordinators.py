"""The group coordinator on a whole node: its topic, its leadership, restarts, crashes, failing disks."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from moldau.coordinator.routing import java_hash, partition_for
from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from moldau.sim.kernel import cold_memory
from moldau.sim.kernel.disk import SimFile
from moldau.sim.kernel.disk_calls import nothing
from tests.unit.node.world import Asked, NodeWorld


def new_world(**settings: str) -> NodeWorld:
    return NodeWorld(offsets_topic_replication_factor="1", offsets_topic_num_partitions="5", **settings)


def ready_world(**settings: str) -> NodeWorld:
    """A node with the topic `t` and a coordinator for every group."""
    world = new_world(**settings).start()
    world.create("t", 3)
    find(world, "g")
    world.run(200)
    return world


def find(world: NodeWorld, group: str) -> Any:
    return world.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators[0]


def commit(world: NodeWorld, group: str, partition: int, offset: int, topic: str = "t") -> int:
    row = OffsetCommitRequestPartition(partition, offset, -1, "")
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[row])])
    return int(world.ask(request, 9).topics[0].partitions[0].error_code)


def fetch(world: NodeWorld, group: str) -> dict[tuple[str, int], int] | int:
    """The offsets of a group, or the error."""
    answer = world.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)]), 9).groups[0]
    if answer.error_code:
        return int(answer.error_code)
    return {
        (topic.name, row.partition_index): row.committed_offset for topic in answer.topics for row in topic.partitions
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("group", 98629247), ("polygenelubricants", -2147483648), ("\U0001f600", 1772899)],
)
def test_hashes_are_those_of_java(text: str, expected: int) -> None:
    assert java_hash(text) == expected
    assert partition_for(text, 50) == (0 if expected == -2147483648 else abs(expected) % 50)


def test_the_first_question_makes_the_topic() -> None:
    world = new_world().start()
    answer = find(world, "g")
    assert (answer.error_code, answer.node_id, answer.port) == (errors.COORDINATOR_NOT_AVAILABLE, -1, -1)
    world.run(200)
    answer = find(world, "g")
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "127.0.0.1", 9092)
    assert len(world.describe("__consumer_offsets").partitions) == 5


def test_without_its_topic_there_is_no_coordinator() -> None:
    world = new_world().start()
    world.create("t")
    assert commit(world, "g", 0, 5) == errors.NOT_COORDINATOR
    assert fetch(world, "g") == errors.NOT_COORDINATOR


def test_a_topic_that_cannot_have_its_replicas_is_not_made() -> None:
    world = NodeWorld(offsets_topic_replication_factor="3").start()
    for _ in range(3):
        assert find(world, "g").error_code == errors.COORDINATOR_NOT_AVAILABLE
        world.run(200)


def test_offsets_survive_a_restart() -> None:
    world = ready_world()
    for number in range(30):
        assert commit(world, f"g{number % 7}", number % 3, number) == 0
    before = {group: fetch(world, group) for group in (f"g{number}" for number in range(7))}
    assert world.leave()
    world.stop()
    world.start()
    assert {group: fetch(world, group) for group in before} == before
    assert commit(world, "g0", 0, 1000) == 0


def test_offsets_survive_the_death_of_the_process() -> None:
    world = ready_world()
    for number in range(30):
        commit(world, f"g{number % 7}", number % 3, number)
    before = {group: fetch(world, group) for group in (f"g{number}" for number in range(7))}
    world.disk.process_crash()
    world.events.clear()
    world.start()
    assert {group: fetch(world, group) for group in before} == before


def test_the_coordinator_loads_step_by_step() -> None:
    """Meanwhile clients are told to wait; afterwards everything is there."""
    world = ready_world(offsets_load_buffer_size="500")
    for number in range(60):
        commit(world, "g", number % 3, number)
    world.stop()
    seen: list[object] = []
    world.run = lambda duration_ms: step(world, duration_ms, seen)  # type: ignore[method-assign]
    world.start()
    assert errors.COORDINATOR_LOAD_IN_PROGRESS in seen
    assert fetch(world, "g") == {("t", 0): 57, ("t", 1): 58, ("t", 2): 59}


@pytest.mark.parametrize("evicted", [0.0, 1.0])
def test_the_coordinator_loads_cold_data_without_waiting_in_a_turn(
    monkeypatch: pytest.MonkeyPatch, evicted: float
) -> None:
    """Threads read the log of the offsets; a node that was just started has none of it in memory."""
    monkeypatch.setattr(cold_memory, "EVICTED_AT_ONCE_CHANCE", evicted)
    world = ready_world(offsets_load_buffer_size="500")
    for number in range(60):
        commit(world, f"g{number % 4}", number % 3, number)
    before = {group: fetch(world, group) for group in ("g0", "g1", "g2", "g3")}
    world.stop()
    world.disk.memory.cold_chance = 1.0
    in_turn: list[str] = []
    allowed: list[bool] = []
    real_read, real_read_now, real_later = SimFile.read, SimFile.read_now, world.disk._do_later

    def read(file: SimFile, position: int, size: int) -> bytes:
        if "__consumer_offsets" in file.path and world.node.is_ready and not allowed and not world.disk.refuses_cold:
            in_turn.append(file.path)
        return real_read(file, position, size)

    def read_now(file: SimFile, position: int, size: int) -> bytes | bytearray | None:
        allowed.append(True)
        try:
            return real_read_now(file, position, size)
        finally:
            allowed.pop()

    def do_later(path: str, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        def act() -> None:
            allowed.append(True)
            work()
            allowed.pop()

        real_later(path, act, done)

    monkeypatch.setattr(world.disk, "_do_later", do_later)
    monkeypatch.setattr(SimFile, "read", read)
    monkeypatch.setattr(SimFile, "read_now", read_now)
    world.start()
    world.run(2000)
    assert {group: fetch(world, group) for group in before} == before
    assert in_turn == []


def test_a_disk_that_fails_while_the_coordinator_loads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ready_world(offsets_load_buffer_size="500")
    for number in range(60):
        commit(world, "g", number % 3, number)
    world.stop()
    world.disk.memory.cold_chance = 1.0

    def read_later(file: SimFile, position: int, size: int, done: Callable[[bytes | OSError], None]) -> None:
        world.disk._do_later(file.path, nothing, lambda _: done(OSError(errno.EIO, "bad sector", file.path)))

    monkeypatch.setattr(world.disk, "read_later", read_later)
    world.start()
    world.run(500)
    assert world.node.logs.directories[0].failed
    assert fetch(world, "g") in (errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE)


def step(world: NodeWorld, duration_ms: int, seen: list[object]) -> None:
    for _ in range(duration_ms // 20):
        NodeWorld.run(world, 20)
        if world.node.is_ready:
            seen.append(fetch(world, "g"))


def test_a_deleted_topic_of_offsets_has_no_coordinator() -> None:
    world = ready_world()
    commit(world, "g", 0, 5)
    assert world.delete("__consumer_offsets") == 0
    assert world.node.coordinators.groups.runtime.shards == {}
    assert commit(world, "g", 0, 6) == errors.NOT_COORDINATOR
    find(world, "g")
    world.run(200)
    assert fetch(world, "g") == {}


def test_offsets_go_with_their_topic() -> None:
    world = ready_world()
    world.create("kept")
    commit(world, "g", 0, 5)
    commit(world, "g", 0, 6, "kept")
    world.delete("t")
    assert fetch(world, "g") == {("kept", 0): 6}
    world.create("t")
    world.stop()
    world.start()
    assert fetch(world, "g") == {("kept", 0): 6}


def test_a_commit_that_cannot_be_written_is_refused_and_forgotten() -> None:
    world = ready_world()
    commit(world, "g", 0, 5)
    world.disk.fail("append", "__consumer_offsets", errno.ENOSPC, times=1)
    assert commit(world, "g", 0, 6) == errors.NOT_COORDINATOR
    assert fetch(world, "g") == {("t", 0): 5}
    assert commit(world, "g", 0, 7) == 0
    assert fetch(world, "g") == {("t", 0): 7}


def test_offsets_expire_while_the_node_runs() -> None:
    world = ready_world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    commit(world, "g", 0, 5)
    world.run(58_000)
    assert fetch(world, "g") == {("t", 0): 5}
    world.run(4_000)
    assert fetch(world, "g") == {}
    assert world.ask(ListGroupsRequest(), 5).groups == []


def uncommitted(world: NodeWorld, group: str, offset: int) -> Asked:
    """A commit that another replica has not fetched yet."""
    partition = world.node.replicas.find("__consumer_offsets", partition_for(group, 5))
    assert partition is not None
    partition.in_sync_replicas = [1, 2]
    row = OffsetCommitRequestPartition(0, offset, -1, "")
    return world.send(OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic("t", partitions=[row])]), 9)


def code_of(asked: Asked) -> int:
    return int(asked.response.topics[0].partitions[0].error_code)


def test_a_stopping_node_answers_whoever_waits() -> None:
    world = ready_world()
    asked = uncommitted(world, "g", 5)
    assert not asked.reply.done
    world.stop()
    assert code_of(asked) == errors.NOT_COORDINATOR


def test_a_commit_waits_for_the_other_replicas() -> None:
    world = ready_world()
    asked = uncommitted(world, "g", 5)
    world.run(4900)
    assert not asked.reply.done
    partition = world.node.replicas.find("__consumer_offsets", partition_for("g", 5))
    assert partition is not None
    partition.in_sync_replicas = [1]
    partition.advance_high_watermark(world.now_ms)
    assert code_of(asked) == 0


def test_a_commit_does_not_wait_for_ever() -> None:
    """offsets.commit.timeout.ms"""
    world = ready_world()
    asked = uncommitted(world, "g", 5)
    world.run(5000)
    assert code_of(asked) == errors.COORDINATOR_NOT_AVAILABLE


def test_without_enough_replicas_nothing_is_committed() -> None:
    world = ready_world()
    commit(world, "g", 0, 5)
    partition = world.node.replicas.find("__consumer_offsets", partition_for("g", 5))
    assert partition is not None
    partition.in_sync_replicas = []
    assert commit(world, "g", 0, 6) == errors.COORDINATOR_NOT_AVAILABLE
    assert fetch(world, "g") == {("t", 0): 5}
