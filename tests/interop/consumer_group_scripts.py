"""Plays the scripts about consumer groups against a running node: what they say must be true of Apache Kafka too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.primitives import Message
from tests.interop.group_offsets import commit, fetch, find_coordinator, stored_records
from tests.interop.group_scripts import LiveAnswer
from tests.interop.peers import Peer
from tests.pace import moment, patience, patience_ms
from tests.scripts.consumer_groups.player import Player
from tests.unit.coordinator.consumer_world import GROUP, Consumer

GROUP_RESOURCE = 32
SET, DELETE = 0, 1
SECONDS = patience(20)
ANSWER_SECONDS = 0.5
NOT_YET = (errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE)


class LiveClassicAnswer:
    """Comes at once, or when somebody else has joined."""

    def __init__(self, answer: LiveAnswer) -> None:
        self._answer = answer

    def take(self) -> Any:
        deadline = time.monotonic() + moment(ANSWER_SECONDS)
        while not self._answer.done and time.monotonic() < deadline:
            time.sleep(0.005)
        return self._answer.answer


class LiveWorld:
    """Has the requests of a ConsumerWorld; asks a node instead. The group has a name of its own, shown as that of the
    scripts; topics are deleted afterwards."""

    def __init__(self, peer: Peer, group_id: str) -> None:
        self.peer = peer
        self.group_id = group_id
        self.topics: set[str] = set()
        self.names: dict[bytes, str] = {}
        self.seen = 0
        find_coordinator(peer, group_id)

    def close(self) -> None:
        for name in list(self.topics):
            self.delete(name)

    def consumer(self, member_id: str) -> Consumer:
        return Consumer(self, member_id)  # type: ignore[arg-type]

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, version: int) -> Any:
        if request.group_id == GROUP:
            request.group_id = self.group_id
        answer = self.peer.ask(request, version, "client")
        self.check(answer.error_code, answer.error_message)
        return answer

    def ask_classic(self, request: Any, version: int, client_id: str) -> LiveClassicAnswer:
        request.group_id = self.group_id
        return LiveClassicAnswer(LiveAnswer(self.peer.connect(), request, version, client_id))

    def settle(self) -> None:
        """Whoever waits for an answer waits long enough."""

    def check(self, code: int, message: str | None) -> None:
        if code:
            raise KafkaError(code, (message or "").replace(self.group_id, GROUP))

    def describe(self) -> Any:
        (group,) = self.peer.ask(ConsumerGroupDescribeRequest([self.group_id]), 1).groups
        if group.error_message is not None:
            group.error_message = group.error_message.replace(self.group_id, GROUP)
        group.members.sort(key=lambda member: member.member_id)
        return group

    def delete_group(self) -> list[int]:
        return [row.error_code for row in self.peer.ask(DeleteGroupsRequest([self.group_id]), 2).results]

    # Topics

    def topic_id(self, name: str) -> bytes:
        return next((topic_id for topic_id, known in self.names.items() if known == name), bytes(16))

    def name_of(self, topic_id: bytes) -> str:
        return self.names[topic_id]

    def topic(self, name: str, partitions: int) -> None:
        if name in self.topics:
            request = CreatePartitionsRequest([CreatePartitionsTopic(name, partitions, None)], 10_000)
            assert self.peer.ask(request, 3).results[0].error_code == 0
            self.peer.wait_for_topic(name, partitions)
        else:
            self.peer.create(name, partitions)
        self.topics.add(name)
        topic_id = self.peer.topic_id(name)
        self.names = {known: other for known, other in self.names.items() if other != name}
        self.names[topic_id] = name

    def delete(self, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name)], timeout_ms=patience_ms(10_000))
        assert self.peer.ask(request, 6).responses[0].error_code == 0
        self.topics.discard(name)
        deadline = time.monotonic() + SECONDS
        while self.peer.metadata(name).error_code == 0 and time.monotonic() < deadline:
            time.sleep(0.02)

    def configure(self, key: str, value: str | None) -> None:
        entry = AlterableConfig(key, DELETE if value is None else SET, value)
        resource = AlterConfigsResource(GROUP_RESOURCE, self.group_id, [entry])
        assert self.peer.ask(IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code == 0
        time.sleep(0.2)

    # Offsets

    def commit(
        self, group: str, topic: str, partition: int, offset: int, topic_id: bytes, version: int, **who: Any
    ) -> int:
        answer = commit(self.peer, self.group_id, {topic: [(partition, offset, -1, "")]}, version, **who)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def fetch_offsets(self, member_id: str, epoch: int) -> int:
        answer = fetch(self.peer, self.group_id, {"t": [0]}, member_id=member_id, member_epoch=epoch)
        code: int = answer.groups[0].error_code
        return code

    # Log and time

    def new_records(self) -> list[tuple[Message, Message | None]]:
        found = stored_records(self.peer, self.group_id)
        new = found[self.seen :]
        self.seen = len(found)
        return [(key, value) for key, value, _ in new]

    def sleep(self, ms: int) -> None:
        time.sleep(ms / 1000)


class LivePlayer(Player):
    """Commands as in the scripts; what only the coordinator knows is not looked at."""

    def __init__(self, peer: Peer, group_id: str) -> None:
        self.live = LiveWorld(peer, group_id)
        super().__init__(self.live)  # type: ignore[arg-type]

    def check(self) -> None:
        pass

    def do_show(self, words: list[str], options: dict[str, str]) -> list[str]:
        return []


class Trace(NamedTuple):
    """What members see, command by command, and the records of the whole script: those come when they are committed."""

    seen: list[tuple[str, list[str]]]
    log: list[str]


def script(path: Path) -> Trace:
    """What a script says that a client can see."""
    trace = Trace([], [])
    for line in path.read_text().splitlines():
        if line.startswith("> "):
            trace.seen.append((line[2:], []))
        elif line.startswith("log: "):
            trace.log.append(line)
        elif line and not line.startswith("#") and trace.seen[-1][0] != "show":
            trace.seen[-1][1].append(line)
    return trace


def play_live(peer: Peer, group_id: str, expected: Trace) -> Trace:
    """What the node does; ends early where that is not what is expected."""
    player = LivePlayer(peer, group_id)
    trace = Trace([], [])
    try:
        before = ""
        for line, below in expected.seen:
            seen, log = play_line(player, line, below, before)
            trace.seen.append((line, seen))
            trace.log.extend(log)
            if seen != below:
                break
            before = line
    finally:
        player.live.close()
    return trace


def play_line(player: LivePlayer, line: str, below: list[str], before: str) -> tuple[list[str], list[str]]:
    """What members see, and the records. A coordinator hears of a change of topics some time after everybody else: the
    first heartbeat behind one is sent again as long as it changes nothing."""
    deadline = time.monotonic() + SECONDS
    while True:
        lines = player.play(line)
        seen = [one for one in lines if not one.startswith("log: ")]
        log = [one for one in lines if one.startswith("log: ")]
        may_be_early = line.startswith("beat ") and before.startswith(("topic ", "delete "))
        if seen == below or log or not may_be_early or time.monotonic() > deadline:
            return seen, log
        time.sleep(0.05)
