"""Partitions of __consumer_offsets as Apache Kafka 4.3.1 wrote them load to what Kafka itself answered.

The files in tests/data/kafka-groups are the logs of a broker to which tests/interop/test_group_recovery.py wrote
everything it knows: commits of all versions, transactions committed, aborted and open, deleted groups, and groups of
both protocols; answers.json has the broker's own answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.routing import partition_for
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.records.batch import split_batches
from tests.unit.coordinator.group_world import GroupWorld
from tests.unit.coordinator.memory_log import MemoryLog

FOLDER = Path(__file__).parents[2] / "data" / "kafka-groups"
ANSWERS: dict[str, Any] = json.loads((FOLDER / "answers.json").read_text())


def machine_of(group: str) -> GroupMachine:
    """What is left of the log of this group's partition."""
    world = GroupWorld()
    path = FOLDER / f"__consumer_offsets-{partition_for(group, 50)}.log"
    world.log = MemoryLog()
    if path.exists():
        data = path.read_bytes()
        for header in split_batches(data, 0, len(data)):
            world.log.batches.append(data[int(header.position) : int(header.end)])
            world.log.end = world.log.committed = int(header.next_offset)
    return world.reloaded()


@pytest.mark.parametrize("group", sorted(ANSWERS["offsets"]))
@pytest.mark.parametrize("stable", [False, True])
def test_offsets_are_those_that_kafka_told(group: str, stable: bool) -> None:
    rows = [OffsetFetchRequestTopics(name=ANSWERS["topic"], partition_indexes=[0, 1, 2])]
    answer = machine_of(group).offsets.fetch(OffsetFetchRequestGroup(group, topics=rows), stable)
    found = [
        [row.partition_index, row.committed_offset, row.committed_leader_epoch, row.metadata, row.error_code]
        for row in answer.topics[0].partitions
    ]
    assert found == ANSWERS["offsets"][group]["stable" if stable else "any"]


@pytest.mark.parametrize("group", sorted(ANSWERS["offsets"]))
def test_groups_are_those_that_kafka_listed(group: str) -> None:
    response = machine_of(group).admin.list_groups([], []).response
    found = {row.group_id: [row.group_type, row.protocol_type, row.group_state] for row in response.groups}  # type: ignore[union-attr]
    assert found.get(group) == ANSWERS["listed"].get(group)
