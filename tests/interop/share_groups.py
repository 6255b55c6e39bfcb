"""Share groups in short form for tests that ask a running node."""

from __future__ import annotations

import time
from typing import Any

from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.uuids import uuid_to_text
from moldau.records.builder import BatchBuilder
from tests.interop.group_offsets import find_coordinator
from tests.interop.nodes import RECENT_MS
from tests.interop.peers import Peer
from tests.pace import patience
from tests.unit.share.member import Member

SECONDS = patience(20)
WAIT_MS = 10_000
GROUP_RESOURCE = 32
SHARE_KEY = 2


def configure(peer: Peer, group: str, **values: str) -> list[int]:
    """Settings of a group, `_` for a dot; the error codes."""
    entries = [AlterableConfig(name.replace("_", "."), 0, value) for name, value in values.items()]
    resource = AlterConfigsResource(GROUP_RESOURCE, group, entries)
    answer = peer.ask(IncrementalAlterConfigsRequest([resource]), 1)
    return [row.error_code for row in answer.responses]


def find_share_coordinator(peer: Peer, group: str, topic_id: bytes, partition: int = 0) -> None:
    key = f"{group}:{uuid_to_text(topic_id)}:{partition}"
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        request = FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=[key])
        if peer.ask(request, 6).coordinators[0].error_code == errors.NONE:
            return
        time.sleep(0.05)
    raise AssertionError(f"{peer.node.name}: {key} has no coordinator after {SECONDS} s")


def join(member: Member, topic: str, partitions: int) -> Any:
    """Heartbeats until the member has so many partitions; returns the last answer that told them."""
    deadline = time.monotonic() + SECONDS
    told: Any = None
    while time.monotonic() < deadline:
        answer = member.beat(topic) if member.epoch == 0 else member.beat()
        if answer.error_code in (errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_COORDINATOR):
            time.sleep(0.05)
            continue
        assert answer.error_code == errors.NONE, answer
        told = answer if answer.assignment is not None else told
        if told is not None and sum(len(row.partitions) for row in told.assignment.topic_partitions) == partitions:
            return told
        time.sleep(0.05)
    raise AssertionError(f"{member.member_id} did not get {partitions} partitions: {told}")


def ready(peer: Peer, group: str, topic: str, partitions: int = 1, **settings: str) -> tuple[Member, bytes]:
    """A topic, a group that begins at its beginning, and a member that has all of it."""
    peer.create(topic, partitions)
    find_coordinator(peer, group)
    assert configure(peer, group, **{"share_auto_offset_reset": "earliest", **settings}) == [0]
    topic_id = peer.topic_id(topic)
    find_share_coordinator(peer, group, topic_id)
    member = Member(peer.ask, group)
    member.wait_ms = WAIT_MS
    join(member, topic, partitions)
    return member, topic_id


def fill(peer: Peer, topic: str, *sizes: int, partition: int = 0, value: bytes = b"value") -> None:
    """One log batch of each size."""
    for size in sizes:
        builder = BatchBuilder()
        for number in range(size):
            builder.append(RECENT_MS + number, None, value, [])
        assert peer.produce(topic, builder.build(), partition=partition).error_code == 0
