"""Moldau and Apache Kafka treat the members of classic groups alike: the scripts are true of both, and so is chance."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Message
from tests.interop.conftest import new_node, require_kafka, stop_cleanly
from tests.interop.group_scripts import COMMITTED, INITIAL_DELAY_MS, LiveWorld, Trace, commands, comparable, play_live
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import Node
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.scripts import classic_groups
from tests.scripts.classic_groups.player import Player

SCRIPTS = [
    path
    for path in sorted(Path(classic_groups.__file__).parent.glob("*.txt"))
    if "Apache Kafka does the same." in path.read_text()
]
SETTINGS = {"group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS), "offsets.topic.num.partitions": "3"}
SEEDS = int(os.environ.get("MOLDAU_GROUP_SEEDS", "3"))
FIRST_SEED = int(os.environ.get("MOLDAU_GROUP_FIRST_SEED", "1"))
STEPS = 50


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    require_kafka()
    node = KafkaNode(tmp_path_factory.mktemp("kafka-groups"), SETTINGS)
    node.format()
    node.start()
    yield from peer_of(node)
    stop_cleanly(node)


@pytest.fixture(scope="module")
def moldau(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    node = new_node(tmp_path_factory.mktemp("moldau-groups"), SETTINGS)
    node.start()
    yield from peer_of(node)
    stop_cleanly(node)


def peer_of(node: Node) -> Iterator[Peer]:
    peer = Peer(node)
    peer.create(COMMITTED)
    yield peer
    peer.close()


def script(path: Path) -> Trace:
    return [(line, comparable(below)) for line, below in commands(path.read_text())]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_true_of_apache_kafka(kafka: Peer, path: Path) -> None:
    assert play_live(kafka, path.stem, script(path)) == script(path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_true_of_a_running_moldau(moldau: Peer, path: Path) -> None:
    assert play_live(moldau, path.stem, script(path)) == script(path)


STEP_KINDS = [
    "join {who}",
    "join {who}",
    "join {who}",
    "join {who} topics=t,u",
    "join {who} topics=t",
    "join {who} protocols=range,sticky",
    "join {who} protocols=sticky,range",
    "join {who} id=",
    "sync {who} {who}=x {other}=y",
    "sync {who} {who}=x {other}=y",
    "sync {who} {who}=x {other}=y",
    "sync {who}",
    "sync {who} generation=0",
    "heartbeat {who}",
    "heartbeat {who}",
    "heartbeat {who} generation=7",
    "commit {who}",
    "commit {who} id= generation=-1",
    "leave {who}",
    "show",
]
PATIENT = "session=1800000 rebalance=1800000"


def chance(seed: int) -> Trace:
    """Commands of two members, or of one and a static one that comes back again and again, and what they should bring.

    No more than two, because who leads after a leader has left is not defined among several. The time of the initial
    delay passes soon after it has begun, because it passes for the running nodes too.
    """
    rng = random.Random(seed)
    player = Player()
    second = rng.choice(["b", "s"])
    trace: Trace = []
    for line in [f"join a {PATIENT}", f"join {second} {PATIENT}" + (" instance=i1" if second == "s" else "")]:
        trace.append((line, comparable(player.play(line))))
    delayed_steps = 0
    while len(trace) < STEPS:
        who = rng.choice(["a", second])
        line = rng.choice(STEP_KINDS).format(who=who, other=second if who == "a" else "a")
        if delayed_steps >= 4:
            line = "tick 20000"
        elif is_left_unanswered(player, line):
            continue
        trace.append((line, comparable(player.play(line))))
        group = player.world.group()
        is_delayed = group.state == "PreparingRebalance" and group.previous_state == "Empty"
        delayed_steps = delayed_steps + 1 if is_delayed else 0
    return trace


def is_left_unanswered(player: Player, line: str) -> bool:
    """Apache Kafka never answers a request that another one takes the place of, nor the SyncGroup of one who leaves."""
    command, who, *_ = [*line.split(), ""]
    parked = {what for what, client, _ in player.waiting if client.name == who}
    return command in parked or (command == "leave" and "sync" in parked)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_chance_finds_no_difference(kafka: Peer, moldau: Peer, seed: int) -> None:
    expected = chance(seed)
    assert play_live(kafka, f"chance-{seed}", expected) == expected
    assert play_live(moldau, f"chance-{seed}", expected) == expected


ID = re.compile(r"^(wire|instance)-[0-9a-f-]{36}$")


def masked(value: Any) -> Any:
    """Ids differ; that they are of the same make does not."""
    if isinstance(value, dict):
        return {name: masked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [masked(one) for one in value]
    return ID.sub(r"\1-<uuid>", value) if isinstance(value, str) else value


def life(peer: Peer, group: str, version: int) -> Any:
    """All answers of a member's life in one version, wrong requests among them."""
    LiveWorld(peer, group)
    answers: list[Any] = []

    def ask(request: Message, highest: int) -> Any:
        answer = peer.ask(request, min(version, highest))
        answers.append(masked(plain(answer)))
        return answer

    def join(member_id: str, session_ms: int = 10_000, kind: str = "consumer", name: str = "range") -> Any:
        rows = [JoinGroupRequestProtocol(name, b"data")]
        rebalance_ms = 60_000 if version >= 1 else -1
        return ask(JoinGroupRequest(group, session_ms, rebalance_ms, member_id, None, kind, rows), 9)

    def sync(member_id: str, generation: int, kind: str = "consumer", name: str = "range") -> Any:
        request = SyncGroupRequest(group, generation, member_id)
        if version >= 5:
            request.protocol_type, request.protocol_name = kind, name
        request.assignments = [SyncGroupRequestAssignment(member_id, b"all")]
        return ask(request, 5)

    def leave(member_id: str) -> Any:
        rows = [MemberIdentity(member_id), MemberIdentity("nobody")]
        return ask(LeaveGroupRequest(group, members=rows) if version >= 3 else LeaveGroupRequest(group, member_id), 5)

    join("nobody")
    sync("nobody", 1)
    ask(HeartbeatRequest(group, 1, "nobody"), 4)
    leave("nobody")
    join("", session_ms=1)
    joined = join("")
    if joined.error_code:
        joined = join(joined.member_id)
    member_id = joined.member_id
    ask(HeartbeatRequest(group, 9, member_id), 4)
    sync(member_id, 9)
    sync(member_id, 1, name="other")
    join(member_id, kind="other")
    join(member_id, name="other")
    sync(member_id, 1)
    ask(HeartbeatRequest(group, 1, member_id), 4)
    ask(DescribeGroupsRequest([group]), 6)
    leave(member_id)
    leave(member_id)
    ask(DescribeGroupsRequest([group]), 6)
    return answers


@pytest.mark.parametrize("version", range(10))
def test_answers_are_the_same_in_every_version(kafka: Peer, moldau: Peer, version: int) -> None:
    group = f"life-{version}"
    expected = life(kafka, group, version)
    assert life(moldau, group, version) == expected
