"""`kafka-consumer-groups --describe`: offsets and lag, members, or the state of groups, in Kafka's columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.kafka.consumer_groups_calls import (
    DESCRIBE,
    committed_offsets,
    describe_groups,
    describe_topics,
    described,
    list_offsets,
)
from moldau.cli.kafka.consumer_groups_text import STATES, pad, print_error, width_of
from moldau.cli.kafka.java_failures import executed
from moldau.cli.kafka.java_order import hash_map_order
from moldau.cli.kafka.options import JavaFailure, Options
from moldau.client.offsets import LATEST
from moldau.facts.group_lag import LagRow, lag_rows, partitions_of_group

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription, MemberDescription
    from moldau.client.results import TopicPartition

MISSING = "-"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
WIDTH = 15
INSTANCE_WIDTH = 17
ASSIGNMENT_WIDTH = 20
COORDINATOR_WIDTH = 25

OFFSET_COLUMNS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "LEADER-EPOCH",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
LEADER_EPOCH = 3


def describe(admin: Admin, options: Options, group_ids: list[str], timeout_ms: int) -> None:
    found = executed(DESCRIBE, lambda: describe_groups(admin, group_ids, timeout_ms))
    # The first failure ends it, before anything is shown.
    groups = {
        group_id: executed("", lambda group_id=group_id: described(group_id, found[group_id]))  # type: ignore[misc]
        for group_id in found
    }
    verbose = options.has("verbose")
    if options.has("members"):
        for group_id in _sorted(groups):
            _print_members(groups[group_id], verbose)
    elif options.has("state"):
        for group_id in _sorted(groups):
            _print_state(groups[group_id], verbose)
    else:
        rows = _collect_offsets(admin, groups, timeout_ms)
        for group_id in _sorted(groups):
            _print_offsets(groups[group_id], rows[group_id], verbose)


def _sorted(names: Iterable[str]) -> list[str]:
    """As Java compares strings: by their UTF-16 units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be"))


def _is_worth_showing(group: GroupDescription, rows_count: int) -> bool:
    """Says what is special about the group; False when there is nothing more to show."""
    state = group.state
    if state == "Dead":
        print_error(f"Consumer group '{group.group_id}' does not exist.")
        return False
    sys.stdout.flush()
    if state == "Empty":
        sys.stderr.write(f"\nConsumer group '{group.group_id}' has no active members.\n")
    elif state in REBALANCING:
        sys.stderr.write(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.\n")
    elif state not in STATES:
        raise JavaFailure(
            "org.apache.kafka.common.KafkaException", "Expected a valid consumer group state, but found 'Unknown'."
        )
    return rows_count > 0


def _collect_offsets(admin: Admin, groups: dict[str, GroupDescription], timeout_ms: int) -> dict[str, list[LagRow]]:
    """The rows of all groups, from one question of each kind."""
    committed = committed_offsets(admin, hash_map_order(groups), timeout_ms)
    partitions = {
        partition for group_id, group in groups.items() for partition in partitions_of_group(group, committed[group_id])
    }
    topics = describe_topics(admin, (partition.topic for partition in partitions), timeout_ms)
    led = [
        partition
        for partition in partitions
        if (known := topics[partition.topic].partitions.get(partition.partition)) is None or known.leader >= 0
    ]
    ends: dict[TopicPartition, int | None] = {**list_offsets(admin, led, LATEST, timeout_ms)}
    return {group_id: lag_rows(group, committed[group_id], ends) for group_id, group in groups.items()}


def _print_offsets(group: GroupDescription, rows: list[LagRow], verbose: bool) -> None:
    if not _is_worth_showing(group, len(rows)):
        return
    table = [OFFSET_COLUMNS, *(_offset_cells(group.group_id, row) for row in rows)]
    body = table[1:]
    widths = [
        _widest(WIDTH, (row[0] for row in body)),
        _widest(WIDTH, (row[1] for row in body)),
        10,
        WIDTH,
        WIDTH,
        WIDTH,
        WIDTH,
        _widest(WIDTH, (row[7] for row in body)),
        _widest(WIDTH, (row[8] for row in body)),
        0,
    ]
    print()
    for cells in table:
        kept = [index for index in range(len(cells)) if verbose or index != LEADER_EPOCH]
        print(_line([cells[index] for index in kept], [widths[index] for index in kept]))


def _offset_cells(group_id: str, row: LagRow) -> tuple[str, ...]:
    member = row.member
    return (
        group_id,
        row.partition.topic,
        str(row.partition.partition),
        _or_missing(row.leader_epoch),
        _or_missing(row.offset),
        _or_missing(row.end_offset),
        _or_missing(row.lag),
        MISSING if member is None else member.member_id,
        MISSING if member is None else member.host,
        MISSING if member is None else member.client_id,
    )


def _print_members(group: GroupDescription, verbose: bool) -> None:
    members = group.members
    # Without members the columns are shown all the same.
    measured = members if _is_worth_showing(group, len(members)) else []
    with_instance = any(member.group_instance_id for member in measured)
    migrating = {member.is_upgraded for member in measured} >= {True, False}
    columns = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    columns += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]
    body = [_member_cells(group, member) for member in members]
    least = [WIDTH, WIDTH, INSTANCE_WIDTH, WIDTH, WIDTH, WIDTH, WIDTH, ASSIGNMENT_WIDTH, WIDTH, ASSIGNMENT_WIDTH, 0]
    measures = {0, 1, 2, 3, 4, 7, 9} if measured else set()
    widths = [
        _widest(width, (row[index] for row in body)) if index in measures else width
        for index, width in enumerate(least)
    ]
    kept = [0, 1, *([2] if with_instance else []), 3, 4, 5]
    kept += [6, 7, 8, 9, *([10] if migrating else [])] if verbose else []
    print()
    for cells in [columns, *body]:
        line = _line([cells[index] for index in kept], [widths[index] for index in kept])
        # The short form has a blank at the end of each line.
        print(line if verbose else f"{line} ")


def _member_cells(group: GroupDescription, member: MemberDescription) -> list[str]:
    return [
        group.group_id,
        member.member_id,
        member.group_instance_id or "",
        member.host,
        member.client_id,
        str(len(member.assignment)),
        _or_missing(member.member_epoch),
        assignment_text(member.assignment),
        _or_missing(group.assignment_epoch),
        assignment_text(member.target_assignment or []),
        MISSING if member.is_upgraded is None else str(member.is_upgraded).lower(),
    ]


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """orders:0,1;payments:2."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    texts = [f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in topics.items()]
    return ";".join(_sorted(texts)) or MISSING


def _print_state(group: GroupDescription, verbose: bool) -> None:
    if not _is_worth_showing(group, 1):
        return
    where = group.coordinator
    coordinator = f"{where.host}:{where.port}  ({where.id})"
    columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    columns += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
    cells = [group.group_id, coordinator, group.assignor or MISSING, group.state]
    cells += [_or_missing(group.group_epoch), _or_missing(group.assignment_epoch), str(len(group.members))]
    widths = [_widest(WIDTH, [group.group_id]), _widest(COORDINATOR_WIDTH, [coordinator]), 20, 20, 15, 25, 0]
    kept = range(7) if verbose else (0, 1, 2, 3, 6)
    print()
    for row in (columns, cells):
        print(_line([row[index] for index in kept], [widths[index] for index in kept]))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(pad(cell, width) for cell, width in zip(cells, widths, strict=True))


def _widest(least: int, texts: Iterable[str]) -> int:
    return max([least, *map(width_of, texts)])


def _or_missing(value: int | None) -> str:
    return MISSING if value is None else str(value)
