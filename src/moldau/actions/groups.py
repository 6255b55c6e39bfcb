"""Groups of all kinds: the list, the lag of those that a page shows, and one group with members and offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.actions.calls import Call, reading
from moldau.actions.group_lag import SHARE, STREAMS, lag_of, lags_of_groups, record_times
from moldau.actions.refusals import error_row
from moldau.actions.scope import unknown_group
from moldau.actions.viewer import Viewer
from moldau.client.admin import Admin, GroupDescription, GroupListing, StreamsGroupDescription, StreamsTasks
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition
from moldau.facts.group_lag import committed_of, fetch_end_offsets
from moldau.facts.share_progress import ShareRow, rows_of_groups

CLASSIC = "classic"
IDS_MAX = 200
# A place in a partition and who reads it: (offset, end, member, leader epoch, metadata).
Row = dict[str, Any]


async def list_groups(call: Call) -> object:
    """One page; lag comes with lags()."""
    listed = await call.viewer.groups.get()
    kind, state = call.text("type", ""), call.text("state", "")
    sort = call.text("sort", "id")
    keys = {"type": kind_of, "state": lambda group: group.state}
    page = call.page_of(
        [
            group
            for group in listed.groups
            if (not kind or kind_of(group) == kind) and (not state or group.state == state)
        ],
        name=lambda group: group.group_id,
        key=keys.get(sort),
    )
    return page.around([group_row(group) for group in page.rows]) | {
        "types": _counts(kind_of(group) for group in listed.groups),
        "states": _counts(group.state for group in listed.groups),
        "errors": {str(broker_id): error_row(error) for broker_id, error in listed.errors.items()},
    }


def kind_of(group: GroupListing) -> str:
    """Brokers before 3.8 do not tell: their groups are classic ones."""
    return group.type.lower() or CLASSIC


def group_row(group: GroupListing) -> dict[str, object]:
    return {
        "id": group.group_id,
        "type": kind_of(group),
        "state": group.state,
        "protocol_type": group.protocol_type,
        "is_simple": group.is_simple,
    }


def _counts(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


async def lags(call: Call) -> object:
    """Lag in records and seconds of the groups that a page shows."""
    listing = {group.group_id: kind_of(group) for group in (await call.viewer.groups.get()).groups}
    wanted = {group_id: listing[group_id] for group_id in call.texts("id")[:IDS_MAX] if group_id in listing}
    return await lags_of_groups(call.viewer, wanted) if wanted else {}


async def show_group(call: Call) -> object:
    """Members, what each has, and how far the group is in each partition."""
    group_id = call.text("id")
    kind = await find_kind(call.viewer, group_id)
    if kind == SHARE:
        return await _show_share(call.viewer, group_id)
    if kind == STREAMS:
        return await _show_streams(call.viewer, group_id)
    return await _show_consumers(call.viewer, group_id)


async def find_kind(viewer: Viewer, group_id: str) -> str:
    """The kind of a group; raises where there is none."""
    for listed in (await viewer.groups.get(), await viewer.groups.get_new()):
        for group in listed.groups:
            if group.group_id == group_id:
                return kind_of(group)
    raise unknown_group(group_id)


async def _show_consumers(viewer: Viewer, group_id: str) -> dict[str, object]:
    def work(admin: Admin) -> tuple[GroupDescription | ClientError, list[Row]]:
        outcome = admin.describe_consumer_groups([group_id])[group_id]
        committed = committed_of(admin, group_id)
        members = [] if outcome.error is not None else outcome.get().members
        owners = {each: member.member_id for member in members for each in member.assignment}
        every = [each for each in sorted({*owners, *committed}) if viewer.scope.has_topic(each.topic)]
        ends = fetch_end_offsets(admin, every)
        rows = []
        for each in every:
            found = committed.get(each)
            rows.append(
                {
                    "partition": each,
                    "offset": None if found is None else found.offset,
                    "end": ends.get(each),
                    "member": owners.get(each),
                    "metadata": "" if found is None else found.metadata,
                    "leader_epoch": None if found is None or found.leader_epoch < 0 else found.leader_epoch,
                }
            )
        return outcome.error or outcome.get(), rows

    described, rows = await viewer.clients.ask(work)
    if isinstance(described, ClientError):
        # A group of Connect workers, say: it has members, but not such as read partitions.
        return await _show_classic(viewer, group_id, rows)
    return {
        **_group_head(described),
        "members": [
            {
                "id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack": member.rack_id,
                "epoch": member.member_epoch,
                "topics": viewer.scope.topics_among(member.subscribed_topics or []),
                "regex": member.subscribed_regex if viewer.scope.has_all_topics else None,
                "assignment": _assigned(viewer, member.assignment),
                "target": None if member.target_assignment is None else _assigned(viewer, member.target_assignment),
            }
            for member in described.members
        ],
        "offsets": await _with_lag(viewer, rows),
    }


def _group_head(group: GroupDescription) -> dict[str, object]:
    return {
        "id": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.id,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "is_simple": group.is_simple,
    }


async def _show_classic(viewer: Viewer, group_id: str, rows: list[Row]) -> dict[str, object]:
    outcomes = await viewer.clients.ask(lambda admin: admin.describe_classic_groups([group_id]))
    group = outcomes[group_id].get()
    return {
        "id": group.group_id,
        "type": CLASSIC,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.protocol,
        "coordinator": group.coordinator.id,
        "epoch": None,
        "assignment_epoch": None,
        "is_simple": False,
        "members": [
            {
                "id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "assignment": {},
            }
            for member in group.members
        ],
        "offsets": await _with_lag(viewer, rows),
    }


async def _show_share(viewer: Viewer, group_id: str) -> dict[str, object]:
    def work(admin: Admin) -> tuple[GroupDescription, list[ShareRow] | ClientError]:
        return admin.describe_share_groups([group_id])[group_id].get(), rows_of_groups(admin, [group_id])[group_id]

    described, found = await viewer.clients.ask(work)
    shares = [] if isinstance(found, ClientError) else found
    shares = [row for row in shares if viewer.scope.has_topic(row.partition.topic)]
    rows: list[Row] = [
        {
            "partition": row.partition,
            "offset": row.start_offset,
            "end": row.end_offset,
            "member": None,
            "in_flight": row.in_flight,
            "share_lag": row.lag,
            "leader_epoch": row.leader_epoch,
        }
        for row in shares
    ]
    return {
        **_group_head(described),
        "members": [
            {
                "id": member.member_id,
                "instance_id": None,
                "client_id": member.client_id,
                "host": member.host,
                "rack": member.rack_id,
                "epoch": member.member_epoch,
                "topics": viewer.scope.topics_among(member.subscribed_topics or []),
                "assignment": _assigned(viewer, member.assignment),
            }
            for member in described.members
        ],
        "offsets": await _with_lag(viewer, rows),
        "offsets_error": error_row(found) if isinstance(found, ClientError) else None,
    }


async def _show_streams(viewer: Viewer, group_id: str) -> dict[str, object]:
    def work(admin: Admin) -> tuple[StreamsGroupDescription, list[Row]]:
        described = admin.describe_streams_groups([group_id])[group_id].get()
        every = committed_of(admin, group_id)
        committed = {each: found for each, found in every.items() if viewer.scope.has_topic(each.topic)}
        ends = fetch_end_offsets(admin, committed)
        rows = [
            {
                "partition": each,
                "offset": None if found is None else found.offset,
                "end": ends.get(each),
                "member": None,
            }
            for each, found in sorted(committed.items())
        ]
        return described, rows

    group, rows = await viewer.clients.ask(work)
    return {
        "id": group.group_id,
        "type": STREAMS,
        "state": group.state,
        "assignor": "",
        "coordinator": group.coordinator.id,
        "epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.topology_epoch,
        "is_simple": False,
        "subtopologies": [
            {
                "id": each.subtopology_id,
                "sources": viewer.scope.topics_among(each.source_topics),
                "sinks": viewer.scope.topics_among(each.repartition_sink_topics),
                "changelogs": viewer.scope.topics_among([topic.name for topic in each.state_changelog_topics]),
                "repartitions": viewer.scope.topics_among([topic.name for topic in each.repartition_source_topics]),
            }
            for each in group.subtopologies
        ],
        "members": [
            {
                "id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack": member.rack_id,
                "epoch": member.member_epoch,
                "process_id": member.process_id,
                "assignment": {},
                "tasks": _tasks(member.assignment),
            }
            for member in group.members
        ],
        "offsets": await _with_lag(viewer, rows),
    }


def _tasks(tasks: StreamsTasks) -> dict[str, dict[str, list[int]]]:
    return {"active": dict(tasks.active), "standby": dict(tasks.standby), "warmup": dict(tasks.warmup)}


def _assigned(viewer: Viewer, partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Of the topics that the viewer is shown."""
    return by_topic(each for each in partitions if viewer.scope.has_topic(each.topic))


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in sorted(partitions):
        found.setdefault(each.topic, []).append(each.partition)
    return found


