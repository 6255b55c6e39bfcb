"""Tools that change something, where the server allows it: records, topics, configs, offsets of groups."""

from __future__ import annotations

from typing import Any

from moldau.actions.configs import alter_configs, preview_changes
from moldau.actions.group_changes import WHERE, preview_reset, reset
from moldau.actions.produce import FORMATS, send_record
from moldau.actions.refusals import Refused
from moldau.actions.topic_changes import (
    END,
    UP_TO,
    add_partitions,
    create_topic,
    delete_records,
    delete_topic,
    preview_deletion,
    preview_topic,
)
from moldau.mcp import arguments as kinds
from moldau.mcp.arguments import FLAG, NUMBER, NUMBERS, OBJECT, TEXT, Argument
from moldau.mcp.bounds import Part
from moldau.mcp.tool import Asked, Tool, skipping
from moldau.mcp.topic_tools import GROUP, TOPIC

NULL = "null"


async def produce_message(asked: Asked) -> dict[str, Any]:
    headers = [
        {"name": name, "value": None if value is None else {"format": "text", "text": value}}
        for name, value in (asked.get("headers") or {}).items()
    ]
    return await asked.change(
        "produce",
        send_record,
        topic=asked["topic"],
        key=_side(asked.get("key"), asked["key_format"]),
        value=_side(asked.get("value"), asked["value_format"]),
        headers=headers,
        partition=asked.get("partition"),
    )


def _side(text: str | None, form: str) -> dict[str, str] | None:
    return None if text is None or form == NULL else {"format": form, "text": text}


async def make_topic(asked: Asked) -> dict[str, Any]:
    values = {
        "name": asked["topic"],
        "partitions": asked.get("partitions"),
        "replicas": asked.get("replicas"),
        "configs": asked.get("configs"),
    }
    if asked["dry_run"]:
        return _preview(asked, await asked.result(preview_topic, **values))
    return asked.bounded(await asked.change("create topic", create_topic, **values))


async def give_partitions(asked: Asked) -> dict[str, Any]:
    count = asked["partitions"]
    await asked.change("add partitions", add_partitions, name=asked["topic"], partitions=count)
    return {"topic": asked["topic"], "partitions": count}


async def alter_topic_configs(asked: Asked) -> dict[str, Any]:
    values = {"kind": "topic", "name": asked["topic"], "changes": asked["changes"]}
    rows = await preview_changes(asked.call(**values))
    assert isinstance(rows, list)
    if not asked["dry_run"]:
        await asked.change("alter configs", alter_configs, **values)
    return _preview(asked, {"topic": asked["topic"], "changes": rows})


def _preview(asked: Asked, result: dict[str, Any], *parts: Part) -> dict[str, Any]:
    result["dry_run"] = asked["dry_run"]
    if asked["dry_run"]:
        result["note"] = NOTHING_YET
    return asked.bounded(result, *parts)


async def reset_offsets(asked: Asked) -> dict[str, Any]:
    """The offsets that a preview has computed are those that are written."""
    where = asked["where"]
    needed = {"offset": "offset", "shift": "shift_by", "time": "time"}.get(where)
    if needed is not None and asked.get(needed) is None:
        raise Refused(f"With where={where} the argument {needed} is needed.")
    topics = asked["topics"]
    found = await asked.result(
        preview_reset, id=asked["group"], where=where, topics=topics, number=None if needed is None else asked[needed]
    )
    if not asked["dry_run"]:
        await asked.change("reset offsets", reset, id=asked["group"], offsets=found["rows"])
    rows, part = asked.rest("offsets", "skip", found["rows"])
    result = {"group": asked["group"], "offsets": rows, "notes": found["notes"], "members": found["members"]}
    return _preview(asked, result, part)


async def remove_topic(asked: Asked) -> dict[str, Any]:
    await asked.change("delete topic", delete_topic, name=asked["topic"], confirmed=asked["confirm"])
    return {"deleted": asked["topic"]}


async def remove_records(asked: Asked) -> dict[str, Any]:
    """The offsets that a preview has computed are those before which records go."""
    up_to = asked["up_to"]
    if up_to != END and asked.get(up_to) is None:
        raise Refused(f"With up_to={up_to} the argument {up_to} is needed.")
    found = await asked.result(
        preview_deletion, name=asked["topic"], up_to=up_to, number=asked.get(up_to), partitions=asked.get("partitions")
    )
    if not asked["dry_run"]:
        before = {str(row["partition"]): row["before"] for row in found["rows"]}
        names = {"name": asked["topic"], "confirmed": asked.get("confirm") or ""}
        await asked.change("delete records", delete_records, **names, before=before)
    rows, part = asked.rest("partitions", "skip", found["rows"])
    return _preview(asked, {"topic": asked["topic"], "partitions": rows, "notes": found["notes"]}, part)


