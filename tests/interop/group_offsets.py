"""Group requests in short form, and what lies in __consumer_offsets."""

from __future__ import annotations

import itertools
import time
from typing import Any

from moldau.coordinator.routing import partition_for
from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from moldau.protocol.primitives import Message
from moldau.protocol.stored.framing import decode_key, decode_value
from moldau.protocol.stored.group_records import GROUP_KEYS, GROUP_VALUES
from moldau.records.batch import split_batches
from moldau.records.walk import read_records
from tests.interop.peers import Peer
from tests.interop.wire import records_of
from tests.pace import patience

SECONDS = patience(20)
PARTITIONS = 50
_numbers = itertools.count(1)


def new_group() -> str:
    """An id that no other test uses."""
    return f"group-{next(_numbers)}"


def find_coordinator(peer: Peer, group_id: str) -> None:
    """Waits until the group has a coordinator that is ready."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = peer.ask(FindCoordinatorRequest(coordinator_keys=[group_id]), 4).coordinators[0]
        if found.error_code == 0:
            answer = fetch(peer, group_id, {"nothing": [0]}).groups[0]
            if answer.error_code == 0:
                return
            assert answer.error_code in (errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_COORDINATOR), answer
        time.sleep(0.05)
    raise AssertionError(f"{peer.node.name}: {group_id} has no coordinator after {SECONDS} s")


Commits = dict[str, list[tuple[int, int, int, str | None]]]
"""By topic: partition, offset, leader epoch, metadata."""


def commit(peer: Peer, group_id: str, topics: Commits, version: int = 9, **fields: Any) -> Any:
    """Names are turned into ids where the version wants that; a topic that does not exist has a made-up id."""
    rows = []
    for name, partitions in topics.items():
        parts = [OffsetCommitRequestPartition(*one) for one in partitions]
        topic_id = id_of(peer, name) if version >= 10 else bytes(16)
        rows.append(OffsetCommitRequestTopic(name, topic_id, parts))
    return peer.ask(OffsetCommitRequest(group_id=group_id, topics=rows, **fields), version)


def fetch(
    peer: Peer,
    group_id: str,
    topics: dict[str, list[int]] | None,
    version: int = 9,
    stable: bool = False,
    **fields: Any,
) -> Any:
    if version < 8:
        older = None if topics is None else [OffsetFetchRequestTopic(name, parts) for name, parts in topics.items()]
        return peer.ask(OffsetFetchRequest(group_id=group_id, topics=older, require_stable=stable), version)
    rows = None
    if topics is not None:
        rows = [
            OffsetFetchRequestTopics(name, id_of(peer, name) if version >= 10 else bytes(16), parts)
            for name, parts in topics.items()
        ]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=rows, **fields)
    return peer.ask(OffsetFetchRequest(groups=[group], require_stable=stable), version)


def id_of(peer: Peer, topic: str) -> bytes:
    found = peer.topic_id(topic)
    return found if any(found) else b"\x01" * 16


def stored_records(peer: Peer, group_id: str) -> list[tuple[Message, Message | None, dict[str, int]]]:
    """The records of one group in the log of its coordinator: key, value, and fields of the batch's header."""
    index = partition_for(group_id, PARTITIONS)
    found: list[tuple[Message, Message | None, dict[str, int]]] = []
    offset = 0
    while True:
        answer = peer.fetch("__consumer_offsets", offset, partition=index)
        data = records_of(answer.records)
        headers = split_batches(data, 0, len(data))
        if not headers:
            return found
        for header in headers:
            offset = int(header.next_offset)
            if header.is_control:
                continue  # the end of somebody else's transaction
            fields = {
                "attributes": int(header.attributes),
                "producer_id": int(header.producer_id),
                "producer_epoch": int(header.producer_epoch),
                "base_sequence": int(header.base_sequence),
            }
            for record in read_records(data, header):
                assert record.key is not None
                key = decode_key(GROUP_KEYS, record.key)
                value = None if record.value is None else decode_value(GROUP_VALUES, key.API_KEY, record.value)
                if getattr(key, "group", None) == group_id or getattr(key, "group_id", None) == group_id:
                    version = -1 if record.value is None else int.from_bytes(record.value[:2], "big")
                    found.append((key, value, {**fields, "version": version}))