async def _with_lag(viewer: Viewer, rows: list[Row]) -> list[dict[str, object]]:
    """The rows with lag in records and in seconds."""
    behind = {
        (row["partition"], row["offset"]): row["end"]
        for row in rows
        if row["offset"] is not None and row["end"] is not None and row["offset"] < row["end"]
    }
    times = await record_times(viewer, behind)
    now_ms = time.time_ns() // 1_000_000
    return [_offset_row(row, times, now_ms) for row in rows]


def _offset_row(row: Row, times: Mapping[tuple[TopicPartition, int], int], now_ms: int) -> dict[str, object]:
    each: TopicPartition = row["partition"]
    lag = lag_of(row["offset"], row["end"], times.get((each, row["offset"])), now_ms)
    # A share group has passed over records behind its start too: the coordinator counts them.
    records = row.get("share_lag") if row.get("share_lag") is not None else lag.records
    rest = {name: value for name, value in row.items() if name not in ("partition", "share_lag")}
    return {
        "topic": each.topic,
        **rest,
        "partition": each.partition,
        "lag": records,
        "lag_s": 0.0 if records == 0 else lag.seconds,
    }


ROUTES = [
    reading("/api/groups", list_groups),
    reading("/api/groups/lags", lags),
    reading("/api/group", show_group),
]
