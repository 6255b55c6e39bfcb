"""`moldau quota describe`: what holds for a user and a client id, or an address, and why.

Of eight levels the first that has a value for the key wins; those behind it are shown as well, for they are what would
hold if it were taken away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, print_json, print_table, print_title
from moldau.cli.quota import Quotas, find_quotas
from moldau.cli.quota_entities import (
    CLIENT_ID,
    CLIENT_QUOTAS,
    IP,
    IP_QUOTAS,
    USER,
    Parts,
    entity_json,
    entity_text,
    value_text,
)
from moldau.cli.watch import repeat

if TYPE_CHECKING:
    from moldau.cli.quota_usage import Usage
    from moldau.client.admin import Admin

ANONYMOUS = "ANONYMOUS"

Json = dict[str, object]


@click.command()
@click.option("--user", metavar="NAME", help=f"A user; {ANONYMOUS} where there is no authentication, and by default.")
@click.option("--client-id", metavar="NAME", help="A client id; by default one without any quota of its own.")
@click.option("--ip", metavar="ADDRESS", help="An address.")
@format_option
@watch_options
@connected
def describe(
    connection: Connection,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """Show which quotas hold for a user with a client id, or for an address, and which level they come from.

    \b
    Examples:
      moldau quota describe --user alice --client-id app
      moldau quota describe --client-id app --watch
      moldau quota describe --ip 10.0.0.7
    """
    if user is None and client_id is None and ip is None:
        raise click.UsageError("Say for whom: --user, --client-id or --ip.")
    with open_admin(connection) as admin:
        repeat(lambda: _describe(admin, user, client_id, ip, output_format), watch, interval_s)


def _describe(admin: Admin, user: str | None, client_id: str | None, ip: str | None, output_format: str) -> None:
    from moldau.cli.quota_usage import fetch_usage, usage_json

    quotas = find_quotas(admin, {})
    found: list[Json] = []
    used: list[Usage] | None = None
    if user is not None or client_id is not None:
        found += effective_of_client(quotas, user or ANONYMOUS, client_id or "")
        used = fetch_usage(admin)
        if used is not None:
            tags = {(row["key"], row["budget_user"], row["budget_client_id"]) for row in found}
            used = [row for row in used if (row.key, row.user, row.client_id) in tags]
    if ip is not None:
        found += effective_of_address(quotas, ip)
    if output_format == "json":
        print_json({"effective": found, "usage": usage_json(used)})
        return
    _print(found, used, user, client_id, ip)


def effective_of_client(quotas: Quotas, user: str, client_id: str) -> list[Json]:
    """For each key what holds, at which level, who shares it, and what the levels behind it say."""
    from moldau.quota.entities import QuotaTable

    table = QuotaTable({entity.parts: values for entity, values in quotas.items()})
    rows: list[Json] = []
    for key in CLIENT_QUOTAS:
        match = table.resolve(key, user, client_id)
        winner = dict(match.entity) if match.is_limited else None
        others = [
            {**entity_json(parts), "value": value}
            for parts, value in _candidates(quotas, key, user, client_id)
            if parts != winner
        ]
        rows.append(
            {
                "key": key,
                "value": match.bound if match.is_limited else None,
                "level": match.level if match.is_limited else None,
                "from": None if winner is None else entity_json(winner),
                "budget_user": match.tags[0],
                "budget_client_id": match.tags[1],
                "overridden": others,
            }
        )
    return rows


def _candidates(quotas: Quotas, key: str, user: str, client_id: str) -> list[tuple[Parts, float]]:
    """The entities that the client belongs to and that have a value for the key, the most special one first."""
    levels: list[Parts] = [
        {USER: user, CLIENT_ID: client_id},
        {USER: user, CLIENT_ID: None},
        {USER: user},
        {USER: None, CLIENT_ID: client_id},
        {USER: None, CLIENT_ID: None},
        {USER: None},
        {CLIENT_ID: client_id},
        {CLIENT_ID: None},
    ]
    if not client_id:
        levels = [{USER: user}, {USER: None}]  # an empty client id is nobody's
    values = {entity.parts: found for entity, found in quotas.items()}
    found = []
    for parts in levels:
        value = values.get(tuple(sorted(parts.items())), {}).get(key)
        if value is not None:
            found.append((parts, value))
    return found


def effective_of_address(quotas: Quotas, ip: str) -> list[Json]:
    values = {entity.parts: found for entity, found in quotas.items()}
    rows: list[Json] = []
    for key in IP_QUOTAS:
        levels: list[Parts] = [{IP: ip}, {IP: None}]
        found = [(parts, values.get(tuple(parts.items()), {}).get(key)) for parts in levels]
        known = [(parts, value) for parts, value in found if value is not None]
        rows.append(
            {
                "key": key,
                "value": known[0][1] if known else None,
                "level": None,
                "from": entity_json(known[0][0]) if known else None,
                "overridden": [{**entity_json(parts), "value": value} for parts, value in known[1:]],
            }
        )
    return rows


def _print(
    found: list[Json], used: list[Usage] | None, user: str | None, client_id: str | None, ip: str | None
) -> None:
    whom: Parts = {}
    if user is not None or client_id is not None:
        whom[USER] = user or ANONYMOUS
        if client_id:
            whom[CLIENT_ID] = client_id
    if ip is not None:
        whom[IP] = ip
    print_title(entity_text(whom))
    click.echo()
    usage: dict[str, list[Usage]] = {}
    for row in used or []:
        usage.setdefault(row.key, []).append(row)
    cells: list[list[object]] = []
    for item in found:
        key = str(item["key"])
        cells.append([key, *_effect_cells(item, key), *_usage_cells(usage.get(key))])
        for other in item["overridden"]:  # type: ignore[attr-defined]
            value = Styled(value_text(key, other["value"]), dim=True)
            cells.append(["", value, Styled(_whose(other), dim=True), Styled("overridden", dim=True), "", "", ""])
    print_table(
        ("QUOTA", "LIMIT", "FROM", "SHARED BY", "USES NOW", "WAITS", "THROTTLED"),
        cells,
        right=("LIMIT", "USES NOW", "WAITS", "THROTTLED"),
    )
    if any(item["value"] is not None for item in found):
        click.echo()
        click.echo("A limit holds on each broker by itself.")


def _effect_cells(item: Json, key: str) -> list[object]:
    origin, value = item["from"], item["value"]
    if origin is None or not isinstance(value, float):
        return [Styled("unlimited", dim=True), "", ""]
    return [Styled(value_text(key, value), fg="green"), _whose(origin), _shared_by(item)]


def _whose(entity: object) -> str:
    """The entity of a row of JSON in words."""
    assert isinstance(entity, dict)
    return entity_text({name.replace("_", "-"): entity[name] for name in entity if name != "value"})


def _shared_by(item: Json) -> str:
    if "budget_user" not in item:
        return "all connections of the address"
    user, client_id = item["budget_user"], item["budget_client_id"]
    if user and client_id:
        return "all clients with this user and client id"
    return "all client ids of the user" if user else "all users with the client id"


def _usage_cells(rows: list[Usage] | None) -> list[object]:
    """The busiest broker's."""
    from moldau.cli.quota_usage import time_cell

    if not rows:
        return ["-", "-", "-"]
    rates = [row for row in rows if row.rate is not None]
    most = max(rates, key=lambda row: row.rate or 0.0, default=None)
    shown = "-" if most is None or most.rate is None else value_text(most.key, most.rate)
    if len(rows) > 1 and most is not None:
        shown += f" (broker {most.broker})"
    return [shown, time_cell(max(row.waits_ms for row in rows)), time_cell(max(row.throttle_ms for row in rows))]