NOTHING_YET = "Nothing was changed: this is what would be. Ask again with dry_run=false to do it."
_FORMAT = "text as it is, checked JSON, hexadecimal or base64."
CONFIRM = Argument("confirm", TEXT, "The topic's name once more.", required=True)

TOOLS = (
    Tool(
        "produce_message",
        "Produce a message",
        "Sends one record to a topic that exists, and says which partition and offset it got.",
        produce_message,
        (
            TOPIC,
            Argument("value", TEXT, "The value; left out it is null, which deletes the key from a compacted topic."),
            Argument("key", TEXT, "The key; left out it is null."),
            Argument("value_format", TEXT, f"The value is {_FORMAT}", default="text", choices=FORMATS),
            Argument("key_format", TEXT, f"The key is {_FORMAT}", default="text", choices=FORMATS),
            Argument("headers", OBJECT, "Names with texts."),
            Argument("partition", NUMBER, "To this partition; left out the key decides.", lowest=0),
        ),
        writes=True,
    ),
    Tool(
        "create_topic",
        "Create a topic",
        "Creates a topic; partitions and replicas that are left out are the broker's defaults.",
        make_topic,
        (
            TOPIC,
            Argument("partitions", NUMBER, "How many partitions.", lowest=1),
            Argument("replicas", NUMBER, "How many replicas each has.", lowest=1),
            Argument("configs", OBJECT, 'Configs as texts, such as {"retention.ms": "3600000"}.'),
            Argument("dry_run", FLAG, "Let the broker check it, and create nothing.", default=False),
        ),
        writes=True,
    ),
    Tool(
        "add_partitions",
        "Add partitions",
        "Gives a topic more partitions. They cannot be taken away again, and keys may go to other partitions after.",
        give_partitions,
        (TOPIC, Argument("partitions", NUMBER, "How many it has afterwards.", required=True, lowest=1)),
        writes=True,
    ),
    Tool(
        "alter_topic_configs",
        "Alter configs of a topic",
        "Sets configs of a topic, and resets those that are null to what they are without. Shows before and after.",
        alter_topic_configs,
        (
            TOPIC,
            Argument("changes", OBJECT, "Names with texts, or null to reset one.", required=True),
            Argument("dry_run", FLAG, "Show before and after, and change nothing.", default=False),
        ),
        writes=True,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "reset_offsets",
        "Reset offsets of a group",
        "Sets where a group goes on reading. It previews unless dry_run is false; the group must have no members then.",
        reset_offsets,
        (
            GROUP,
            Argument(
                "topics", OBJECT, 'Topics with lists of partitions, or null for all: {"orders": null}.', required=True
            ),
            Argument("where", TEXT, "To where.", required=True, choices=WHERE),
            Argument("offset", NUMBER, "With where=offset: this one, or the nearest there is.", lowest=0),
            Argument("shift_by", NUMBER, "With where=shift: so many on, or (negative) back."),
            Argument("time", kinds.TIME, "With where=time: to the first record from then on."),
            Argument("dry_run", FLAG, "Show where each partition would go, and change nothing.", default=True),
            skipping(what="partitions of what is shown"),
        ),
        writes=True,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "delete_topic",
        "Delete a topic",
        "Deletes a topic with all its records, for good.",
        remove_topic,
        (TOPIC, CONFIRM),
        writes=True,
        destructive=True,
    ),
    Tool(
        "delete_records",
        "Delete records",
        "Deletes the records before a place in partitions, for good. It previews unless dry_run is false, and needs"
        " the confirmation then.",
        remove_records,
        (
            TOPIC,
            Argument("up_to", TEXT, "Up to where they go.", required=True, choices=UP_TO),
            Argument("offset", NUMBER, "With up_to=offset: records before this one.", lowest=0),
            Argument("time", kinds.TIME, "With up_to=time: records older than this."),
            Argument("partitions", NUMBERS, "Only of these partitions."),
            Argument("dry_run", FLAG, "Show what each partition would begin with, and delete nothing.", default=True),
            CONFIRM._replace(required=False),
            skipping(what="partitions of what is shown"),
        ),
        writes=True,
        destructive=True,
        idempotent=True,
    ),
)
