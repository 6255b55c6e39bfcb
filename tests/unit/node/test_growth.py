"""Nothing in a node grows with topics that come and go."""

from __future__ import annotations

import types
from collections import deque
from typing import Any

from moldau.protocol import errors
from moldau.protocol.messages import offset_commit_request as commit
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.unit.node.world import NodeWorld

GROWTH_MAX = 150
TOPICS_AT_A_TIME = 100
PARTITIONS = 2
LEAVES = (str, bytes, int, float, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def sizes(root: object) -> dict[str, int]:
    """How many elements the containers have that can be reached from here, by the way that leads to them."""
    seen: set[int] = set()
    found: dict[str, int] = {}
    todo: list[tuple[str, Any]] = [("node", root)]
    while todo:
        path, one = todo.pop(0)
        if id(one) in seen or isinstance(one, LEAVES) or type(one).__module__.startswith("moldau.sim"):
            continue
        seen.add(id(one))
        if isinstance(one, types.MethodType):
            todo.append((path, one.__self__))
        elif isinstance(one, (dict, list, set, tuple, frozenset, deque)):
            found[path] = found.get(path, 0) + len(one)
            todo += [(f"{path}[]", inner) for inner in (one.values() if isinstance(one, dict) else one)]
        elif type(one).__module__.startswith("moldau"):
            todo += [(f"{path}.{name}", getattr(one, name)) for name in names_of(one) if hasattr(one, name)]
    return found


def names_of(one: object) -> list[str]:
    names = list(getattr(one, "__dict__", {}))
    for kind in type(one).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
        # Classes that are compiled have neither, but a descriptor for each attribute.
        names += [name for name, value in kind.__dict__.items() if isinstance(value, types.GetSetDescriptorType)]
    return [name for name in names if not name.startswith("__")]


def come_and_go(world: NodeWorld, first: int, count: int) -> None:
    """Topics are made, written to, read about and committed for, and deleted again."""
    for start in range(first, first + count, TOPICS_AT_A_TIME):
        names = [f"topic-{number}" for number in range(start, start + TOPICS_AT_A_TIME)]
        topics = [CreatableTopic(name, PARTITIONS, 1) for name in names]
        answer = world.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 5)
        assert all(topic.error_code == errors.NONE for topic in answer.topics)
        world.run(100)
        world.ask(MetadataRequest(topics=None), 12)
        for name in names:
            world.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)
        for name in names[:10]:
            world.produce(name)
        offset = commit.OffsetCommitRequestPartition(0, 1)
        rows = [commit.OffsetCommitRequestTopic(name, partitions=[offset]) for name in names]
        answer = world.ask(commit.OffsetCommitRequest(group_id="group", topics=rows), 9)
        assert all(row.error_code == errors.NONE for topic in answer.topics for row in topic.partitions)
        world.run(65_000)  # the checkpoints have them
        states = [DeleteTopicState(name=name) for name in names]
        world.ask(DeleteTopicsRequest(topics=states, timeout_ms=1000), 6)
        world.run(200)
    world.run(130_000)
    world.ask(MetadataRequest(topics=None), 12)


def test_topics_that_come_and_go_leave_nothing_behind() -> None:
    world = NodeWorld(offsets_topic_num_partitions="1", offsets_topic_replication_factor="1").start()
    for _ in range(2):
        world.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4)
        world.run(2000)
    come_and_go(world, 0, 2 * TOPICS_AT_A_TIME)
    before = sizes(world.node)
    come_and_go(world, 5000, 1000)
    after = sizes(world.node)
    assert any("._durable" in path for path in after)
    assert any("._names" in path for path in after)
    grown = {path: after[path] - before.get(path, 0) for path in after}
    assert {path: count for path, count in grown.items() if count > GROWTH_MAX} == {}
