"""Members of streams groups against one shard of the coordinator on a log in memory, and topics of their topologies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.coordinator.group.streams.checks import check_heartbeat
from moldau.coordinator.group.streams.configuration import MissingTopics
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import STATE_NAMES
from moldau.coordinator.group.streams.tasks import Task, each_task
from moldau.coordinator.outcome import Outcome
from moldau.protocol.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from moldau.protocol.messages.streams_group_heartbeat_request import (
    CopartitionGroup,
    Endpoint,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.unit.coordinator.consumer_world import GROUP, ConsumerWorld

SIMPLE = "0:in"
PART = re.compile(r"([>*+=])([\w,/-]+)")
"""`0:a,b>r` reads a and b and writes r; `1:*r+s=r` reads the repartition topic r, keeps s; `r/4` has 4 partitions."""

Lists = dict[str, dict[str, list[int]]]
"""Tasks by role and subtopology."""


def make_topology(text: str, epoch: int = 0) -> Topology:
    return Topology(epoch, [make_subtopology(part) for part in text.split(";") if part])


def make_subtopology(text: str) -> Subtopology:
    name, _, rest = text.partition(":")
    found = dict(PART.findall(rest))
    sources, repartitions = words(PART.sub("", rest)), [make_topic(word) for word in words(found.get("*"))]
    names = [topic.name for topic in repartitions]
    together = words(found.get("="))
    groups: list[CopartitionGroup] = []
    if together:
        source_indexes = [sources.index(one) for one in together if one in sources]
        groups.append(CopartitionGroup(source_indexes, [], [names.index(one) for one in together if one in names]))
    changelogs = [make_topic(word) for word in words(found.get("+"))]
    return Subtopology(name, sources, [], changelogs, words(found.get(">")), repartitions, groups)


def words(text: str | None) -> list[str]:
    return [word for word in (text or "").split(",") if word]


def make_topic(text: str) -> TopicInfo:
    name, _, count = text.partition("/")
    return TopicInfo(name, int(count or 0))


def task_rows(tasks: Mapping[str, Iterable[int]]) -> list[TaskIds]:
    return [TaskIds(name, sorted(indexes)) for name, indexes in sorted(tasks.items())]


class StreamsThread:
    """What a member remembers: who it is, its epoch, and the tasks it was told to have. `ask` sends a heartbeat."""

    def __init__(
        self,
        ask: Callable[[StreamsGroupHeartbeatRequest], Any],
        member_id: str,
        process_id: str | None = None,
        group_id: str = GROUP,
    ) -> None:
        self.ask = ask
        self.group_id = group_id
        self.member_id = member_id
        self.process_id = process_id or f"process-{member_id}"
        self.epoch = 0
        self.endpoint_epoch = -1
        self.tasks: Lists = {"active": {}, "standby": {}, "warmup": {}}
        self.must_tell_everything = False

    def join(self, text: str = SIMPLE, **fields: Any) -> Any:
        self.epoch = 0
        self.tasks = {"active": {}, "standby": {}, "warmup": {}}
        fields.setdefault("rebalance_timeout_ms", 300_000)
        fields.setdefault("topology", make_topology(text, fields.pop("topology_epoch", 0)))
        return self.send(process_id=self.process_id, **self.owned(), **fields)

    def beat(self, **fields: Any) -> Any:
        """A heartbeat that says nothing new."""
        if self.must_tell_everything:
            fields = {**self.owned(), **fields}
        return self.send(**fields)

    def acknowledge(self) -> Any:
        """A heartbeat that tells what the member has."""
        return self.send(**self.owned())

    def leave(self, **fields: Any) -> Any:
        return self.send(member_epoch=-1, **fields)

    def owned(self) -> dict[str, list[TaskIds]]:
        return {f"{role}_tasks": task_rows(tasks) for role, tasks in self.tasks.items()}

    def send(self, **fields: Any) -> Any:
        endpoint = fields.pop("endpoint", None)
        if endpoint is not None:
            host, _, port = endpoint.partition(":")
            fields["user_endpoint"] = Endpoint(host, int(port))
        request = StreamsGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                "endpoint_information_epoch": self.endpoint_epoch,
                **fields,
            }
        )
        self.must_tell_everything = True
        response = self.ask(request)
        self.must_tell_everything = False
        self.epoch = response.member_epoch
        if response.member_epoch >= 0:
            self.endpoint_epoch = response.endpoint_information_epoch
        lists = [response.active_tasks, response.standby_tasks, response.warmup_tasks]
        assert len({one is None for one in lists}) == 1, "clients refuse an answer that has some of the lists only"
        if response.active_tasks is not None:
            for role, rows in zip(("active", "standby", "warmup"), lists, strict=True):
                self.tasks[role] = {row.subtopology_id: row.partitions for row in rows or []}
        return response

    def has(self, role: str = "active") -> set[Task]:
        return set(each_task(self.tasks[role]))


class StreamsWorld(ConsumerWorld):
    """Without an initial delay and an interval between assignments, unless a test asks for them."""

    def __init__(self, **settings: str) -> None:
        quick = {"group_streams_initial_rebalance_delay_ms": "0", "group_streams_assignment_interval_ms": "0"}
        super().__init__(**{**quick, **settings})
        self.missing: MissingTopics = {}

    def thread(self, member_id: str, process_id: str | None = None) -> StreamsThread:
        return StreamsThread(self.beat, member_id, process_id)

    def beat(self, request: StreamsGroupHeartbeatRequest) -> Any:
        check_heartbeat(request)

        def verb(machine: Any) -> Outcome:
            outcome, self.missing = machine.streams.heartbeat(request, "client", "/127.0.0.1", self.now_ms)
            assert isinstance(outcome, Outcome)
            return outcome

        return self.run(verb)

    @property
    def streams(self) -> StreamsGroup:
        group = self.machine.state.groups[GROUP]
        assert isinstance(group, StreamsGroup)
        return group

    def create_missing(self) -> list[str]:
        """What the broker does with the topics that a heartbeat found missing."""
        missing, self.missing = self.missing, {}
        for name, topic in sorted(missing.items()):
            self.topic(name, topic.num_partitions)
        return sorted(missing)

    def describe(self) -> Any:
        response = self.run(
            lambda machine: Outcome(response=StreamsGroupDescribeResponse(groups=machine.streams.describe([GROUP])))
        )
        response.groups[0].members.sort(key=lambda member: member.member_id)
        return response.groups[0]

    def check_tasks(self) -> None:
        """No task is active in two members or twice in a process; the tables of owners say the same as the members."""
        group = self.streams
        active: dict[Task, str] = {}
        kept: dict[str, dict[Task, set[str]]] = {"standby": {}, "warmup": {}}
        copies: dict[tuple[str, Task], str] = {}
        for member in group.members.values():
            for tasks in (member.assigned, member.pending_revocation):
                for task in each_task(tasks.active):
                    assert active.setdefault(task, member.member_id) == member.member_id, f"{task} is active twice"
                for role, found in (("standby", tasks.standby), ("warmup", tasks.warmup)):
                    for task in each_task(found):
                        kept[role].setdefault(task, set()).add(member.member_id)
                for task in (*each_task(tasks.active), *each_task(tasks.standby), *each_task(tasks.warmup)):
                    owner = copies.setdefault((member.process_id, task), member.member_id)
                    assert owner == member.member_id, f"{task} is twice in {member.process_id}"
        assert group.active_owners == active
        assert group.standby_owners == kept["standby"]
        assert group.warmup_owners == kept["warmup"]


def show_tasks(tasks: Mapping[str, Iterable[int]], epochs: bool = False) -> str:
    """0:0,1 1:0 or, with the epochs in which they were assigned, 0:0@2,1@3; `-` for nothing."""
    shown: list[str] = []
    for name in sorted(tasks):
        indexes = tasks[name]
        if epochs and isinstance(indexes, Mapping):
            parts = [f"{index}@{indexes[index]}" for index in sorted(indexes)]
        else:
            parts = [str(index) for index in sorted(indexes)]
        shown.append(f"{name}:{','.join(parts)}")
    return " ".join(shown) or "-"


def show_roles(tasks: Any, epochs: bool = False) -> str:
    """Active tasks, then standby and warm-up tasks where there are some."""
    text = show_tasks(tasks.active, epochs)
    for role, found in (("standby", tasks.standby), ("warmup", tasks.warmup)):
        if found:
            text += f" {role} {show_tasks(found)}"
    return text


def show_member(group: StreamsGroup, member_id: str) -> str:
    member = group.members[member_id]
    text = f"{member_id} epoch={member.member_epoch} {STATE_NAMES[member.state]}"
    text += f" has={show_roles(member.assigned, epochs=True)}"
    if not member.pending_revocation.is_empty:
        text += f" gives={show_roles(member.pending_revocation, epochs=True)}"
    return text + f" target={show_roles(group.target_of(member_id))}"
