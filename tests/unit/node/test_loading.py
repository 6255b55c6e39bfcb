"""Logs are opened a few a turn: the quorum forms meanwhile, and a node may stop before all of them are open."""

from __future__ import annotations

import pytest

from moldau.node.node import Node
from moldau.protocol import errors
from moldau.storage import log_loading
from moldau.storage.recovery_task import RecoveryResult, RecoveryTask, RecoveryWorkers, recover
from tests.unit.node.cluster import Cluster
from tests.unit.node.world import NodeWorld

PARTITIONS = 30
MANY = 200  # so that an election takes less time than to open them


@pytest.fixture(autouse=True)
def one_log_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.storage.log_manager.LOGS_PER_TURN", 1)


def loaded(node: Node) -> int:
    return len(node.logs.logs)


def test_a_quorum_has_a_leader_while_its_brokers_still_open_their_logs() -> None:
    """After a power loss of all nodes nobody waits for the recovery of a majority."""
    cluster = Cluster(controller_quorum_election_timeout_ms="5", controller_quorum_election_backoff_max_ms="5").start()
    assert cluster[1].create("t", MANY) == errors.NONE
    cluster.run(2000)
    for member in cluster.members.values():
        member.kill()
    for member in cluster.members.values():
        member.disk.sync_delay_ms = (0, 0)  # votes are written down within the short time of these elections
        member.start()
        assert loaded(member.node) < MANY
    cluster.run_until(cluster.has_active)
    assert any(member.node.loading is not None for member in cluster.up()), "somebody was still busy with logs"
    cluster.run_until(lambda: all(member.node.is_ready for member in cluster.up()))
    assert [loaded(member.node) for member in cluster.up()] == [MANY] * 3
    assert [member.fatal for member in cluster.up()] == [[], [], []]


def filled(log_dirs: str = "/data") -> NodeWorld:
    world = NodeWorld(log_dirs).start()
    assert world.create("t", PARTITIONS) == errors.NONE
    for index in range(PARTITIONS):
        assert world.produce("t", index, values=index % 3 + 1).error_code == errors.NONE
    return world


def end_offsets(world: NodeWorld) -> list[int]:
    return [world.node.logs.logs[("t", index)].log_end_offset for index in range(PARTITIONS)]


def begin_start(world: NodeWorld, turns: int) -> None:
    """A start of which only so many turns have run."""
    run, world.run = world.run, lambda duration_ms: None  # type: ignore[method-assign]
    world.start()
    world.run = run  # type: ignore[method-assign]
    for _ in range(turns):
        world.now_ms += 1
        world.node.poll(world.now_ms)


@pytest.mark.parametrize("turns", [0, 1, 7, 20])
@pytest.mark.parametrize("log_dirs", ["/data", "/data,/data2"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_stop_in_the_middle_leaves_everything_as_it_was_found(turns: int, log_dirs: str, is_clean: bool) -> None:
    world = filled(log_dirs)
    before = end_offsets(world)
    epoch = world.node.lifecycle.broker_epoch
    if is_clean:
        assert world.leave()
        world.stop()
    else:
        world.run(2000)
        world.disk.process_crash()
        world.events.clear()
    begin_start(world, turns)
    assert world.node.loading is not None and loaded(world.node) < PARTITIONS
    assert world.leave()
    assert loaded(world.node) < PARTITIONS, "nothing more is opened by a node that leaves"
    world.stop()
    for folder in log_dirs.split(","):
        assert world.disk.exists(f"{folder}/.kafka_cleanshutdown") == is_clean
    begin_start(world, 0)
    assert world.node.logs.runs.loaded_unclean is not is_clean
    if is_clean:
        assert world.node.logs.runs.previous_broker_epoch() == epoch
    world.run(1000)
    assert world.node.is_ready and end_offsets(world) == before
    assert [world.produce("t", index).base_offset for index in range(3)] == [1, 2, 3]


def test_a_state_that_a_person_must_look_at_ends_the_node_with_a_sentence() -> None:
    world = filled("/data,/data2")
    world.leave()
    world.stop()
    where = "/data" if world.disk.exists("/data/t-3") else "/data2"
    other = "/data2" if where == "/data" else "/data"
    world.disk.make_directory(f"{other}/t-3")
    world.disk.write_file(f"{other}/t-3/partition.metadata", world.disk.read_file(f"{where}/t-3/partition.metadata"))
    begin_start(world, 0)
    world.run(1000)
    assert len(world.fatal) == 1 and "remove one of the two" in world.fatal[0]
    assert not world.node.is_ready
    world.stop()


class LateWorkers(RecoveryWorkers):
    """Workers that are done when the test says so."""

    in_background = True

    def __init__(self, world: NodeWorld) -> None:
        self.world = world
        self.tasks: list[RecoveryTask] = []

    def run_later(self, tasks: list[RecoveryTask], workers_max: int, done: object) -> None:
        self.tasks = tasks
        self.done = done

    def finish(self) -> None:
        results: list[RecoveryResult | None] = [recover(self.world.disk, task) for task in self.tasks]
        assert callable(self.done)
        self.done(results)


def test_a_large_log_is_left_to_a_worker_and_the_node_goes_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_loading, "SMALLEST_TASK_BYTES", 1)
    monkeypatch.setattr(log_loading, "LONG_TURN_BYTES", 1)
    world = filled()
    before = end_offsets(world)
    world.disk.process_crash()
    world.events.clear()
    workers = LateWorkers(world)
    monkeypatch.setattr(
        "moldau.node.node.Node._make_logs",
        lambda node, config, _, make=Node._make_logs: make(node, config, workers),
    )
    begin_start(world, 0)
    world.run(500)
    assert len(workers.tasks) == PARTITIONS and loaded(world.node) == 0
    assert world.node.metadata.is_active_controller, "it does not wait for the logs"
    woken: list[int] = []
    world.node.set_wake_up(woken.append)
    workers.finish()
    assert woken
    world.run(1000)
    assert world.node.is_ready and end_offsets(world) == before
