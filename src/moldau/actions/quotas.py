"""Quotas of users, client ids and addresses: what is set, and changing it."""

from __future__ import annotations

from moldau.actions.calls import Call, changing, reading
from moldau.actions.refusals import Refused
from moldau.client.admin import QuotaEntity
from moldau.client.admin.quotas import ENTITY_TYPES

# What can be limited for which kind of client; the broker has the last word.
KEYS = {
    "producer_byte_rate": "bytes a second that it may write to a broker",
    "consumer_byte_rate": "bytes a second that it may read from a broker",
    "request_percentage": "percent of a thread's time that a broker works for it",
    "controller_mutation_rate": "partitions a second that it may create and delete",
    "connection_creation_rate": "connections a second from one address",
}


async def list_quotas(call: Call) -> object:
    found = await call.viewer.clients.ask(lambda admin: admin.describe_client_quotas())
    rows = [{"entity": dict(entity.parts), "quotas": values} for entity, values in found.items()]
    rows.sort(key=lambda row: str(row["entity"]))
    return {"rows": rows, "keys": KEYS}


def _entity(call: Call) -> QuotaEntity:
    given = call.body.get("entity")
    if not isinstance(given, dict) or not given or not set(given) <= set(ENTITY_TYPES):
        raise Refused(f"A quota is for one or more of {', '.join(ENTITY_TYPES)}.")
    if not all(value is None or isinstance(value, str) for value in given.values()):
        raise Refused("A quota is for a name, or (null) for all that have none of their own.")
    return QuotaEntity.of(given)


async def alter_quotas(call: Call) -> object:
    """Sets numbers, and removes those that are null."""
    entity = _entity(call)
    given = call.body.get("quotas")
    if not isinstance(given, dict) or not given:
        raise Refused("There is nothing to change.")
    changes: dict[str, float | None] = {}
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            raise Refused(f"{name} must be a number above 0.")
        changes[name] = None if value is None else float(value)
    call.target = ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity.parts)
    call.details = changes
    (await call.viewer.clients.ask(lambda admin: admin.alter_client_quotas({entity: changes})))[entity].get()
    return {}


ROUTES = [
    reading("/api/quotas", list_quotas),
    changing("/api/quotas/alter", "alter quotas", alter_quotas),
]
