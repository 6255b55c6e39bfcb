"""Members of a share group over plain sockets, each in a thread: they accept, release and reject, and recall it all.

A record counts as accepted when the answer said so while its lock could not have run out, nor the leader that gave it
have been fenced and chosen again: such a leader has lost its locks, and ignores what is said of records below its start
offset, as Kafka's do. What is answered later, or not at all, may have happened or not.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any

from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from moldau.protocol.primitives import Message
from tests.cluster.proxy import HOST
from tests.interop.wire import CLOSED, Wire
from tests.pace import moment

LOCK_S = moment(5)
# A broker that is not heard of is fenced after two seconds (`QUICK`).
CERTAIN_S = moment(1.5)
ANSWER_S = moment(6)
BEAT_S = 0.5
ACCEPT, RELEASE, REJECT = 1, 2, 3
Said = dict[int, dict[int, int]]
"""Acknowledge types of offsets, by partition."""


class Tally:
    """What all members together were told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.accepted: dict[tuple[int, int], str] = {}
        """By whom, for the message of a failure."""
        self.tried: set[tuple[int, int]] = set()
        """Accepted or rejected by somebody, whatever the answer was."""
        self.twice: list[tuple[int, int, str, str]] = []
        self.delivered = 0
        self.problems: list[str] = []

    def on_delivered(self, partition: int, offset: int, who: str) -> None:
        with self._lock:
            self.delivered += 1

    def on_said(self, said: Said) -> None:
        with self._lock:
            for partition, offsets in said.items():
                self.tried.update((partition, offset) for offset, kind in offsets.items() if kind != RELEASE)

    def on_accepted(self, partition: int, offset: int, who: str) -> None:
        with self._lock:
            place = (partition, offset)
            if place in self.accepted:
                self.twice.append((partition, offset, self.accepted[place], who))
            self.accepted[place] = who


