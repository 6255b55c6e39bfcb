"""A share group for people and programs: state, offsets and lag by partition, members; while watched, its speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.explain import explain
from moldau.cli.group_view import STATE_COLOURS, Json, Pace, assignment_text, bars, by_topic, lag_cell, or_dash
from moldau.cli.output import Styled, print_fields, print_table, print_title
from moldau.facts.share_progress import ShareRow, progress_of

if TYPE_CHECKING:
    from moldau.client.admin import GroupDescription

RIGHT = ("PARTITION", "START", "END", "LAG", "IN FLIGHT", "DONE/S", "WRITTEN/S", "DONE IN", "EPOCH", "PARTITIONS")


def share_json(group: GroupDescription, rows: list[ShareRow]) -> Json:
    """A share group as `--format json` has it."""
    progress = progress_of(rows)
    where = group.coordinator
    return {
        "group_id": group.group_id,
        "type": group.type,
        "state": group.state,
        "coordinator": {"id": where.id, "host": where.host, "port": where.port},
        "assignor": group.assignor or None,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "lag": progress.lag,
        "in_flight": progress.in_flight,
        "offsets": [row_json(row) for row in rows],
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack_id": member.rack_id,
                "member_epoch": member.member_epoch,
                "subscribed_topics": member.subscribed_topics,
                "assignment": by_topic(member.assignment),
            }
            for member in group.members
        ],
    }


def row_json(row: ShareRow) -> Json:
    found: Json = {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "start_offset": row.start_offset,
        "leader_epoch": row.leader_epoch,
        "end_offset": row.end_offset,
        "lag": row.lag,
        "in_flight": row.in_flight,
    }
    if row.error is not None:
        found |= {"error": row.error.name, "message": explain(row.error) or row.error.message}
    return found


class SharePace(Pace):
    """How fast a group gets done with records: those behind its start offset that are done count too."""

    def look(self, found: Json, now_s: float | None = None) -> None:
        rows = []
        for row in found["offsets"]:
            known = row["end_offset"] is not None and row["lag"] is not None
            rows.append({**row, "offset": row["end_offset"] - row["lag"] if known else None})
        super().look({**found, "offsets": rows}, now_s)


def print_share_group(found: Json, offsets: bool, members: bool, lagging: bool, pace: Pace | None) -> None:
    print_title(found["group_id"])
    where = found["coordinator"]
    lag = "unknown" if found["lag"] is None else f"{found['lag']:,}"
    if pace is not None and len(pace.history) > 1:
        lag = f"{lag:<12} {bars(pace.history)}"
    fields: list[tuple[str, object]] = [
        ("state", Styled(found["state"], fg=STATE_COLOURS.get(found["state"], "yellow"))),
        ("coordinator", f"{where['host']}:{where['port']} (broker {where['id']})"),
        ("assignor", found["assignor"] or "none"),
        ("epochs", f"group {found['group_epoch']}, assignment {found['assignment_epoch']}"),
        ("members", len(found["members"])),
        ("lag", lag),
    ]
    if found["in_flight"] is not None:
        fields.append(("in flight", f"{found['in_flight']:,}"))
    print_fields(fields)
    click.echo()
    if offsets:
        _print_offsets(found, lagging, pace)
    if members:
        _print_members(found)


def _print_offsets(found: Json, lagging: bool, pace: Pace | None) -> None:
    rows = [row for row in found["offsets"] if not lagging or row["lag"] is None or row["lag"] > 0]
    if not rows:
        click.echo("Nothing is left in any partition." if found["offsets"] else "Nothing was read yet.")
        click.echo()
        return
    print_rows([], [([], row) for row in rows], pace)
    click.echo()


def print_rows(columns: list[str], rows: list[tuple[list[object], Json]], pace: Pace | None = None) -> None:
    """Partitions, each behind cells of the caller's own; the locked records only where somebody knows them."""
    counts = any(row["in_flight"] is not None for _, row in rows)
    titles = [*columns, "TOPIC", "PARTITION", "START", "END", "LAG", *(["IN FLIGHT"] if counts else [])]
    titles += ["DONE/S", "WRITTEN/S", "DONE IN"] if pace is not None else []
    cells = []
    for own, row in rows:
        line = [*own, row["topic"], row["partition"], or_dash(row["start_offset"]), or_dash(row["end_offset"])]
        line += [lag_cell(row), *([or_dash(row["in_flight"])] if counts else [])]
        line += pace.cells(row) if pace is not None else ()
        cells.append(line)
    print_table(titles, cells, right=RIGHT)


def _print_members(found: Json) -> None:
    if not found["members"]:
        click.echo("There are no members.")
        click.echo()
        return
    cells = []
    for member in found["members"]:
        count = sum(len(indexes) for indexes in member["assignment"].values())
        line = [member["member_id"], member["client_id"], member["host"], or_dash(member["member_epoch"]), count]
        cells.append([*line, assignment_text(member["assignment"]) or "-"])
    print_table(("MEMBER", "CLIENT", "HOST", "EPOCH", "PARTITIONS", "ASSIGNMENT"), cells, right=RIGHT)
    click.echo()
