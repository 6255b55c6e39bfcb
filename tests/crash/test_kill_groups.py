"""kill -9 while groups commit: every acknowledged offset is there after the restart, and none that was never sent.

MOLDAU_KILLS says how often (the full run: 50); MOLDAU_KILL_SEED repeats the choices of a run.
"""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.interop.group_offsets import fetch, find_coordinator
from tests.interop.nodes import MoldauNode
from tests.interop.peers import Peer
from tests.interop.wire import CLOSED, Wire
from tests.pace import patience

TOPIC = "kills"
PARTITIONS = 4
GROUPS = 12
IN_FLIGHT_MAX = 20
VERSION = 9
KILLS = int(os.environ.get("MOLDAU_KILLS", "4"))
SEED = int(os.environ.get("MOLDAU_KILL_SEED", str(random.SystemRandom().randrange(1 << 30))))

Place = tuple[str, int]


class Load:
    """What was sent and what was acknowledged, by group and partition; offsets only grow."""

    def __init__(self) -> None:
        self.sent: dict[Place, int] = {}
        self.acknowledged: dict[Place, int] = {}
        self.commits = 0

    def next_request(self, rng: random.Random) -> tuple[OffsetCommitRequest, dict[Place, int]]:
        group = f"group-{rng.randrange(GROUPS)}"
        rows = []
        places: dict[Place, int] = {}
        for index in rng.sample(range(PARTITIONS), rng.randint(1, PARTITIONS)):
            offset = self.sent[group, index] = self.sent.get((group, index), -1) + 1
            rows.append(OffsetCommitRequestPartition(index, offset, -1, f"{group}/{index}/{offset}"))
            places[group, index] = offset
        return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=rows)]), places

    def on_response(self, places: dict[Place, int]) -> None:
        self.acknowledged.update(places)
        self.commits += 1

    def check(self, peer: Peer) -> None:
        for number in range(GROUPS):
            group = f"group-{number}"
            answer = fetch(peer, group, {TOPIC: list(range(PARTITIONS))}).groups[0]
            assert answer.error_code == 0
            for row in answer.topics[0].partitions:
                place = (group, row.partition_index)
                found = row.committed_offset
                assert found >= self.acknowledged.get(place, -1), f"{place} is at {found} after {self.acknowledged}"
                assert found <= self.sent.get(place, -1), f"{place} is at {found}, which was never sent"
                if found >= 0:
                    assert row.metadata == f"{group}/{row.partition_index}/{found}"
                    # What was read is a promise, too.
                    self.acknowledged[place] = found


def commit_until_killed(node: MoldauNode, load: Load, rng: random.Random) -> None:
    """Pipelines commits until the connection breaks."""
    waiting: list[dict[Place, int]] = []
    try:
        with Wire(node.host, node.port) as wire:
            while True:
                while len(waiting) < IN_FLIGHT_MAX:
                    request, places = load.next_request(rng)
                    wire.send(request, VERSION)
                    waiting.append(places)
                wire.correlation_id -= len(waiting) - 1
                answer = wire.receive(OffsetCommitRequest.API_KEY, VERSION)
                wire.correlation_id += len(waiting) - 1
                if answer == CLOSED:
                    return
                assert all(row.error_code == 0 for topic in answer.topics for row in topic.partitions), answer
                load.on_response(waiting.pop(0))
    except OSError:
        return


def test_no_acknowledged_offset_is_lost(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print(f"MOLDAU_KILL_SEED={SEED}")
    node = MoldauNode(tmp_path)
    node.format()
    node.start()
    load = Load()
    try:
        peer = Peer(node)
        peer.create(TOPIC, PARTITIONS)
        for _ in range(KILLS):
            for number in range(GROUPS):
                find_coordinator(peer, f"group-{number}")
            load.check(peer)
            peer.close()
            writer = threading.Thread(target=commit_until_killed, args=(node, load, rng))
            writer.start()
            time.sleep(rng.uniform(0.2, 1.0))
            node.kill()
            writer.join(patience(30))
            assert not writer.is_alive()
            node.start()
            peer = Peer(node)
        for number in range(GROUPS):
            find_coordinator(peer, f"group-{number}")
        load.check(peer)
        peer.close()
    finally:
        node.kill()
    assert load.commits > 50, "hardly anything was committed"
