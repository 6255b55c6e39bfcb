"""Configs of topics, brokers and groups: values with where each comes from, and changes with a preview."""

from __future__ import annotations

from moldau.actions.calls import Call, asking, changing, reading
from moldau.actions.refusals import Refused
from moldau.client.admin import (
    BROKER,
    CONFIG_SOURCES,
    CONFIG_TYPES,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    Admin,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
)

KINDS = {"topic": TOPIC, "broker": BROKER, "group": GROUP}
SENSITIVE = "(hidden)"


def _resource(call: Call) -> ConfigResource:
    kind = call.text("kind")
    if kind not in KINDS:
        raise Refused(f"There are no configs of {kind!r}.")
    name = call.text("name")
    if KINDS[kind] == TOPIC:
        call.viewer.scope.check_topic(name)
    elif KINDS[kind] == GROUP:
        call.viewer.scope.check_group(name)
    return ConfigResource(KINDS[kind], name)


async def show_configs(call: Call) -> object:
    entries = await _entries(call, _resource(call))
    return [_row(entry) for entry in sorted(entries, key=lambda entry: entry.name)]


async def _entries(call: Call, resource: ConfigResource) -> list[ConfigEntry]:
    def work(admin: Admin) -> list[ConfigEntry]:
        return admin.describe_configs([resource], include_synonyms=True, include_documentation=True)[resource].get()

    return await call.viewer.clients.ask(work)


def _row(entry: ConfigEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "value": None if entry.is_sensitive else entry.value,
        "sensitive": entry.is_sensitive,
        "read_only": entry.is_read_only,
        "source": source_words(entry.source),
        "is_default": entry.is_default,
        "type": CONFIG_TYPES.get(entry.type, "unknown"),
        "about": entry.documentation or "",
        "synonyms": [
            {"name": name, "value": SENSITIVE if entry.is_sensitive else value, "source": source_words(source)}
            for name, value, source in entry.synonyms
        ],
    }


def source_words(source: int) -> str:
    """Where a value comes from: topic, broker, cluster default, file, default."""
    return CONFIG_SOURCES.get(source, f"source {source}")


def _changes(call: Call) -> list[ConfigChange]:
    given = call.body.get("changes")
    if not isinstance(given, dict) or not given:
        raise Refused("There is nothing to change.")
    found = []
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise Refused(f"The value of {name} is neither a text nor null.")
        found.append(ConfigChange(name, value, DELETE if value is None else SET))
    return found


async def preview_changes(call: Call) -> object:
    """Before and after, checked by the broker, which changes nothing."""
    resource, changes = _resource(call), _changes(call)
    before = {entry.name: entry for entry in await _entries(call, resource)}
    outcomes = await call.viewer.clients.ask(
        lambda admin: admin.incremental_alter_configs({resource: changes}, validate_only=True)
    )
    outcomes[resource].get()
    return [_preview_row(change, before.get(change.name), resource.type) for change in changes]


def _preview_row(change: ConfigChange, entry: ConfigEntry | None, kind: int) -> dict[str, object]:
    hidden = entry is not None and entry.is_sensitive
    row: dict[str, object] = {
        "name": change.name,
        "before": SENSITIVE if hidden else None if entry is None else entry.value,
        "source_before": None if entry is None else source_words(entry.source),
    }
    if change.operation != DELETE:
        return {**row, "after": SENSITIVE if hidden else change.value, "source_after": _noun(kind)}
    # Without the value of its own the next in the row of synonyms counts.
    rest = [] if entry is None else [synonym for synonym in entry.synonyms if synonym[2] != entry.source]
    if entry is not None and entry.is_default:
        rest = [(entry.name, entry.value, entry.source)]
    after, source = (rest[0][1], source_words(rest[0][2])) if rest else (None, "default")
    return {**row, "after": SENSITIVE if hidden else after, "source_after": source}


def _noun(kind: int) -> str:
    return next(name for name, number in KINDS.items() if number == kind)


async def alter_configs(call: Call) -> object:
    resource, changes = _resource(call), _changes(call)
    call.target = f"{_noun(resource.type)} {resource.name}"
    # Values may be passwords: which of them are is for the broker to know, so names are all that is written down.
    known = {entry.name: entry for entry in await _entries(call, resource)}
    call.details = {
        change.name: change.value if change.name in known and not known[change.name].is_sensitive else SENSITIVE
        for change in changes
    }
    outcomes = await call.viewer.clients.ask(lambda admin: admin.incremental_alter_configs({resource: changes}))
    outcomes[resource].get()
    return {}


ROUTES = [
    reading("/api/configs", show_configs),
    asking("/api/configs/preview", preview_changes),
    changing("/api/configs/alter", "alter configs", alter_configs),
]
