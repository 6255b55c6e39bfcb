"""`moldau quota list|set|remove`: what users, client ids and addresses may use of each broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin, parse_pairs, watch_options
from moldau.cli.output import finish, print_error, print_json, print_note, print_table, say
from moldau.cli.quota_entities import (
    KEYS,
    KINDS,
    Parts,
    entity_json,
    entity_options,
    entity_text,
    number_text,
    parse_key,
    parse_value,
    require_entity,
    value_text,
)
from moldau.cli.watch import repeat

if TYPE_CHECKING:
    from moldau.client.admin import Admin, QuotaEntity

Quotas = dict["QuotaEntity", dict[str, float]]


def find_quotas(admin: Admin, parts: Parts) -> Quotas:
    """The quotas of all entities that have these parts, in the order in which people look for them."""
    from moldau.client.admin import QuotaFilter
    from moldau.client.admin.quotas import DEFAULT, EXACT

    filters = [
        QuotaFilter(kind, DEFAULT) if name is None else QuotaFilter(kind, EXACT, name) for kind, name in parts.items()
    ]
    found = admin.describe_client_quotas(filters)
    return {entity: found[entity] for entity in sorted(found, key=_place)}


def _place(entity: QuotaEntity) -> tuple[list[int], list[tuple[bool, str]]]:
    parts = dict(entity.parts)
    kinds = [kind for kind in KINDS if kind in parts]
    return [KINDS.index(kind) for kind in kinds], [(parts[kind] is None, parts[kind] or "") for kind in kinds]


@click.command("list")
@entity_options
@click.option("-u", "--usage", is_flag=True, help="Show also what is used now, and who is throttled.")
@format_option
@watch_options
@connected
def list_quotas(
    connection: Connection,
    parts: Parts,
    usage: bool,
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """List the quotas that are set, or only those of entities with this user, client id or address.

    \b
    Examples:
      moldau quota list
      moldau quota list --user alice
      moldau quota list --watch              who is throttled now, and by how much
    """
    with open_admin(connection) as admin:
        repeat(lambda: _list(admin, parts, usage or watch, output_format), watch, interval_s)


def _list(admin: Admin, parts: Parts, usage: bool, output_format: str) -> None:
    from moldau.cli.quota_usage import fetch_usage, print_usage, usage_json

    found = find_quotas(admin, parts)
    used = fetch_usage(admin) if usage else None
    if used is not None:
        used = [row for row in used if row.belongs_to(parts)]
    if output_format == "json":
        rows = [{**entity_json(dict(entity.parts)), "quotas": quotas} for entity, quotas in found.items()]
        print_json({"quotas": rows, "usage": usage_json(used)} if usage else rows)
        return
    if not found:
        print_note("There are no such quotas." if parts else "There are no quotas yet.")
    else:
        print_table(
            ("FOR", "QUOTA", "VALUE", ""),
            [
                [entity_text(dict(entity.parts)), key, number_text(quotas[key]), value_text(key, quotas[key])]
                for entity, quotas in found.items()
                for key in sorted(quotas, key=_order)
            ],
            right=("VALUE",),
        )
    if usage:
        click.echo()
        print_usage(used)


def _order(key: str) -> tuple[int, str]:
    return (KEYS.index(key) if key in KEYS else len(KEYS), key)


@click.command("set")
@entity_options
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE...")
@format_option
@connected
def set_quotas(
    connection: Connection,
    parts: Parts,
    changes: tuple[str, ...],
    output_format: str,
) -> None:
    """Set quotas of a user, a client id, both together, or an address. They hold on each broker, at once.

    \b
    producer_byte_rate, consumer_byte_rate   bytes a second: 1048576, 500k, 10MB
    request_percentage                       100 is all the time of one thread
    controller_mutation_rate                 partitions created and deleted a second
    connection_creation_rate                 connections a second (addresses)

    \b
    Examples:
      moldau quota set --user alice producer_byte_rate=10MB consumer_byte_rate=20MB
      moldau quota set --user-default --client-id etl request_percentage=50
      moldau quota set --ip-default connection_creation_rate=20
    """
    entity = require_entity(parts)
    pairs = parse_pairs("KEY=VALUE", changes)
    quotas = {key: parse_value(key, text) for key, text in ((parse_key(name, parts), pairs[name]) for name in pairs)}
    if len(quotas) < len(changes):
        raise click.UsageError("A quota is named twice.")
    with open_admin(connection) as admin:
        _alter(admin, entity, dict(quotas), output_format)


@click.command("remove")
@entity_options
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@format_option
@connected
def remove_quotas(
    connection: Connection,
    parts: Parts,
    keys: tuple[str, ...],
    output_format: str,
) -> None:
    """Take quotas away, all of the entity's without a KEY; what it is subject to then is said by describe.

    \b
    Examples:
      moldau quota remove --user alice producer_byte_rate
      moldau quota remove --user alice --client-id app
    """
    entity = require_entity(parts)
    wanted = [parse_key(key, parts) for key in dict.fromkeys(keys)]
    with open_admin(connection) as admin:
        present = find_quotas(admin, parts).get(entity, {})
        absent = [key for key in wanted if key not in present]
        if not present or absent:
            what = f" no {' and no '.join(absent)}" if present else " no quotas"
            print_error(f"{entity_text(parts)} has{what}. `moldau quota list` shows which quotas there are.")
            finish(output_format, [{**entity_json(parts), "error": "NOT_SET", "keys": absent}], True)
        _alter(admin, entity, dict.fromkeys(wanted or present), output_format)


def _alter(admin: Admin, entity: QuotaEntity, quotas: dict[str, float | None], output_format: str) -> None:
    parts = dict(entity.parts)
    error = admin.alter_client_quotas({entity: quotas})[entity].error
    rows: list[dict[str, object]] = [{**entity_json(parts), "quotas": quotas}]
    if error is not None:
        rows = [{**entity_json(parts), "error": error.name, "message": error.message}]
        print_error(explain(error) or error.message)
    else:
        for key, value in quotas.items():
            if value is None:
                say(output_format, f"Removed {key} of {entity_text(parts)}.")
            else:
                say(output_format, f"Set {key} of {entity_text(parts)} to {value_text(key, value)}.")
    finish(output_format, rows, error is not None)