class Member(threading.Thread):
    """Fetches from every leader of the topic in turn; one connection to each."""

    def __init__(self, number: int, ports: dict[int, int], group: str, topic: str, tally: Tally, seed: int) -> None:
        super().__init__(name=f"member-{number}", daemon=True)
        self._member_id = f"member-{number}-{seed}"
        self._ports = ports
        self._group = group
        self._topic = topic
        self._tally = tally
        self._rng = random.Random(seed * 1000 + number)
        self._wires: dict[int, Wire] = {}
        self._epochs: dict[int, int] = {}
        self._partitions: dict[int, set[int]] = {}
        self._held: dict[int, dict[int, list[int]]] = {}
        self._fetched_at: dict[int, float] = {}
        self._member_epoch = 0
        self._coordinator = -1
        self._next_beat = 0.0
        self._leaders: dict[int, int] = {}
        self._topic_id = b""
        self._next_look = 0.0
        self.stopping = threading.Event()
        self.only_accepts = threading.Event()

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._step()
            for node_id in list(self._wires):
                self._drop(node_id)
        except Exception as error:
            self._tally.problems.append(f"{self.name}: {error!r}")

    def _step(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_S
            self._beat()
        if now >= self._next_look:
            self._next_look = now + 2.0
            self._look()
        leaders = sorted(set(self._leaders.values()) - {-1})
        if not leaders:
            time.sleep(0.1)
        for node_id in leaders:
            if not self._fetch(node_id):
                self._next_look = 0.0
                time.sleep(0.05)

    # Requests

    def _ask(self, node_id: int, request: Message, version: int) -> Any:
        """The answer, or None: then the connection is given up, and the session with it."""
        try:
            wire = self._wires.get(node_id)
            if wire is None:
                wire = self._wires[node_id] = Wire(HOST, self._ports[node_id])
                wire.socket.settimeout(ANSWER_S)
            answer = wire.ask(request, version)
        except OSError:
            answer = CLOSED
        if isinstance(answer, str):
            self._drop(node_id)
            return None
        return answer

    def _drop(self, node_id: int) -> None:
        wire = self._wires.pop(node_id, None)
        if wire is not None:
            with contextlib.suppress(OSError):
                wire.socket.close()
        self._epochs.pop(node_id, None)
        self._held.pop(node_id, None)

    def _anybody(self) -> int:
        return self._rng.choice(sorted(self._ports))

    def _look(self) -> None:
        answer = self._ask(self._anybody(), MetadataRequest([MetadataRequestTopic(name=self._topic)]), 12)
        if answer is not None and answer.topics and answer.topics[0].error_code == errors.NONE:
            self._topic_id = answer.topics[0].topic_id
            self._leaders = {row.partition_index: row.leader_id for row in answer.topics[0].partitions}

    def _beat(self) -> None:
        if self._coordinator < 0:
            answer = self._ask(self._anybody(), FindCoordinatorRequest(coordinator_keys=[self._group]), 4)
            if answer is None or answer.coordinators[0].error_code != errors.NONE:
                return
            self._coordinator = answer.coordinators[0].node_id
        request = ShareGroupHeartbeatRequest(self._group, self._member_id, self._member_epoch, None, [self._topic])
        answer = self._ask(self._coordinator, request, 1)
        if answer is None or answer.error_code in (errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE):
            self._coordinator = -1
        elif answer.error_code == errors.NONE:
            self._member_epoch = answer.member_epoch
        elif answer.error_code in (errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH, errors.GROUP_ID_NOT_FOUND):
            self._member_epoch = 0

    def _fetch(self, node_id: int) -> bool:
        epoch = self._epochs.get(node_id, 0)
        said = self._choose(node_id) if epoch > 0 else {}
        known = self._partitions.setdefault(node_id, set()) if epoch > 0 else set()
        led = {partition for partition, leader in self._leaders.items() if leader == node_id}
        self._partitions[node_id] = known | led
        rows = [FetchPartition(partition) for partition in sorted(led - known - set(said))]
        for partition, offsets in sorted(said.items()):
            batches = [AcknowledgementBatch(offset, offset, [kind]) for offset, kind in sorted(offsets.items())]
            rows.append(FetchPartition(partition, batches))
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=epoch,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=20,
            batch_size=20,
            topics=[FetchTopic(self._topic_id, rows)] if rows else [],
        )
        self._tally.on_said(said)
        fetched_at, sent_at = self._fetched_at.get(node_id, 0.0), time.monotonic()
        answer = self._ask(node_id, request, 2)
        self._held.pop(node_id, None)
        if answer is None:
            return False
        if answer.error_code != errors.NONE:
            self._epochs.pop(node_id, None)
            return False
        self._epochs[node_id] = epoch + 1
        self._fetched_at[node_id] = sent_at
        answered_at = time.monotonic()
        who = f"{self.name} at node {node_id}, fetched {fetched_at:.3f}, said {sent_at:.3f}, answered {answered_at:.3f}"
        return self._take(node_id, answer, said, who if answered_at - fetched_at < CERTAIN_S else "")

    def _choose(self, node_id: int) -> Said:
        said: Said = {}
        for partition, offsets in self._held.get(node_id, {}).items():
            said[partition] = {offset: self._kind() for offset in offsets}
        return said

    def _kind(self) -> int:
        draw = self._rng.random()
        if self.only_accepts.is_set() or draw < 0.93:
            return ACCEPT
        return RELEASE if draw < 0.99 else REJECT

    def _take(self, node_id: int, answer: Any, said: Said, in_time: str) -> bool:
        """`in_time`: who said it and when, empty if locks may be gone meanwhile."""
        fine = True
        held: dict[int, list[int]] = {}
        for topic in answer.responses:
            for row in topic.partitions:
                partition = row.partition_index
                if row.acknowledge_error_code == errors.NONE and in_time:
                    for offset, kind in said.get(partition, {}).items():
                        if kind == ACCEPT:
                            self._tally.on_accepted(partition, offset, in_time)
                if row.error_code != errors.NONE:
                    fine = False
                for one in row.acquired_records:
                    offsets = list(range(one.first_offset, one.last_offset + 1))
                    held.setdefault(partition, []).extend(offsets)
                    for offset in offsets:
                        self._tally.on_delivered(partition, offset, self.name)
        if held:
            self._held[node_id] = held
        if not fine:
            self._epochs.pop(node_id, None)
        return fine
