"""Plays a script about one streams group: a command per line, what members and the log see below it.

    topic NAME PARTITIONS      delete NAME           create (the internal topics that the last heartbeat missed)
    join NAME [topology=T] [process=P] [rebalance=MS] [endpoint=HOST:PORT] [topology_epoch=N] [rack=R] [instance=I]
    beat NAME [epoch=N] [active=0:0,1/1:0] [standby=0:0] [process=P] [shutdown=yes]
    ack NAME                   (a heartbeat that tells what the member has)
    leave NAME [shutdown=yes]
    commit NAME TOPIC:PARTITION [epoch=N] [version=V] [id=ID]            fetch NAME [epoch=N]
    cjoin NAME (the classic protocol)    consume NAME (the consumer protocol)
    tick MS      show      describe      list      delete-group      restart
    fail CODE-NAME | fail none (appends)   set KEY VALUE (of the broker)   config KEY VALUE (of the group)

A topology is written as in `streams_world`. Members are called by their ids and use the epoch that they were told last.
"""

from __future__ import annotations

from typing import Any

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
    GroupMetadataValue,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyValue,
)
from tests.scripts.consumer_groups.player import sorted_runs
from tests.unit.coordinator.consumer_world import GROUP
from tests.unit.coordinator.streams_world import (
    SIMPLE,
    StreamsThread,
    StreamsWorld,
    show_member,
    show_roles,
    show_tasks,
    task_rows,
)

STATUS_NAMES = (
    "STALE_TOPOLOGY",
    "MISSING_SOURCE_TOPICS",
    "INCORRECTLY_PARTITIONED_TOPICS",
    "MISSING_INTERNAL_TOPICS",
    "SHUTDOWN_APPLICATION",
    "ASSIGNMENT_DELAYED",
)


