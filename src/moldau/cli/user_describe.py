"""`moldau user describe`: how a user logs in, what the user may do, and which quotas are set for the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moldau.cli.acl_words import binding_json, binding_text
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, print_fields, print_title
from moldau.cli.user import Credentials, credentials_json, find_users, refused, tell
from moldau.client.errors import ClientError
from moldau.protocol.errors import SECURITY_DISABLED

if TYPE_CHECKING:
    from moldau.client.admin import AclBinding, Admin

Quotas = dict[str, dict[str, float]]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@format_option
@connected
def describe(connection: Connection, names: tuple[str, ...], output_format: str) -> None:
    """Show the mechanisms of users, with the ACLs and quotas of their names as far as you may see them."""
    rows: list[dict[str, object]] = []
    failed = False
    with open_admin(connection) as admin:
        for name, found in find_users(admin, list(dict.fromkeys(names))).items():
            if isinstance(found, ClientError):
                failed = True
                tell(found)
                rows.append(refused(name, found))
                continue
            acls, quotas = _acls(admin, name), _quotas(admin, name)
            rows.append(_row(name, found, acls, quotas))
            if output_format == "table":
                _print(name, found, acls, quotas)
    finish(output_format, rows, failed)


def _acls(admin: Admin, name: str) -> list[AclBinding] | ClientError:
    from moldau.client.admin import AclFilter

    try:
        return admin.describe_acls(AclFilter(principal=f"User:{name}"))
    except ClientError as error:
        return error


def _quotas(admin: Admin, name: str) -> Quotas | ClientError:
    from moldau.cli.quota import find_quotas
    from moldau.cli.quota_entities import USER, entity_text

    try:
        found = find_quotas(admin, {USER: name})
    except ClientError as error:
        return error
    return {entity_text(dict(entity.parts)): values for entity, values in found.items()}


def _row(
    name: str, credentials: Credentials, acls: list[AclBinding] | ClientError, quotas: Quotas | ClientError
) -> dict[str, object]:
    """null stands for what could not be asked for."""
    return {
        "user": name,
        "credentials": credentials_json(credentials),
        "acls": None if isinstance(acls, ClientError) else [binding_json(acl) for acl in acls],
        "quotas": None if isinstance(quotas, ClientError) else quotas,
    }


def _print(
    name: str, credentials: Credentials, acls: list[AclBinding] | ClientError, quotas: Quotas | ClientError
) -> None:
    fields: list[tuple[str, object]] = []
    for mechanism, iterations in credentials.items():
        fields.append(("" if fields else "logs in by", f"{mechanism}, {iterations} iterations"))
    fields += _under("ACLs", _acl_lines(acls))
    fields += _under("quotas", _quota_lines(quotas))
    print_title(f"User:{name}")
    print_fields(fields)


def _under(title: str, lines: list[str]) -> list[tuple[str, object]]:
    return [("" if place else title, line) for place, line in enumerate(lines)]


def _acl_lines(acls: list[AclBinding] | ClientError) -> list[str]:
    if isinstance(acls, ClientError):
        if acls.code == SECURITY_DISABLED:
            return ["the brokers have no authorizer: everybody may do everything"]
        return [f"not known: {acls.message}"]
    return [binding_text(acl) for acl in acls] or ["none of its own"]


def _quota_lines(quotas: Quotas | ClientError) -> list[str]:
    from moldau.cli.quota_entities import value_text

    if isinstance(quotas, ClientError):
        return [f"not known: {quotas.message}"]
    lines = [
        f"{key} {value_text(key, value)} ({whose})" for whose, values in quotas.items() for key, value in values.items()
    ]
    return lines or ["none of its own"]
