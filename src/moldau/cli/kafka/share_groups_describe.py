"""`kafka-share-groups --describe`: start offsets and lag, members, or the state of share groups, in Kafka's columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.kafka.consumer_groups_text import pad, print_error, width_of
from moldau.cli.kafka.options import Options
from moldau.cli.kafka.share_groups_calls import StartOffsets, describe_groups, start_offsets

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription
    from moldau.client.results import TopicPartition

MISSING = "-"
WIDTH = 15
COORDINATOR_WIDTH = 25


def describe(admin: Admin, options: Options, group_ids: list[str], timeout_ms: int) -> None:
    # The first failure ends it, before anything is shown.
    groups = describe_groups(admin, group_ids, timeout_ms) if group_ids else {}
    verbose = options.has("verbose")
    in_order = sorted(groups, key=lambda name: name.encode("utf-16-be"))
    if options.has("members"):
        for group_id in in_order:
            _print_members(groups[group_id], verbose)
    elif options.has("state"):
        for group_id in in_order:
            _print_state(groups[group_id], verbose)
    else:
        offsets = start_offsets(admin, groups, timeout_ms)
        for group_id in in_order:
            _print_offsets(groups[group_id], offsets[group_id], verbose)


def _print_offsets(group: GroupDescription, offsets: StartOffsets, verbose: bool) -> None:
    if _is_dead(group):
        return
    if not offsets:
        print(f"\nShare group '{group.group_id}' has no offset information.")
        return
    rows = []
    for partition, found in sorted(offsets.items()):
        epoch, start, lag = (None, None, None) if found is None else (found.leader_epoch, found.start_offset, found.lag)
        known_epoch = None if epoch is None or epoch < 0 else epoch
        cells = [group.group_id, partition.topic, str(partition.partition)]
        rows.append([*cells, *([_or_missing(known_epoch)] if verbose else []), _or_missing(start), _or_missing(lag)])
    columns = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "START-OFFSET", "LAG"]
    topic_width = _widest(WIDTH, (row[1] for row in rows))
    widths = [_widest(WIDTH, [group.group_id]), topic_width, 10, *([13] if verbose else []), 13, 0]
    _print_table(columns, rows, widths)


def _print_members(group: GroupDescription, verbose: bool) -> None:
    if _is_dead(group) or _is_empty(group):
        return
    rows = []
    for member in sorted(group.members, key=lambda member: member.member_id):
        cells = [group.group_id, member.member_id, member.host, member.client_id, str(len(member.assignment))]
        cells += [_or_missing(member.member_epoch)] if verbose else []
        rows.append([*cells, assignment_text(member.assignment)])
    columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    columns += [*(["MEMBER-EPOCH"] if verbose else []), "ASSIGNMENT"]
    widths = [_widest(WIDTH, (row[index] for row in rows)) for index in range(4)]
    _print_table(columns, rows, [*widths, 12, *([13] if verbose else []), 0])


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """orders:0,1;payments:2."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return ";".join(f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in topics.items())


def _print_state(group: GroupDescription, verbose: bool) -> None:
    if _is_dead(group):
        return
    _is_empty(group)
    where = group.coordinator
    coordinator = f"{where.host}:{where.port}  ({where.id})"
    epochs = [_or_missing(group.group_epoch), _or_missing(group.assignment_epoch)] if verbose else []
    cells = [group.group_id, coordinator, group.state, *epochs, str(len(group.members))]
    columns = ["GROUP", "COORDINATOR (ID)", "STATE", *(["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else [])]
    widths = [_widest(WIDTH, [group.group_id]), _widest(COORDINATOR_WIDTH, [coordinator]), WIDTH]
    _print_table([*columns, "#MEMBERS"], [cells], [*widths, *([12, 17] if verbose else []), 0])


def _is_dead(group: GroupDescription) -> bool:
    if group.state == "Dead":
        print_error(f"Share group '{group.group_id}' does not exist.")
        return True
    return False


def _is_empty(group: GroupDescription) -> bool:
    if group.state != "Empty":
        return False
    sys.stdout.flush()
    sys.stderr.write(f"\nShare group '{group.group_id}' has no active members.\n")
    return True


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
    print()
    for cells in (columns, *rows):
        print(" ".join(pad(cell, width) for cell, width in zip(cells, widths, strict=True)))


def _widest(least: int, texts: Iterable[str]) -> int:
    return max([least, *map(width_of, texts)])


def _or_missing(value: int | None) -> str:
    return MISSING if value is None else str(value)
