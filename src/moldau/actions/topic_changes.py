"""Changes of topics: create, more partitions, delete, delete records."""

from __future__ import annotations

from typing import Any

from moldau.actions.calls import Call, asking, changing
from moldau.actions.messages import partitions_of
from moldau.actions.refusals import Refused
from moldau.client.admin import NewTopic
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import TopicPartition
from moldau.protocol.errors import POLICY_VIOLATION

PARTITIONS_MAX = 100_000
REPLICAS_MAX = 1_000
# What is deleted ends before an offset, before the first record of a time, or where the partition ends now.
OFFSET, TIME, END = UP_TO = ("offset", "time", "end")


async def _create(call: Call, validate_only: bool) -> object:
    name = call.text("name").strip()
    partitions = call.number("partitions", -1, -1, PARTITIONS_MAX)
    replicas = call.number("replicas", -1, -1, REPLICAS_MAX)
    configs = _configs(call.body.get("configs", {}))
    call.target = name
    call.viewer.scope.check_new_topic(name)
    call.details = {"partitions": partitions, "replicas": replicas, "configs": configs}
    topic = NewTopic(name, partitions or -1, replicas or -1, configs)
    outcomes = await call.viewer.clients.ask(lambda admin: admin.create_topics([topic], validate_only))
    created = outcomes[name].get()
    if not validate_only:
        await call.viewer.topics.get_new()
    return {
        "name": name,
        "partitions": created.partitions,
        "replicas": created.replication_factor,
        "configs": created.configs,
    }


def _configs(given: Any) -> dict[str, str | None]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise Refused("configs is not an object of texts.")
    return {str(name): value for name, value in given.items()}


async def preview_topic(call: Call) -> object:
    """What would come of it; the broker checks it and creates nothing."""
    return await _create(call, validate_only=True)


async def create_topic(call: Call) -> object:
    return await _create(call, validate_only=False)


async def add_partitions(call: Call) -> object:
    name, count = call.text("name"), call.number("partitions", None, 1, PARTITIONS_MAX)
    call.target, call.details = name, {"partitions": count}
    call.viewer.scope.check_topic(name)
    (await call.viewer.clients.ask(lambda admin: admin.create_partitions({name: count})))[name].get()
    call.viewer.topics.forget()
    return {}


async def delete_topic(call: Call) -> object:
    """Confirmed by its name, which whoever deletes it types."""
    name = call.target = call.text("name")
    call.viewer.scope.check_topic(name)
    if call.text("confirmed") != name:
        raise Refused("The name that was typed is not the topic's.")
    (await call.viewer.clients.ask(lambda admin: admin.delete_topics([name])))[name].get()
    await call.viewer.topics.get_new()
    return {}


async def preview_deletion(call: Call) -> object:
    """With which offset each partition would begin, and how many go; nothing is deleted."""
    name, up_to = call.text("name"), call.text("up_to")
    if up_to not in UP_TO:
        raise Refused(f"There is no place {up_to!r}; there are {', '.join(UP_TO)}.")
    partitions = await partitions_of(call.viewer, name, call.body.get("partitions"))
    starts = await call.viewer.offsets_at(partitions, EARLIEST)
    ends = await call.viewer.offsets_at(partitions, LATEST)
    if up_to == TIME:
        at = await call.viewer.offsets_at(partitions, call.number("number"))
    else:
        at = dict.fromkeys(partitions, call.number("number")) if up_to == OFFSET else ends
    rows, notes = [], []
    for each in partitions:
        if each not in starts or each not in ends or each not in at:
            # Above all not "everything": what is not known is not deleted.
            notes.append(f"{each} could not be asked: nothing of it goes.")
            continue
        before, note = first_kept(each, starts[each], ends[each], at[each])
        rows.append({"partition": each.partition, "start": starts[each], "end": ends[each], "before": before})
        if note:
            notes.append(note)
    return {"rows": rows, "notes": notes}


def first_kept(each: TopicPartition, start: int, end: int, at: int) -> tuple[int, str]:
    """The offset that a partition begins with afterwards, and what is to be said about it.

    at: the place up to which records go; -1 where no record is as young as the time that was given.
    """
    if at < 0:
        return end, f"{each} has no record that young: all of it goes." if end > start else ""
    if at > end:
        return end, f"{each} ends at {end:,}: all of it goes."
    return max(start, at), ""


async def delete_records(call: Call) -> object:
    """Everything before the offsets of a preview, whatever has arrived meanwhile."""
    name = call.target = call.text("name")
    call.viewer.scope.check_topic(name)
    if call.text("confirmed") != name:
        raise Refused("The name that was typed is not the topic's.")
    before = _offsets_before(name, call.body.get("before"))
    call.details = {"before": {str(each.partition): offset for each, offset in before.items()}}
    outcomes = await call.viewer.clients.ask(lambda admin: admin.delete_records(before))
    if any(outcome.error is not None and outcome.error.code == POLICY_VIOLATION for outcome in outcomes.values()):
        raise Refused("Its cleanup.policy is compact alone: records are deleted of topics that have delete in it.")
    return {"starts": {str(each.partition): outcome.get() for each, outcome in outcomes.items()}}


def _offsets_before(name: str, given: Any) -> dict[TopicPartition, int]:
    """The first offset to be kept, by partition."""
    if not isinstance(given, dict) or not given:
        raise Refused("There is nothing to delete.")
    if not all(number.isdecimal() and type(offset) is int and offset >= 0 for number, offset in given.items()):
        raise Refused("before is not an object of partitions and offsets.")
    return {TopicPartition(name, int(number)): offset for number, offset in given.items()}


ROUTES = [
    asking("/api/topics/preview", preview_topic),
    changing("/api/topics/create", "create topic", create_topic),
    changing("/api/topics/add-partitions", "add partitions", add_partitions),
    changing("/api/topics/delete", "delete topic", delete_topic),
    asking("/api/topics/delete-records/preview", preview_deletion),
    changing("/api/topics/delete-records", "delete records", delete_records),
]
