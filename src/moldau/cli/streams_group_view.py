"""A streams group for people and programs: what is committed for its tasks, who works on them, and who keeps copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moldau.cli.output import Styled, print_table
from moldau.facts.group_lag import committed_of, fetch_end_offsets

if TYPE_CHECKING:
    from moldau.client.admin import Admin, StreamsGroupDescription, StreamsMember, StreamsTasks
    from moldau.client.results import TopicPartition

Json = dict[str, Any]


def streams_json(admin: Admin, group: StreamsGroupDescription) -> Json:
    """A group as `--format json` has it; raises what its offsets cannot be read for."""
    committed = committed_of(admin, group.group_id)
    ends = fetch_end_offsets(admin, committed)
    workers = _workers(group)
    readers = {
        topic: one.subtopology_id
        for one in group.subtopologies
        for topic in (*one.source_topics, *(topic.name for topic in one.repartition_source_topics))
    }
    rows: list[Json] = []
    for partition, found in sorted(committed.items()):
        member = workers.get((readers.get(partition.topic, ""), partition.partition))
        rows.append(_offset_json(partition, None if found is None else found.offset, ends.get(partition), member))
    known = [row["lag"] for row in rows if row["lag"] is not None]
    return {
        "group_id": group.group_id,
        "type": "streams",
        "state": group.state,
        "coordinator": {"id": group.coordinator.id, "host": group.coordinator.host, "port": group.coordinator.port},
        "assignor": None,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.topology_epoch,
        "lag": sum(known) if known else None,
        "offsets": rows,
        "subtopologies": [
            {
                "subtopology_id": one.subtopology_id,
                "source_topics": one.source_topics,
                "repartition_sink_topics": one.repartition_sink_topics,
                "repartition_source_topics": [topic.name for topic in one.repartition_source_topics],
                "state_changelog_topics": [topic.name for topic in one.state_changelog_topics],
            }
            for one in group.subtopologies
        ],
        "members": [_member_json(member) for member in group.members],
    }


def _workers(group: StreamsGroupDescription) -> dict[tuple[str, int], StreamsMember]:
    """By subtopology and partition: the member that has the task active."""
    return {
        (subtopology, index): member
        for member in group.members
        for subtopology, indexes in member.assignment.active.items()
        for index in indexes
    }


def _offset_json(partition: TopicPartition, offset: int | None, end: int | None, member: StreamsMember | None) -> Json:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": offset,
        "end_offset": end,
        "lag": None if offset is None or end is None else end - offset,
        "member_id": None if member is None else member.member_id,
        "client_id": None if member is None else member.client_id,
        "host": None if member is None else member.host,
    }


def _member_json(member: StreamsMember) -> Json:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "process_id": member.process_id,
        "member_epoch": member.member_epoch,
        "topology_epoch": member.topology_epoch,
        "tasks": _tasks_json(member.assignment),
        "target_tasks": _tasks_json(member.target_assignment),
    }


def _tasks_json(tasks: StreamsTasks) -> Json:
    return {"active": tasks.active, "standby": tasks.standby, "warmup": tasks.warmup}


def print_members(found: Json) -> None:
    columns = ["MEMBER", "CLIENT", "HOST", "PROCESS", "EPOCH", "ACTIVE", "STANDBY"]
    cells: list[list[object]] = []
    for member in found["members"]:
        line: list[object] = [member[name] for name in ("member_id", "client_id", "host", "process_id", "member_epoch")]
        cells.append([*line, *(_tasks_cell(member, role) for role in ("active", "standby"))])
    print_table(columns, cells, right=("EPOCH",))
    click.echo()


def _tasks_cell(member: Json, role: str) -> object:
    """What the member has, and what it is to have where that is something else."""
    has, target = tasks_text(member["tasks"][role]), tasks_text(member["target_tasks"][role])
    return has if has == target else Styled(f"{has} → {target}", fg="yellow")


def tasks_text(tasks: dict[str, list[int]]) -> str:
    """0_0 0_1 1_0, as Kafka Streams names tasks."""
    return " ".join(f"{name}_{index}" for name, indexes in sorted(tasks.items()) for index in sorted(indexes)) or "-"
