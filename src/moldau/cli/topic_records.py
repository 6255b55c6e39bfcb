"""`moldau topic delete-records|truncate-to`: deletes the oldest records of partitions."""

from __future__ import annotations

import click

from moldau.cli import positions
from moldau.cli.completion import complete_topics
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import Styled, finish, plural, print_table, say
from moldau.cli.positions import Position, check_partitions, parse_partitions, parse_position
from moldau.client.admin import Admin
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import TopicPartition
from moldau.protocol.errors import OFFSET_OUT_OF_RANGE

Offsets = dict[TopicPartition, int]


@click.command("delete-records")
@click.argument("name", shell_complete=complete_topics)
@click.argument("places", nargs=-1, required=True, metavar="PARTITION:OFFSET...")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@format_option
@connected
def delete_records(
    connection: Connection, name: str, places: tuple[str, ...], dry_run: bool, output_format: str
) -> None:
    """Delete the records before an offset, partition by partition.

    OFFSET is the first record that stays; `end` deletes all there are. Offsets are never used again.

    \b
    Examples:
      moldau topic delete-records orders 0:1500 1:1720
      moldau topic delete-records orders 3:end
    """
    wanted = dict(_parse_place(text) for text in places)
    with open_admin(connection) as admin:
        check_partitions(name, [item.partition for item in admin.partitions_of(name)], list(wanted))
        keys = [TopicPartition(name, partition) for partition in wanted]
        starts, ends = _offsets(admin, keys, EARLIEST), _offsets(admin, keys, LATEST)
        before = {key: ends[key] if (place := wanted[key.partition]) is None else place for key in keys}
        _delete(admin, before, starts, ends, dry_run, output_format)


def _parse_place(text: str) -> tuple[int, int | None]:
    partition, colon, offset = text.partition(":")
    if not colon or not partition.isdigit() or not (offset.isdigit() or offset == "end"):
        raise click.UsageError(f"Write places as PARTITION:OFFSET, such as 0:1500 or 3:end; not {text!r}.")
    return int(partition), None if offset == "end" else int(offset)


@click.command("truncate-to", context_settings={"ignore_unknown_options": True})
@click.argument("name", shell_complete=complete_topics)
@click.argument("place", metavar="WHERE")
@click.option("-p", "--partitions", metavar="N[,N...]", help="Only these partitions. Default: all.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@format_option
@connected
def truncate_to(
    connection: Connection, name: str, place: str, partitions: str | None, dry_run: bool, output_format: str
) -> None:
    """Delete everything before WHERE in all partitions of a topic.

    WHERE is an offset, -N to keep the last N offsets of each partition, @TIME to keep what is not older
    (2026-01-31T12:00:00, or @-1h for the last hour), or end to delete all.

    \b
    Examples:
      moldau topic truncate-to orders @-7d
      moldau topic truncate-to orders -1000 --dry-run
      moldau topic truncate-to orders end
    """
    where = parse_position("WHERE", place)
    with open_admin(connection) as admin:
        there = [item.partition for item in admin.partitions_of(name)]
        chosen = there if partitions is None else parse_partitions(partitions)
        check_partitions(name, there, chosen)
        keys = [TopicPartition(name, partition) for partition in chosen]
        starts, ends = _offsets(admin, keys, EARLIEST), _offsets(admin, keys, LATEST)
        before = {key: min(max(at, starts[key]), ends[key]) for key, at in _resolve(admin, where, starts, ends).items()}
        _delete(admin, before, starts, ends, dry_run, output_format)


def _resolve(admin: Admin, where: Position, starts: Offsets, ends: Offsets) -> Offsets:
    """The first offset that stays, in each partition."""
    if where.kind == positions.TIME:
        found = _offsets(admin, list(ends), where.number)
        return {key: ends[key] if found[key] < 0 else found[key] for key in ends}
    if where.kind == positions.LAST:
        return {key: end - where.number for key, end in ends.items()}
    if where.kind == positions.AT:
        return dict.fromkeys(ends, where.number)
    return dict(ends) if where.kind == positions.END else dict(starts)


def _offsets(admin: Admin, keys: list[TopicPartition], which: int) -> Offsets:
    return {key: outcome.get().offset for key, outcome in admin.list_offsets(dict.fromkeys(keys, which)).items()}


def _too_far(end: int) -> str:
    return f"The partition ends at {end}; `end` deletes all of it."


def _delete(admin: Admin, before: Offsets, starts: Offsets, ends: Offsets, dry_run: bool, output_format: str) -> None:
    changes = {key: offset for key, offset in before.items() if offset > starts[key]}
    outcomes = {} if dry_run or not changes else admin.delete_records(changes)
    rows: list[dict[str, object]] = []
    cells: list[tuple[object, ...]] = []
    failed = False
    gone = 0
    for key in sorted(before):
        outcome = outcomes.get(key)
        error = None if outcome is None else outcome.error
        start = starts[key] if outcome is None or error is not None else outcome.get()
        if dry_run:
            start = max(starts[key], before[key])
        row: dict[str, object] = {"partition": key.partition, "start_before": starts[key], "start": start}
        note = ""
        if error is not None:
            failed = True
            note = _too_far(ends[key]) if error.code == OFFSET_OUT_OF_RANGE else explain(error) or error.message
            row.update(error=error.name, message=note)
        elif dry_run and before[key] > ends[key]:
            failed = True
            note = _too_far(ends[key])
            row.update(error="OFFSET_OUT_OF_RANGE", message=note)
        else:
            gone += start - starts[key]
        rows.append({**row, "end": ends[key], "deleted_offsets": start - starts[key]})
        cells.append((key.partition, starts[key], start, ends[key], f"{start - starts[key]:,}", Styled(note, fg="red")))
    if output_format == "table":
        print_table(
            ("PARTITION", "START WAS", "START", "END", "DELETED", ""),
            cells,
            right=("PARTITION", "START WAS", "START", "END", "DELETED"),
        )
        verb = "would be" if dry_run else "was" if gone == 1 else "were"
        say(output_format, f"\n{plural(gone, 'offset')} {verb} deleted.")
    finish(output_format, rows, failed)
