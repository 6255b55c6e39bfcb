"""Tools that look at topics and at groups."""

from __future__ import annotations

from typing import Any

from moldau.actions.groups import IDS_MAX, lags, list_groups, show_group
from moldau.actions.topics import details_of_topics, groups_of_topic, list_topics, show_topic
from moldau.mcp.arguments import FLAG, TEXT, Argument
from moldau.mcp.cluster_tools import ALL_CONFIGS, config_rows
from moldau.mcp.tool import LIMIT, Asked, Tool, skipping

TOPIC = Argument("topic", TEXT, "The topic's name.", required=True)
GROUP = Argument("group", TEXT, "The group's id.", required=True)
OFTEN_EMPTY = ("member", "metadata", "leader_epoch", "in_flight")


async def list_all_topics(asked: Asked) -> dict[str, Any]:
    found, part = await asked.page(list_topics, sort=asked["sort"], descending=asked["descending"], internal=True)
    found.pop("internal", None)
    names = [row["name"] for row in found["rows"]]
    if asked["details"] and names:
        details = await asked.result(details_of_topics, name=names)
        for row in found["rows"]:
            more = details.get(row["name"], {})
            row |= {"records": more.get("records"), "bytes": more.get("size")}
    return asked.bounded(found, part)


async def describe_topic(asked: Asked) -> dict[str, Any]:
    """Partitions first: configs and the rest have what room they leave."""
    found = await asked.result(show_topic, name=asked["topic"])
    partitions, part = asked.rest("partitions", "skip", found.pop("rows"))
    configs = await config_rows(asked, "topic", asked["topic"], asked["all"])
    configs, config_part = asked.rest("configs", "skip_configs", configs)
    count = found.pop("partitions")
    result = {**found, "partition_count": count, "partitions": partitions, "configs": configs}
    return asked.bounded(result, part, config_part)


async def list_groups_of_topic(asked: Asked) -> dict[str, Any]:
    found = await asked.result(groups_of_topic, name=asked["topic"])
    if found["asked"] < found["of_groups"]:
        found["note"] = f"There are {found['of_groups']:,} groups; {found['asked']:,} of them were asked."
    found["rows"], part = asked.rest("rows", "skip", found["rows"])
    return asked.bounded(found, part)


async def list_all_groups(asked: Asked) -> dict[str, Any]:
    rows_max = IDS_MAX if asked["lag"] else None
    found, part = await asked.page(list_groups, rows_max, type=asked.get("type"), state=asked.get("state"))
    ids = [row["id"] for row in found["rows"]]
    if asked["lag"] and ids:
        known = await asked.result(lags, id=ids)
        for row in found["rows"]:
            of_group = known.get(row["id"], {})
            row |= {"lag_records": of_group.get("lag"), "lag_seconds": of_group.get("lag_s")}
            if of_group.get("error"):
                row["lag_error"] = of_group["error"]
    return asked.bounded(found, part)


async def describe_group(asked: Asked) -> dict[str, Any]:
    found = await asked.result(show_group, id=asked["group"])
    offsets, part = asked.rest("offsets", "skip", [_offset_row(row) for row in found["offsets"]])
    members, member_part = asked.rest("members", "skip_members", found["members"])
    records = [row["lag"] for row in found["offsets"] if row["lag"] is not None]
    seconds = [row["lag_s"] for row in found["offsets"] if row["lag_s"] is not None]
    head = {
        "lag_records": sum(records) if records else None,
        "lag_seconds": max(seconds, default=None),
        "member_count": len(found["members"]),
    }
    return asked.bounded({**found, **head, "offsets": offsets, "members": members}, part, member_part)


def _offset_row(row: dict[str, Any]) -> dict[str, Any]:
    """Without what most rows do not have."""
    rest = {
        name: value
        for name, value in row.items()
        if name not in ("lag", "lag_s") and (name not in OFTEN_EMPTY or value not in (None, ""))
    }
    return {**rest, "lag_records": row["lag"], "lag_seconds": row["lag_s"]}


TOOLS = (
    Tool(
        "list_topics",
        "List topics",
        "Topics with partitions, replicas and how many partitions lack a replica or a leader. With details also how"
        " many records and bytes (of all replicas) each has.",
        list_all_topics,
        (
            Argument("search", TEXT, "Words that the name contains."),
            Argument(
                "sort",
                TEXT,
                "By what.",
                default="name",
                choices=("name", "partitions", "replicas", "out_of_sync", "size"),
            ),
            Argument("descending", FLAG, "The largest first.", default=False),
            Argument("details", FLAG, "Also count records and bytes.", default=False),
            LIMIT,
            skipping(),
        ),
    ),
    Tool(
        "describe_topic",
        "Describe a topic",
        "One topic: its partitions with leader, replicas, in-sync replicas, first and next offset and bytes by broker,"
        " and its configs with where each value comes from.",
        describe_topic,
        (TOPIC, ALL_CONFIGS, skipping(what="partitions"), skipping("skip_configs", "configs")),
    ),
    Tool(
        "groups_of_topic",
        "Groups of a topic",
        "Which groups have offsets of a topic, and how many records each is behind there.",
        list_groups_of_topic,
        (TOPIC, skipping()),
    ),
    Tool(
        "list_groups",
        "List groups",
        "Groups of all kinds (consumer, classic, share, streams) with their state. With lag also how far each is"
        " behind, in records and in seconds.",
        list_all_groups,
        (
            Argument("search", TEXT, "Words that the group's id contains."),
            Argument("type", TEXT, "Only this kind.", choices=("consumer", "classic", "share", "streams")),
            Argument("state", TEXT, "Only those in this state, such as Stable or Empty."),
            Argument("lag", FLAG, "Also find out the lag.", default=False),
            LIMIT,
            skipping(),
        ),
    ),
    Tool(
        "describe_group",
        "Describe a group",
        "One group: state, members with what each has, and for each partition the offset, the end and the lag in"
        " records and in seconds (how long ago the next record to read was written).",
        describe_group,
        (GROUP, skipping(what="partitions"), skipping("skip_members", "members")),
    ),
)
