"""Plays the scripts about classic groups against a running node: what they say must be true of Apache Kafka too."""

from __future__ import annotations

import re
import select
import time
from typing import Any

from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Message
from tests.interop.peers import Peer
from tests.interop.wire import Wire
from tests.pace import patience
from tests.scripts.classic_groups.player import Player, name_of

# A topic that every node has; its offsets are committed by those who may.
COMMITTED = "committed"
NOT_YET = {14, 15, 16}
SECONDS = patience(20)
ANSWER_SECONDS_MAX = patience(6)
# Longer than the commands that a script has before it lets this time pass.
INITIAL_DELAY_MS = 3000
# After the answers that are expected: for those that are not.
SETTLE_SECONDS = 0.02
SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION = 5, 4, 5


class LiveAnswer:
    """An answer that comes over a connection of its own, or does not."""

    def __init__(self, wire: Wire, request: Message, version: int, client_id: str) -> None:
        self.wire = wire
        self.key = type(request).API_KEY
        self.version = version
        wire.send(request, version, client_id)
        self._answer: Any = None

    @property
    def done(self) -> bool:
        if self._answer is None and select.select([self.wire.socket], [], [], 0)[0]:
            self._answer = self.wire.receive(self.key, self.version)
            self.wire.socket.close()
        return self._answer is not None

    @property
    def answer(self) -> Any:
        return self._answer


class LiveWorld:
    """Has the requests of a GroupWorld; asks a node instead."""

    def __init__(self, peer: Peer, group_id: str) -> None:
        self.peer = peer
        self.group_id = group_id
        self._wait_for_coordinator()

    def _wait_for_coordinator(self) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found = self.peer.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id]), 4)
            if found.coordinators[0].error_code == 0:
                code = self.peer.ask(DescribeGroupsRequest([self.group_id]), 6).groups[0].error_code
                if code not in NOT_YET:
                    return
            time.sleep(0.05)
        raise AssertionError(f"{self.peer.node.name} has no coordinator for {self.group_id} after {SECONDS} s")

    def _send(self, request: Message, version: int, client_id: str = "wire") -> LiveAnswer:
        return LiveAnswer(self.peer.connect(), request, version, client_id)

    def join(self, member_id: str, **fields: Any) -> LiveAnswer:
        rows = [JoinGroupRequestProtocol(name, data) for name, data in fields["protocols"]]
        version = fields["version"]
        request = JoinGroupRequest(
            self.group_id,
            fields["session_ms"],
            fields["rebalance_ms"],
            member_id,
            fields["instance"],
            fields["protocol_type"],
            rows,
            fields["reason"] if version >= 8 else None,
        )
        return self._send(request, version, fields["client"])

    def sync(self, member_id: str, generation: int, assignments: dict[str, bytes], **fields: Any) -> LiveAnswer:
        rows = [SyncGroupRequestAssignment(one, data) for one, data in assignments.items()]
        request = SyncGroupRequest(self.group_id, generation, member_id, fields["instance"], assignments=rows)
        # Only version 5 can name the protocol, and must.
        if fields["protocol_type"] is None or fields["protocol_name"] is None:
            return self._send(request, SYNC_VERSION - 1)
        request.protocol_type, request.protocol_name = fields["protocol_type"], fields["protocol_name"]
        return self._send(request, SYNC_VERSION)

    def heartbeat(self, member_id: str, generation: int, *, instance: str | None) -> LiveAnswer:
        return self._send(HeartbeatRequest(self.group_id, generation, member_id, instance), HEARTBEAT_VERSION)

    def leave(self, *members: tuple[str, str | None]) -> LiveAnswer:
        rows = [MemberIdentity(one, instance) for one, instance in members]
        return self._send(LeaveGroupRequest(self.group_id, members=rows), LEAVE_VERSION)

    def commit(self, member_id: str, instance: str | None, generation: int) -> int:
        rows = [OffsetCommitRequestTopic(name=COMMITTED, partitions=[OffsetCommitRequestPartition(0, 1)])]
        request = OffsetCommitRequest(self.group_id, generation, member_id, instance, topics=rows)
        code: int = self.peer.ask(request, 8).topics[0].partitions[0].error_code
        return code

    def describe(self) -> Any:
        return self.peer.ask(DescribeGroupsRequest([self.group_id]), 6).groups[0]

    def tick(self, ms: int) -> None:
        """Time passes by itself; whoever plays waits for what it brings."""


class LivePlayer(Player):
    """Commands as in the scripts; the log is not looked at, nor what only the coordinator knows of a group."""

    def __init__(self, peer: Peer, group_id: str) -> None:
        super().__init__()
        self.live = LiveWorld(peer, group_id)
        self.world = self.live  # type: ignore[assignment]

    def play_expecting(self, line: str, expected: int) -> list[str]:
        """Plays one command and waits for as many lines as it should bring."""
        lines = self.play(line)
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        settled = False
        while not settled and time.monotonic() < deadline:
            if len(lines) >= expected:
                time.sleep(SETTLE_SECONDS)
                settled = True
            time.sleep(0.002)
            lines += [self.short(one) for one in self.new_answers()]
        return lines

    def new_records(self) -> list[str]:
        return []

    def do_commit(self, words: list[str], options: dict[str, str]) -> list[str]:
        client = self.client(words[0])
        generation = int(options.get("generation", client.generation))
        code = self.live.commit(options.get("id", client.member_id), client.instance, generation)
        return [f"{client.name}: commit {name_of(code)}"]

    def do_show(self, words: list[str], options: dict[str, str]) -> list[str]:
        described = self.live.describe()
        if described.error_code:
            return ["no group"]
        lines = [f"group {described.group_state} protocol={described.protocol_type}/{described.protocol_data}"]
        for member in described.members:
            instance = f" instance={member.group_instance_id}" if member.group_instance_id else ""
            lines.append(f"  {member.member_id}{instance} assignment={member.member_assignment.decode() or '-'}")
        return lines

    def close(self) -> None:
        for _, _, done in self.waiting:
            done.wire.socket.close()  # type: ignore[attr-defined]


def comparable(lines: list[str]) -> list[str]:
    """The lines below one command, without what a client cannot see and without an order that means nothing."""
    found = []
    for line in lines:
        if line.startswith("log: "):
            continue
        line = re.sub(r" generation=\d+ leader=\S+( protocol=\S+) pending=\d+$", r"\1", line)
        line = re.sub(r"members=(\S+)", lambda match: "members=" + ",".join(sorted(match[1].split(","))), line)
        found.append(line)
    return sorted(found)


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a script, each with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("> "):
            found.append((line[2:], []))
        elif line and not line.startswith("#"):
            found[-1][1].append(line)
    return found


Trace = list[tuple[str, list[str]]]


def play_live(peer: Peer, group_id: str, expected: Trace) -> Trace:
    """What the node does, command by command; ends early where that is not what is expected."""
    player = LivePlayer(peer, group_id)
    found: Trace = []
    try:
        for line, below in expected:
            found.append((line, comparable(player.play_expecting(line, len(below)))))
            if found[-1][1] != below:
                break
        return found
    finally:
        player.close()
