"""Changes of topics: create, more partitions, delete, delete records."""

from __future__ import annotations

from typing import Any

from moldau.actions.calls import Call, asking, changing
from moldau.actions.refusals import Refused
from moldau.client.admin import NewTopic
from moldau.client.results import TopicPartition

PARTITIONS_MAX = 100_000
REPLICAS_MAX = 1_000


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


async def delete_records(call: Call) -> object:
    """Everything before an offset of one partition, or before the end of all."""
    name = call.target = call.text("name")
    call.viewer.scope.check_topic(name)
    if call.text("confirmed") != name:
        raise Refused("The name that was typed is not the topic's.")
    given = call.body.get("before")
    if not isinstance(given, dict) or not given:
        raise Refused("before is not an object of partitions and offsets.")
    try:
        before = {TopicPartition(name, int(number)): int(offset) for number, offset in given.items()}
    except (TypeError, ValueError):
        raise Refused("before is not an object of partitions and offsets.") from None
    call.details = {"before": given}
    outcomes = await call.viewer.clients.ask(lambda admin: admin.delete_records(before))
    return {"starts": {str(each.partition): outcome.get() for each, outcome in outcomes.items()}}


ROUTES = [
    asking("/api/topics/preview", preview_topic),
    changing("/api/topics/create", "create topic", create_topic),
    changing("/api/topics/add-partitions", "add partitions", add_partitions),
    changing("/api/topics/delete", "delete topic", delete_topic),
    changing("/api/topics/delete-records", "delete records", delete_records),
]
