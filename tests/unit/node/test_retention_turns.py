"""A retention run over many logs takes many turns of the node, and no more than a moment between them."""

from __future__ import annotations

from moldau.protocol import errors
from moldau.storage.retention_run import SEGMENTS_PER_TURN
from tests.unit.node.world import NodeWorld


def test_a_retention_run_goes_on_without_waiting_for_the_next_second() -> None:
    world = NodeWorld().start()
    partitions = 6 * SEGMENTS_PER_TURN
    assert world.create("t", partitions=partitions) == errors.NONE
    world.run(200)
    retention = world.node.logs.retention
    assert len(world.node.logs.logs) == partitions
    retention.begin()
    turns = 0
    while not retention.is_over:
        before = len(retention.waiting)
        world.run(100)
        turns += 1
        assert turns < 25, "seconds for a few logs"
        assert before - len(retention.waiting) <= (100 // 10 + 2) * SEGMENTS_PER_TURN
