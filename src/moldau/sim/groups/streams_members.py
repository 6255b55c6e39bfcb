"""Simulated members of streams groups (KIP-1071): they bring a topology, get tasks, commit, freeze, die and come back.

What they hold the coordinator to: no task is active in two members, no process has two copies of a task, and no
committed offset goes back. A member has what it was told to have until it is told otherwise, hears that it is out, or
has not been heard of for a session. Once nothing fails any more, no task is forgotten
(`SimStreamsGroup.what_is_wrong`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.streams_group_heartbeat_request import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from moldau.protocol.primitives import Message
from moldau.sim.groups.classic_members import SESSION_MS, SimClassicGroup, SimClassicMember
from moldau.sim.groups.committer import TRANSIENT_ERRORS, OffsetModel, Place, text_of
from moldau.sim.kernel.world import Violation
from moldau.sim.node.admin import STABLE_NAMES

if TYPE_CHECKING:
    from moldau.sim.groups.streams_world import StreamsGroupWorld

# Longer than anybody is frozen: whoever sleeps through it does not know that it must not work any more.
REBALANCE_MS = 60_000
LEFT = -1
READS, KEEPS = "0", "1"
"""The subtopology that reads the source topics, and the one that keeps a state."""
REPARTITION_COUNT = 3
REQUEST_TIMEOUT_MS = 3000
OUT = (
    errors.UNKNOWN_MEMBER_ID,
    errors.FENCED_MEMBER_EPOCH,
    errors.GROUP_ID_NOT_FOUND,
    errors.STALE_MEMBER_EPOCH,
)
EXPECTED = {*TRANSIENT_ERRORS, *OUT, errors.NONE}

Task = Place
"""Subtopology and partition."""


class SimStreamsGroup(SimClassicGroup):
    """The threads of an application; some of them are in one process. Its source topics may come later, and grow."""

    def __init__(self, setting: StreamsGroupWorld, name: str) -> None:
        self.setting = setting
        self.group_id = f"group-{name}"
        rng = setting.world.derived_rng(f"streams group {name}")
        self.offsets: dict[Place, OffsetModel] = {}
        self.owners: dict[Task, SimClassicMember] = {}
        self.given: dict[tuple[int, int, Task], str] = {}
        self.sources = list(STABLE_NAMES[: setting.stable_topics])
        self.repartition = f"{self.group_id}-repartition"
        self.changelog = f"{self.group_id}-changelog"
        setting.model.made_by_the_node.update((self.repartition, self.changelog))
        processes = rng.randint(1, 3)
        self.threads = [
            SimStreamsMember(self, f"{name}-{number}", f"{name}-process{rng.randrange(processes)}")
            for number in range(rng.randint(2, 5))
        ]
        self.members = list(self.threads)

    def topology(self) -> Topology:
        configs = [KeyValue("internal.segment.bytes", "3000")]
        repartition = TopicInfo(self.repartition, REPARTITION_COUNT, 0, configs)
        changelog = TopicInfo(self.changelog, 0, 1, [KeyValue("cleanup.policy", "compact")])
        return Topology(
            0,
            [
                Subtopology(READS, list(self.sources), [], [], [self.repartition]),
                Subtopology(KEEPS, [], [], [changelog], [], [repartition]),
            ],
        )

    def places_of(self, tasks: set[Task]) -> list[Place]:
        """The partitions that tasks read, as far as an administrator was told that they are there."""
        counts = {topic.name: len(topic.partitions) for topic in self.setting.model.present()}
        found: list[Place] = []
        for subtopology, index in sorted(tasks):
            topics = self.sources if subtopology == READS else [self.repartition]
            found += [(name, index) for name in topics if index < counts.get(name, REPARTITION_COUNT)]
        known = {*counts, self.repartition}
        return [place for place in found if place[0] in known]

    def take_tasks(self, member: SimStreamsMember, active: set[Task], kept: set[Task]) -> None:
        """The member was told that these are new to it."""
        self.take(member, sorted(active))
        for task in sorted(active | kept):
            for other in self.threads:
                if other is not member and other.process_id == member.process_id and other.holds(task):
                    raise Violation(
                        f"a process has a task once: {task} of {self.group_id} went to {member.name} while "
                        f"{other.name} has it in {member.process_id}"
                    )

    def _begins_anew(self, member: SimClassicMember) -> bool:
        return False

    # When nothing fails any more

    def what_is_wrong(self, image: MetadataImage, standby_replicas: int) -> str:
        """Empty if every task is active in one member and has its copies, by the topics that there are."""
        counts = [len(topic.partitions) for name in self.sources if (topic := image.topic(name)) is not None]
        if len(counts) < len(self.sources):
            return "source topics are missing"
        alive = [thread for thread in self.threads if not thread.is_gone]
        if any(thread.generation <= 0 or not thread.is_in_session for thread in alive):
            return "somebody has not joined"
        expected = {(READS, index) for index in range(max(counts))}
        expected |= {(KEEPS, index) for index in range(REPARTITION_COUNT)}
        active = sorted(task for thread in alive for task in thread.owned)
        if active != sorted(expected):
            return f"{sorted(expected)} are to be active, {active} are"
        copies = min(standby_replicas, len({thread.process_id for thread in alive}) - 1)
        wanted = sorted((KEEPS, index) for index in range(REPARTITION_COUNT) for _ in range(copies))
        kept = sorted(task for thread in alive for task in thread.kept)
        return "" if kept == wanted else f"{wanted} are to be kept, {kept} are"


class SimStreamsMember(SimClassicMember):
    """One thread with one connection; its generation is its epoch."""

    def __init__(self, group: SimStreamsGroup, name: str, process_id: str) -> None:
        self.streams_group = group
        self.process_id = process_id
        self.is_gone = False
        self.asked_ms = 0
        super().__init__(group, name, is_static=False)
        self.has_endpoint = self.rng.random() < 0.3
        self.endpoint_epoch = -1

    def _forget(self) -> None:
        super()._forget()
        self.member_id = f"{self.name}-{self.life}"

    def _lose_all(self) -> None:
        super()._lose_all()
        self.kept: set[Task] = set()
        self.must_tell_everything = True
        self.must_acknowledge = False

    @property
    def is_in_session(self) -> bool:
        return self.world.now_ms < self.session_end_ms and self.losses == self.setting.data_losses

    def holds(self, task: Task) -> bool:
        return (task in self.owned or task in self.kept) and self.is_in_session

    # What it does

    def tick(self) -> None:
        if not self.setting.calm:
            super().tick()
            return
        self.world.schedule(self.rng.randint(20, 150), self.tick)
        now_ms = self.world.now_ms
        if self.asking and now_ms >= max(self.frozen_until_ms, self.asked_ms + REQUEST_TIMEOUT_MS):
            self.client.disconnect("no answer in time")
        elif not (self.setting.paused or self.is_gone or self.asking):
            if now_ms >= max(self.frozen_until_ms, self.quiet_until_ms):
                self._next(self.rng.uniform(0.1, 1))

    def _ask(self, request: Message, version: int) -> None:
        self.asked_ms = self.world.now_ms
        super()._ask(request, version)

    def end(self, *, says_so: bool) -> None:
        """The thread ends for good, with or without a word."""
        self.is_gone = True
        if says_so and not self.asking and self.generation > 0:
            self._leave()
        else:
            self.client.disconnect("its process died")
            self._forget()

    def begin_again(self) -> None:
        self.is_gone = False

    def _next(self, chance: float) -> None:
        if self.must_look:
            self._ask(FindCoordinatorRequest(coordinator_keys=[self.group.group_id]), 4)
        elif self.generation <= 0:
            self._join()
        elif self.must_fetch:
            self._ask(self.group.fetch_request(self.streams_group.places_of(self.owned)), 8)
        elif chance < 0.03:
            self._leave()
        elif self.prepared and chance < 0.5:
            self._commit()
        else:
            self._prepare()
            self._beat(chance)

    def _join(self) -> None:
        self.endpoint_epoch = -1
        self._send(0, topology=self.streams_group.topology(), **self._about(), **self._owned_rows())

    def _about(self) -> dict[str, Any]:
        endpoint = Endpoint(self.name, 8080) if self.has_endpoint else None
        return {"rebalance_timeout_ms": REBALANCE_MS, "process_id": self.process_id, "user_endpoint": endpoint}

    def _beat(self, chance: float) -> None:
        fields: dict[str, Any] = {}
        if self.must_tell_everything or self.must_acknowledge or chance > 0.9:
            fields = self._owned_rows()
        self._send(self.generation, **fields)

    def _leave(self) -> None:
        self._send(LEFT)
        self._lose_all()

    def _send(self, epoch: int, **fields: Any) -> None:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=self.endpoint_epoch,
            **fields,
        )
        # Until the response is there, it is one that may have got lost.
        self.must_tell_everything = True
        self._ask(request, 0)

    def _owned_rows(self) -> dict[str, list[TaskIds]]:
        return {"active_tasks": rows_of(self.owned), "standby_tasks": rows_of(self.kept), "warmup_tasks": []}

    def _prepare(self) -> None:
        for place in self.streams_group.places_of(self.owned):
            if self.rng.random() < 0.5:
                self.prepared[place] = self.group.model(place).next_offset()

    def _commit(self) -> None:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in sorted(self.prepared.items()):
            topics.setdefault(topic, []).append(OffsetCommitRequestPartition(index, offset, -1, text_of(offset)))
        rows = [OffsetCommitRequestTopic(name, partitions=partitions) for name, partitions in topics.items()]
        self._ask(OffsetCommitRequest(self.group.group_id, self.generation, self.member_id, None, topics=rows), 9)

    # What it hears

    def _is_fine(self, code: int, request: Message) -> bool:
        if code not in EXPECTED:
            raise Violation(f"{type(request).__name__} is answered: {self.name} got {errors.error_name(code)}")
        if code in TRANSIENT_ERRORS:
            self.must_look = True
        elif code == errors.STALE_MEMBER_EPOCH:
            # It was behind: the next heartbeat tells it where it is.
            self.prepared = {}
        elif code in OUT:
            self._lose_all()
        return code == errors.NONE

    def _on_success(self, request: Message, response: Any, sent_ms: int) -> None:
        assert isinstance(request, StreamsGroupHeartbeatRequest)
        if request.member_epoch < 0:
            self.life += 1
            self.member_id = f"{self.name}-{self.life}"
            self._lose_all()
            return
        self.generation = response.member_epoch
        self.losses = self.setting.data_losses
        self.session_end_ms = sent_ms + SESSION_MS
        self.endpoint_epoch = response.endpoint_information_epoch
        self.must_tell_everything = False
        self.must_acknowledge = False
        lists = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
        if len({one is None for one in lists}) > 1:
            raise Violation(f"an answer has all lists of tasks or none: {self.name} got {lists}")
        if response.active_tasks is not None:
            self._on_assigned(tasks_of(response.active_tasks), tasks_of(response.standby_tasks))

    def _on_assigned(self, active: set[Task], kept: set[Task]) -> None:
        if self.is_in_session:
            self.streams_group.take_tasks(self, active - self.owned, kept - self.kept)
        # Otherwise it was frozen for so long that others have them by now; it does not know, and is refused.
        new = active - self.owned
        self.owned, self.kept = active, kept
        places = set(self.streams_group.places_of(active))
        self.prepared = {place: offset for place, offset in self.prepared.items() if place in places}
        self.must_acknowledge = True
        self.must_fetch = bool(new)


def rows_of(tasks: set[Task]) -> list[TaskIds]:
    rows: dict[str, list[int]] = {}
    for subtopology, index in sorted(tasks):
        rows.setdefault(subtopology, []).append(index)
    return [TaskIds(subtopology, indexes) for subtopology, indexes in rows.items()]


def tasks_of(rows: list[Any]) -> set[Task]:
    return {(row.subtopology_id, index) for row in rows for index in row.partitions}
