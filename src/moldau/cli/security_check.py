"""`moldau security check`: reads a server.properties as a broker does and tells what is open to whom."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from moldau.cli.options import format_option
from moldau.cli.output import plural, print_error, print_json, print_note, print_table

if TYPE_CHECKING:
    from moldau.security.exposure.findings import Finding
    from moldau.security.exposure.listeners import ListenerView
    from moldau.security.exposure.rights import Rights

FOUND = 1
UNREADABLE = 2
NOT_LOOKED_AT = "Only the file is looked at: not settings that were changed while nodes run, nor ACLs and users."
COLOURS = {"severe": "red", "warning": "yellow", "note": "cyan"}


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, readable=True))
@click.option("--strict", is_flag=True, help="Exit with 1 also for warnings.")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="As of `moldau server`; repeat it.")
@format_option
@click.pass_context
def check(context: click.Context, file: str, strict: bool, overrides: tuple[str, ...], output_format: str) -> None:
    """Read FILE as a broker does and tell what it leaves open to whom, the worst first, with the setting to change.

    Settings of the environment (KAFKA_...) count as they do for a broker. The files that FILE names are looked into.
    Nothing is started and nobody is connected to.

    \b
    Exit codes:
      0  nothing severe; with --strict no warning either
      1  something severe was found; with --strict, or a warning
      2  FILE cannot be read, or its values make no configuration

    \b
    Examples:
      moldau security check server.properties
      moldau security check server.properties --strict --format json
    """
    from moldau.config.broker_config import BrokerConfig
    from moldau.config.definitions import ConfigError
    from moldau.security.exposure.check import check_exposure
    from moldau.security.exposure.listeners import view_listeners
    from moldau.security.exposure.rights import Rights
    from moldau.server.config_file import read_values
    from moldau.server.security_facts import gather_facts

    try:
        config = BrokerConfig(read_values(file, overrides), warn=False)
        findings = check_exposure(config, gather_facts(config, file), int(time.time()))
        listeners, rights = view_listeners(config), Rights(config)
    except (ConfigError, OSError) as error:
        print_error(f"{file} is no configuration of a node: {error}")
        context.exit(UNREADABLE)
    if output_format == "json":
        print_json(_json(file, listeners, rights, findings))
    else:
        _print(listeners, rights, findings)
    bad = ("severe", "warning") if strict else ("severe",)
    context.exit(FOUND if any(finding.severity in bad for finding in findings) else 0)


def _json(file: str, listeners: list[ListenerView], rights: Rights, findings: list[Finding]) -> dict[str, object]:
    return {
        "file": file,
        "listeners": [
            {
                "name": view.name,
                "address": view.address,
                "advertised_as": view.advertised or None,
                "reach": view.reach,
                "protocol": view.protocol,
                "encrypted": view.is_encrypted,
                "mechanisms": list(view.mechanisms),
                "client_auth": view.client_auth,
                "anonymous": view.is_anonymous,
                "used_by": list(view.used_by),
            }
            for view in listeners
        ],
        "authorizer": rights.authorizer or None,
        "super_users": rights.super_users,
        "allow_everyone_if_no_acl_found": rights.allows_everyone,
        "findings": [finding._asdict() for finding in findings],
        "not_looked_at": ["dynamic settings", "ACLs", "users"],
    }


def _print(listeners: list[ListenerView], rights: Rights, findings: list[Finding]) -> None:
    print_table(
        ("LISTENER", "ADDRESS", "REACHED FROM", "ENCRYPTED", "FOR", "WHO CAN CONNECT"),
        [
            [
                view.name,
                view.place,
                view.reach,
                "yes" if view.is_encrypted else "no",
                ", ".join(view.used_by),
                view.who,
            ]
            for view in listeners
        ],
    )
    click.echo()
    click.echo(_rights_text(rights))
    for finding in findings:
        where = f"{finding.listener}: " if finding.listener else ""
        click.echo()
        click.secho(f"{finding.severity.upper():<8}", fg=COLOURS[finding.severity], bold=True, nl=False)
        click.echo(f" {where}{finding.message}")
        if finding.key:
            click.echo(f"         change {click.style(finding.key, bold=True)}")
    click.echo()
    counts = [(name, sum(finding.severity == name for finding in findings)) for name in ("severe", "warning", "note")]
    if not findings:
        click.echo("Nothing was found.")
    else:
        print_note(
            ", ".join(f"{number} {name}" if name == "severe" else plural(number, name) for name, number in counts)
        )
    print_note(NOT_LOOKED_AT)


def _rights_text(rights: Rights) -> str:
    if not rights.authorizer:
        return "Authorizer: none; whoever is connected may do everything."
    users = ", ".join(rights.super_users) or "nobody"
    rest = "allowed to everybody" if rights.allows_everyone else "refused"
    return f"Authorizer: {rights.authorizer.rpartition('.')[2]}; super users: {users}; what no ACL is about is {rest}."