class Player:
    """See the module."""

    def __init__(self) -> None:
        self.world = StreamsWorld()
        self.members: dict[str, StreamsThread] = {}
        self.values: dict[str, str] = {}

    def play(self, line: str) -> list[str]:
        command, *words = line.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            lines = getattr(self, "do_" + command.replace("-", "_"))(plain, options) or []
        except KafkaError as error:
            lines = [f"{plain[0] if plain else command}: {error.name}: {error.message}"]
        if isinstance(self.world.machine.state.groups.get(GROUP), StreamsGroup):
            self.world.check_tasks()
        lines += [f"log: {show_record(key, value)}" for key, value in self.world.new_records()]
        return sorted_runs(lines)

    def member(self, name: str) -> StreamsThread:
        return self.members.setdefault(name, self.world.thread(name))

    # Topics and settings

    def do_topic(self, words: list[str], options: dict[str, str]) -> None:
        self.world.topic(words[0], int(words[1]))

    def do_delete(self, words: list[str], options: dict[str, str]) -> None:
        self.world.delete(words[0])

    def do_create(self, words: list[str], options: dict[str, str]) -> list[str]:
        return [f"created {', '.join(self.world.create_missing()) or 'nothing'}"]

    def do_set(self, words: list[str], options: dict[str, str]) -> None:
        self.values[words[0]] = words[1]
        quick = {
            "group.streams.initial.rebalance.delay.ms": "0",
            "group.streams.assignment.interval.ms": "0",
            "group.initial.rebalance.delay.ms": "0",
        }
        values = {**single_node_values(), "log.dirs": "/data", **quick, **self.values}
        self.world.settings.update(BrokerConfig(values, warn=False))

    def do_config(self, words: list[str], options: dict[str, str]) -> None:
        self.world.configure(words[0], words[1] if len(words) > 1 else None)

    def do_fail(self, words: list[str], options: dict[str, str]) -> None:
        self.world.log.failure = None if words[0] == "none" else KafkaError(getattr(errors, words[0]))

    # Members

    def do_join(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        member.process_id = options.get("process", member.process_id)
        fields = self.fields(options)
        fields.pop("process_id", None)
        if "topology_epoch" in options:
            fields["topology_epoch"] = int(options["topology_epoch"])
        return self.told(words[0], member.join(options.get("topology", SIMPLE), **fields))

    def do_beat(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self.told(words[0], self.member(words[0]).send(**self.fields(options)))

    def do_ack(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self.told(words[0], self.member(words[0]).acknowledge())

    def do_leave(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self.told(words[0], self.member(words[0]).leave(**self.fields(options)))

    def fields(self, options: dict[str, str]) -> dict[str, Any]:
        """The fields of a request that the words of a command name; what they leave out is left out."""
        fields: dict[str, Any] = {}
        for word, field in (
            ("process", "process_id"),
            ("endpoint", "endpoint"),
            ("rack", "rack_id"),
            ("instance", "instance_id"),
        ):
            if word in options:
                fields[field] = options[word]
        for word, field in (("epoch", "member_epoch"), ("rebalance", "rebalance_timeout_ms")):
            if word in options:
                fields[field] = int(options[word])
        if "shutdown" in options:
            fields["shutdown_application"] = True
        if "active" in options or "standby" in options:
            for role in ("active", "standby", "warmup"):
                fields[f"{role}_tasks"] = task_rows(read_tasks(options.get(role, "")))
        return fields

    def told(self, name: str, response: Any) -> list[str]:
        text = f"{name}: epoch={response.member_epoch}"
        if response.heartbeat_interval_ms not in (0, 5000):
            text += f" interval={response.heartbeat_interval_ms}"
        if response.active_tasks is not None:
            text += f" tasks={show_tasks({row.subtopology_id: row.partitions for row in response.active_tasks})}"
        if response.standby_tasks:
            text += f" standby={show_tasks({row.subtopology_id: row.partitions for row in response.standby_tasks})}"
        lines = [text]
        lines += [f"{name}: {STATUS_NAMES[one.status_code]}: {one.status_detail}" for one in response.status or []]
        for row in response.partitions_by_user_endpoint or []:
            active = show_tasks({one.topic: one.partitions for one in row.active_partitions})
            standby = show_tasks({one.topic: one.partitions for one in row.standby_partitions})
            where = f"{row.user_endpoint.host}:{row.user_endpoint.port}"
            lines.append(f"{name}: endpoints@{response.endpoint_information_epoch} {where} {active} standby {standby}")
        return lines

    # Other protocols

    def do_cjoin(self, words: list[str], options: dict[str, str]) -> list[str]:
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(GROUP, 45_000, 300_000, "", None, "consumer", protocols)
        pending = self.world.ask_classic(request, 3, words[0])
        self.world.settle()
        answer: Any = pending.take()
        return [f"{words[0]}: {'waits' if answer is None else errors.error_name(answer.error_code)}"]

    def do_consume(self, words: list[str], options: dict[str, str]) -> list[str]:
        self.world.consumer(words[0]).join("in")
        return [f"{words[0]}: joined"]

    # Offsets

    def do_commit(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        topic, partition = words[1].split(":")
        code = self.world.commit(
            GROUP,
            topic,
            int(partition),
            5,
            topic_id=self.world.topic_id(topic),
            version=int(options.get("version", 9)),
            member_id=options.get("id", member.member_id),
            generation_id_or_member_epoch=int(options.get("epoch", member.epoch)),
        )
        return [f"{words[0]}: {errors.error_name(code) if code else 'ok'}"]

    def do_fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        member = self.member(words[0])
        code = self.world.fetch_offsets(member.member_id, int(options.get("epoch", member.epoch)))
        return [f"{words[0]}: {errors.error_name(code) if code else 'ok'}"]

    # Time and looks

    def do_tick(self, words: list[str], options: dict[str, str]) -> None:
        self.world.sleep(int(words[0]))

    def do_restart(self, words: list[str], options: dict[str, str]) -> None:
        """Another broker leads, and knows what is in the log."""
        self.world.lead()

    def do_show(self, words: list[str], options: dict[str, str]) -> list[str]:
        group = self.world.machine.state.find_group(GROUP)
        if not isinstance(group, StreamsGroup):
            return ["no group" if group is None else f"{group.kind} group {group.state_name()}"]
        lines = [f"{group.state_name()} epoch={group.group_epoch} assigned={group.assignment_epoch}"]
        return lines + [f"  {show_member(group, member_id)}" for member_id in sorted(group.members)]

    def do_list(self, words: list[str], options: dict[str, str]) -> list[str]:
        answer = self.world.run(lambda machine: machine.admin.list_groups([], []))
        return [f"{one.group_id} {one.group_type} {one.protocol_type} {one.group_state}" for one in answer.groups]

    def do_describe(self, words: list[str], options: dict[str, str]) -> list[str]:
        group = self.world.describe()
        if group.error_code:
            return [f"{errors.error_name(group.error_code)}: {group.error_message}"]
        lines = [f"{group.group_state} epoch={group.group_epoch} assigned={group.assignment_epoch}"]
        for one in group.topology.subtopologies:
            repartitions = {topic.name: [topic.partitions] for topic in one.repartition_source_topics}
            changelogs = {topic.name: [topic.partitions] for topic in one.state_changelog_topics}
            lines.append(
                f"  topology@{group.topology.epoch} {one.subtopology_id} reads {','.join(one.source_topics) or '-'} "
                f"and {show_tasks(repartitions)} keeps {show_tasks(changelogs)}"
            )
        for member in group.members:
            has = show_tasks({row.subtopology_id: row.partitions for row in member.assignment.active_tasks})
            target = show_tasks({row.subtopology_id: row.partitions for row in member.target_assignment.active_tasks})
            lines.append(
                f"  {member.member_id} epoch={member.member_epoch} process={member.process_id} rack={member.rack_id} "
                f"topology={member.topology_epoch} has={has} target={target}"
            )
        return lines

    def do_delete_group(self, words: list[str], options: dict[str, str]) -> list[str]:
        return [errors.error_name(code) for code in self.world.delete_group()]


def read_tasks(text: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for part in text.split("/"):
        name, _, indexes = part.partition(":")
        if name:
            found[name] = [int(index) for index in indexes.split(",")]
    return found


# Records


def show_record(key: Message, value: Message | None) -> str:
    """One record in a line: what it is about, and what it says."""
    kind = type(key).__name__.removesuffix("Key").removeprefix("StreamsGroup")
    text = f"{kind} {getattr(key, 'member_id', '')}".rstrip()
    return f"{text} removed" if value is None else f"{text} {show_value(value)}".rstrip()


def show_value(value: Message) -> str:
    if isinstance(value, StreamsGroupMetadataValue):
        configs = ",".join(f"{row.key}={row.value}" for row in value.last_assignment_configs or [])
        return f"epoch={value.epoch} validated={value.validated_topology_epoch} {configs}"
    if isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
        return f"epoch={value.assignment_epoch}"
    if isinstance(value, StreamsGroupMemberMetadataValue):
        endpoint = value.user_endpoint
        where = "" if endpoint is None else f" endpoint={endpoint.host}:{endpoint.port}"
        rack = "" if value.rack_id is None else f" rack={value.rack_id}"
        return f"topology={value.topology_epoch} process={value.process_id}{rack}{where}"
    if isinstance(value, StreamsGroupTopologyValue):
        return f"epoch={value.epoch} {' '.join(one.subtopology_id for one in value.subtopologies)}"
    if isinstance(value, StreamsGroupTargetAssignmentMemberValue):
        return show_roles(Rows(value.active_tasks, value.standby_tasks, value.warmup_tasks))
    if isinstance(value, StreamsGroupCurrentMemberAssignmentValue):
        has = Rows(value.active_tasks, value.standby_tasks, value.warmup_tasks)
        gives = Rows(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
        )
        return (
            f"epoch={value.previous_member_epoch}->{value.member_epoch} state={value.state} "
            f"has={show_roles(has, epochs=True)} gives={show_roles(gives, epochs=True)}"
        )
    if isinstance(value, GroupMetadataValue):
        return f"generation={value.generation}"
    return ""


class Rows:
    """Rows of a record by role, in the form in which tasks are shown."""

    def __init__(self, active: list[Any], standby: list[Any], warmup: list[Any]) -> None:
        self.active = {row.subtopology_id: with_epochs(row) for row in active}
        self.standby = {row.subtopology_id: row.partitions for row in standby}
        self.warmup = {row.subtopology_id: row.partitions for row in warmup}


def with_epochs(row: Any) -> Any:
    epochs = getattr(row, "assignment_epochs", None)
    return dict(zip(row.partitions, epochs, strict=True)) if epochs else row.partitions
