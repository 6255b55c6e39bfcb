"""The log of a streams group as Apache Kafka 4.3.1 wrote it: every record is written again with the same bytes.

The file is `__consumer_offsets` of a broker on which the word count of tests/interop ran with `group.protocol=streams`:
two instances of two threads each with one standby replica, of which the first was killed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.coordinator.group.machine import STREAMS_TYPES, GroupMachine
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.records import (
    assignment_epoch_record,
    current_record,
    group_record,
    member_record,
    target_record,
    topology_record,
)
from moldau.coordinator.group.streams.tasks import each_task
from moldau.coordinator.outcome import StoredRecord
from moldau.records.batch import split_batches
from moldau.records.walk import read_records
from tests.unit.coordinator.memory_log import MemoryLog
from tests.unit.coordinator.streams_world import StreamsWorld

LOG = Path(__file__).parents[2] / "data" / "kafka-groups" / "streams-group.log"
GROUP = "word-count"


def records() -> list[tuple[bytes, bytes | None]]:
    """Of streams groups, in their order."""
    data = LOG.read_bytes()
    found: list[tuple[bytes, bytes | None]] = []
    for header in split_batches(data, 0, len(data)):
        for record in read_records(data, header):
            if record.key is not None and int.from_bytes(record.key[:2], "big") in STREAMS_TYPES:
                found.append((bytes(record.key), None if record.value is None else bytes(record.value)))
    return found


def machine() -> GroupMachine:
    world = StreamsWorld()
    world.log = MemoryLog()
    data = LOG.read_bytes()
    for header in split_batches(data, 0, len(data)):
        world.log.batches.append(data[int(header.position) : int(header.end)])
        world.log.end = world.log.committed = int(header.next_offset)
    return world.reloaded()


def group_of(machine: GroupMachine) -> StreamsGroup:
    group = machine.state.groups[GROUP]
    assert isinstance(group, StreamsGroup)
    return group


def test_the_group_is_what_kafka_described() -> None:
    group = group_of(machine())
    assert (group.state_name(), group.group_epoch, group.assignment_epoch) == ("Stable", 8, 8)
    tasks = sorted(task for member in group.members.values() for task in each_task(member.assigned.active))
    assert tasks == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    assert group.assignment_configs == {"num.standby.replicas": "1"}
    assert group.topology is not None
    assert group.topology.required_topics == {"text", f"{GROUP}-counts-repartition", f"{GROUP}-counts-changelog"}


def written_after(machine: GroupMachine, key: bytes) -> StoredRecord:
    """The record that this machine would write for what it has replayed."""
    group = group_of(machine)
    kind = int.from_bytes(key[:2], "big")
    if kind == 17:
        return group_record(
            GROUP, group.group_epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
        )
    if kind == 20:
        return assignment_epoch_record(GROUP, group.assignment_epoch, group.assignment_timestamp_ms)
    if kind == 23:
        assert group.topology is not None
        return topology_record(GROUP, group.topology)
    member_id = key[2 + 2 + len(GROUP) + 2 :].decode()
    if kind == 21:
        return target_record(GROUP, member_id, group.target_of(member_id))
    member = group.members[member_id]
    return member_record(GROUP, member) if kind == 19 else current_record(GROUP, member)


def test_every_record_is_written_as_kafka_wrote_it() -> None:
    found = machine()
    found.state.groups.clear()
    kinds: set[int] = set()
    for key, value in records():
        found.replay(key, value, 0, -1, -1)
        if value is not None:
            assert written_after(found, key) == (key, value)
            kinds.add(int.from_bytes(key[:2], "big"))
    assert kinds == STREAMS_TYPES


@pytest.mark.parametrize("keeps", [0, 1])
def test_what_is_left_of_it_after_compaction_loads_the_same(keeps: int) -> None:
    """The last record of each key, with and without tombstones."""
    last: dict[bytes, bytes | None] = {}
    for key, value in records():
        last.pop(key, None)
        last[key] = value
    world = StreamsWorld()
    for key, value in last.items():
        if value is not None or keeps:
            world.machine.replay(key, value, 0, -1, -1)
    loaded, expected = group_of(world.machine), group_of(machine())
    assert loaded.active_owners == expected.active_owners
    assert loaded.targets == expected.targets
    assert loaded.state_name() == "Stable"
