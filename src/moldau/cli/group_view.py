"""A group of consumers for people and programs: state, lag by partition, members; while watched, how fast it goes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from moldau.cli.output import Styled, print_fields, print_table, print_title
from moldau.cli.streams_group_view import print_members
from moldau.client.errors import ClientError
from moldau.facts.group_lag import LagRow, fetch_committed, fetch_end_offsets, lag_rows, partitions_of_group, total_lag

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription
    from moldau.client.results import TopicPartition

Json = dict[str, Any]

STATE_COLOURS = {"Stable": "green", "Empty": "yellow", "Dead": "red"}
_BARS = "▁▂▃▄▅▆▇█"
HISTORY_MAX = 40
WINDOW_S = 15.0


def collect(admin: Admin, groups: Iterable[GroupDescription]) -> dict[str, Json | ClientError]:
    """Everything about each group, from one question of each kind; or why its offsets are not known."""
    described = {group.group_id: group for group in groups}
    committed = fetch_committed(admin, described)
    partitions: set[TopicPartition] = set()
    for group_id, offsets in committed.items():
        if not isinstance(offsets, ClientError):
            partitions.update(partitions_of_group(described[group_id], offsets))
    ends = fetch_end_offsets(admin, partitions)
    return {
        group_id: offsets
        if isinstance(offsets, ClientError)
        else group_json(described[group_id], lag_rows(described[group_id], offsets, ends))
        for group_id, offsets in committed.items()
    }


def group_json(group: GroupDescription, rows: list[LagRow]) -> Json:
    """A group as `--format json` has it."""
    return {
        "group_id": group.group_id,
        "type": group.type,
        "state": group.state,
        "coordinator": {"id": group.coordinator.id, "host": group.coordinator.host, "port": group.coordinator.port},
        "assignor": group.assignor or None,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "lag": total_lag(rows),
        "offsets": [_offset_json(row) for row in rows],
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack_id": member.rack_id,
                "member_epoch": member.member_epoch,
                "upgraded": member.is_upgraded,
                "subscribed_topics": member.subscribed_topics,
                "subscribed_regex": member.subscribed_regex,
                "assignment": by_topic(member.assignment),
                "target_assignment": by_topic(member.target_assignment),
            }
            for member in group.members
        ],
    }


def _offset_json(row: LagRow) -> Json:
    return {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "offset": row.offset,
        "leader_epoch": row.leader_epoch,
        "metadata": None if row.committed is None else row.committed.metadata,
        "end_offset": row.end_offset,
        "lag": row.lag,
        "member_id": None if row.member is None else row.member.member_id,
        "client_id": None if row.member is None else row.member.client_id,
        "host": None if row.member is None else row.member.host,
    }


def by_topic(partitions: Sequence[TopicPartition] | None) -> dict[str, list[int]] | None:
    if partitions is None:
        return None
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


class Pace:
    """How fast a group reads and others write, over the last seconds: commits come in steps of some seconds."""

    def __init__(self) -> None:
        # By partition: when, committed offset, end offset.
        self._seen: dict[tuple[str, int], list[tuple[float, int, int]]] = {}
        self.history: list[int] = []

    def look(self, found: Json, now_s: float | None = None) -> None:
        now_s = time.monotonic() if now_s is None else now_s
        self.history = [*self.history, found["lag"] or 0][-HISTORY_MAX:]
        for row in found["offsets"]:
            if row["offset"] is not None and row["end_offset"] is not None:
                seen = self._seen.setdefault((row["topic"], row["partition"]), [])
                seen.append((now_s, row["offset"], row["end_offset"]))
                while len(seen) > 2 and now_s - seen[0][0] > WINDOW_S:
                    seen.pop(0)

    def speeds(self, row: Json) -> tuple[float, float] | None:
        """Records a second that the group has read and that were written; None before the second look."""
        seen = self._seen.get((row["topic"], row["partition"]), [])
        if len(seen) < 2 or seen[-1][0] <= seen[0][0]:
            return None
        (begin_s, offset, end), (now_s, last_offset, last_end) = seen[0], seen[-1]
        passed_s = now_s - begin_s
        return max(0.0, (last_offset - offset) / passed_s), max(0.0, (last_end - end) / passed_s)

    def cells(self, row: Json) -> tuple[str, str, str]:
        """Both speeds, and when the group has caught up."""
        found = self.speeds(row)
        if found is None:
            return "", "", ""
        return _speed_text(found[0]), _speed_text(found[1]), _left_text(row["lag"], found[0] - found[1])


def _speed_text(speed: float) -> str:
    return f"{speed:,.0f}" if speed >= 10 or speed == 0 else f"{speed:.1f}"


def _left_text(lag: int | None, gain: float) -> str:
    if not lag:
        return ""
    if gain <= 0:
        return "never"
    seconds = lag / gain
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def bars(history: Sequence[int]) -> str:
    """A small picture of numbers over time."""
    highest = max(history, default=0)
    if highest <= 0:
        return _BARS[0] * len(history)
    return "".join(_BARS[min(len(_BARS) - 1, number * len(_BARS) // (highest + 1))] for number in history)


def print_group(found: Json, offsets: bool, members: bool, lagging: bool, pace: Pace | None) -> None:
    print_title(found["group_id"])
    where = found["coordinator"]
    lag = "unknown" if found["lag"] is None else f"{found['lag']:,}"
    if pace is not None and len(pace.history) > 1:
        lag = f"{lag:<12} {bars(pace.history)}"
    colour = STATE_COLOURS.get(found["state"], "yellow")
    fields: list[tuple[str, object]] = [
        ("state", Styled(found["state"], fg=colour)),
        ("type", found["type"]),
        ("coordinator", f"{where['host']}:{where['port']} (broker {where['id']})"),
        ("assignor", found["assignor"] or "none"),
        ("members", len(found["members"])),
        ("lag", lag),
    ]
    if found["group_epoch"] is not None:
        fields.insert(4, ("epochs", f"group {found['group_epoch']}, assignment {found['assignment_epoch']}"))
    print_fields(fields)
    click.echo()
    if offsets:
        _print_offsets(found, lagging, pace)
    if members:
        _print_members(found)


def _print_offsets(found: Json, lagging: bool, pace: Pace | None) -> None:
    rows = [row for row in found["offsets"] if not lagging or _is_behind(row)]
    if not rows:
        click.echo("Every partition is read to its end." if found["offsets"] else "No offsets are committed.")
        click.echo()
        return
    columns = ["TOPIC", "PARTITION", "CURRENT", "END", "LAG"]
    columns += ["READ/S", "WRITTEN/S", "DONE IN"] if pace is not None else []
    columns += ["CLIENT", "HOST", "MEMBER"]
    cells = []
    for row in rows:
        line = [row["topic"], row["partition"], or_dash(row["offset"]), or_dash(row["end_offset"]), lag_cell(row)]
        line += pace.cells(row) if pace is not None else ()
        line += [or_dash(row["client_id"]), or_dash(row["host"]), or_dash(row["member_id"])]
        cells.append(line)
    right = ("PARTITION", "CURRENT", "END", "LAG", "READ/S", "WRITTEN/S", "DONE IN")
    print_table(columns, cells, right=right)
    click.echo()


def _is_behind(row: Json) -> bool:
    """Where nothing is committed yet, everything may be left to read."""
    return bool(row["end_offset"] != 0 if row["lag"] is None else row["lag"] > 0)


def lag_cell(row: Json) -> object:
    if row["lag"] is None:
        return "-"
    return Styled(str(row["lag"]), fg="yellow" if row["lag"] > 0 else None)


def _print_members(found: Json) -> None:
    if not found["members"]:
        click.echo("There are no members.")
        click.echo()
        return
    if found["type"] == "streams":
        print_members(found)
        return
    newer = found["type"] == "consumer"
    columns = ["MEMBER", "INSTANCE", "CLIENT", "HOST", *(["EPOCH"] if newer else []), "PARTITIONS", "ASSIGNMENT"]
    cells = []
    for member in found["members"]:
        line = [member["member_id"], or_dash(member["group_instance_id"]), member["client_id"], member["host"]]
        line += [or_dash(member["member_epoch"])] if newer else []
        count = sum(len(indexes) for indexes in member["assignment"].values())
        line += [count, _assignment_cell(member)]
        cells.append(line)
    print_table(columns, cells, right=("EPOCH", "PARTITIONS"))
    click.echo()


def _assignment_cell(member: Json) -> object:
    """What the member has, and what it is to have where that is something else."""
    has, target = assignment_text(member["assignment"]), member["target_assignment"]
    if target is None or target == member["assignment"]:
        return has or "-"
    return Styled(f"{has or '-'} → {assignment_text(target) or '-'}", fg="yellow")


def assignment_text(topics: dict[str, list[int]]) -> str:
    """orders:0-3,7 payments:0."""
    return " ".join(f"{topic}:{_ranges(indexes)}" for topic, indexes in topics.items())


def _ranges(numbers: Sequence[int]) -> str:
    texts: list[str] = []
    start = previous = -2
    for number in [*sorted(numbers), -2]:
        if number == previous + 1:
            previous = number
            continue
        if start >= 0:
            texts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = number
    return ",".join(texts)


def or_dash(value: object) -> object:
    return "-" if value is None or value == "" else value
