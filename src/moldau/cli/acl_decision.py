"""`moldau acl test`: whether someone may do something, and which entry says so.

The entries come from the cluster and the decision from the broker's own authorizer, so the answer is the broker's. What
a broker keeps to itself, as Apache Kafka does with super.users, is said to be unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from moldau.cli.acl_words import (
    ANY_HOST,
    TYPE_CHOICE,
    Resource,
    binding_json,
    binding_text,
    complete_names,
    operation_word,
    parse_host,
    parse_operations,
    parse_principal,
    parse_resource,
    resource_text,
)
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import Styled, print_fields, print_json, print_note, print_title
from moldau.security import rights

if TYPE_CHECKING:
    from moldau.client.admin import AclBinding, Admin
    from moldau.security.authorizer import Acl, Authorizer

SUPER_USERS = "super.users"
ALLOW_WITHOUT = "allow.everyone.if.no.acl.found"
# An address that no entry names: only entries for all addresses fit.
NO_ADDRESS = ""
EVERYBODY = "User:*"


class Settings(NamedTuple):
    """What the cluster tells of its authorizer; None: it does not tell."""

    super_users: str | None
    allows_without_acls: bool | None


class Answer(NamedTuple):
    """Whether it is allowed, by what, and why it could be otherwise."""

    is_allowed: bool
    decided_by: str
    sentence: str
    acl: AclBinding | None = None
    unknown: tuple[str, ...] = ()
    elsewhere: tuple[tuple[str, Answer], ...] = ()
    """By single address: what entries for it make of the same question. Only where no address was asked about."""


@click.command("test")
@click.argument("principal")
@click.argument("operation")
@click.argument("resource_type", metavar="TYPE", type=TYPE_CHOICE)
@click.argument("name", required=False, shell_complete=complete_names)
@click.option("--host", metavar="ADDRESS", help="From this address. Without it only entries for all addresses count.")
@click.option(
    "--server-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help=f"The properties of a broker, to know {SUPER_USERS} and {ALLOW_WITHOUT}, which brokers do not tell.",
)
@format_option
@connected
def test(
    connection: Connection,
    principal: str,
    operation: str,
    resource_type: str,
    name: str | None,
    host: str | None,
    server_config: str | None,
    output_format: str,
) -> None:
    """Tell whether someone may do something, and which entry decides. The exit code is 0 for yes and 1 for no.

    \b
    Examples:
      moldau acl test User:anna read topic orders
      moldau acl test User:anna write topic orders --host 10.0.0.7
      moldau acl test User:ops alter cluster --server-config server.properties
    """
    who = parse_principal(principal)
    resource = parse_resource(resource_type, name, is_literal=True)
    operations = parse_operations(operation, resource.type)
    if len(operations) != 1:
        raise click.UsageError("One operation is tested at a time.")
    address = NO_ADDRESS if host is None else parse_host(host)
    if address == ANY_HOST:
        raise click.UsageError("A client has one address: say which, or leave --host out.")
    settings = None if server_config is None else _read_settings(server_config)
    with open_admin(connection) as admin:
        answer = _ask(admin, settings, who, address, operations[0], resource)
    if output_format == "json":
        print_json(_json(answer, who, address, operations[0], resource))
    else:
        _print(answer, who, address, operations[0], resource)
    click.get_current_context().exit(0 if answer.is_allowed else 1)


def _ask(
    admin: Admin, settings: Settings | None, principal: str, host: str, operation: int, resource: Resource
) -> Answer:
    from moldau.client.admin import AclFilter, PatternType, ResourceType
    from moldau.client.errors import ClientError
    from moldau.protocol.errors import SECURITY_DISABLED

    wanted = AclFilter(ResourceType(resource.type), resource.name, pattern_type=PatternType.MATCH)
    try:
        bindings = admin.describe_acls(wanted)
    except ClientError as error:
        if error.code != SECURITY_DISABLED:
            raise
        return Answer(True, "no_authorizer", "The cluster has no authorizer: everybody may do everything.")
    known = _find_settings(admin) if settings is None else settings
    return decide(bindings, known, principal, host, operation, resource)


def _read_settings(path: str) -> Settings:
    from moldau.config.properties import parse_properties

    with open(path, encoding="iso-8859-1") as file:
        found = parse_properties(file.read())
    return Settings(found.get(SUPER_USERS, ""), found.get(ALLOW_WITHOUT, "").strip().lower() == "true")


def _find_settings(admin: Admin) -> Settings:
    """As one of the brokers has them: they belong into the file of each."""
    from moldau.client.admin import BROKER, ConfigResource
    from moldau.client.errors import ClientError

    try:
        broker = ConfigResource(BROKER, str(admin.describe_cluster().brokers[0].id))
        found = {entry.name: entry for entry in admin.describe_configs([broker])[broker].get()}
    except (ClientError, IndexError):
        return Settings(None, None)
    users, allows = found.get(SUPER_USERS), found.get(ALLOW_WITHOUT)
    # A broker that tells others of its settings but not these has left them out because they are not set.
    return Settings(
        "" if users is None else users.value,
        False if allows is None else None if allows.value is None else allows.value.strip().lower() == "true",
    )


def decide(
    bindings: list[AclBinding], settings: Settings, principal: str, host: str, operation: int, resource: Resource
) -> Answer:
    """The answer of the broker's authorizer that has these entries and settings."""
    authorizer = _authorizer_of(bindings, settings)

    def answer_from(address: str) -> Answer:
        return _answer(authorizer, bindings, settings, principal, address, operation, resource)

    answer = answer_from(host)
    if host != NO_ADDRESS or answer.decided_by == "super_user":
        return answer
    named = {each.host for each in bindings if each.host != ANY_HOST and each.principal in (principal, EVERYBODY)}
    return answer._replace(elsewhere=tuple((address, answer_from(address)) for address in sorted(named)))


def _authorizer_of(bindings: list[AclBinding], settings: Settings) -> Authorizer:
    from moldau.protocol.stored.metadata_records import AccessControlEntryRecord
    from moldau.security.authorizer import Authorizer, super_users_of

    authorizer = Authorizer(super_users_of(settings.super_users or ""), settings.allows_without_acls is True)
    entries: dict[bytes, AccessControlEntryRecord | None] = {
        number.to_bytes(16, "big"): AccessControlEntryRecord(
            number.to_bytes(16, "big"),
            binding.resource_type,
            binding.resource_name,
            binding.pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission,
        )
        for number, binding in enumerate(bindings)
    }
    authorizer.apply(entries)
    authorizer.complete_load()
    return authorizer


def _answer(
    authorizer: Authorizer,
    bindings: list[AclBinding],
    settings: Settings,
    principal: str,
    host: str,
    operation: int,
    resource: Resource,
) -> Answer:
    from moldau.security.authorizer import Acl, SessionRights

    decision = SessionRights(authorizer, principal, host).decide(operation, resource.type, resource.name)
    unknown = () if decision.is_allowed else _unknown(settings, principal, has_entries=bool(bindings))
    if isinstance(decision, Acl):
        acl = _binding_of(decision, bindings)
        return Answer(decision.is_allowed, "acl", f"{binding_text(acl)}.", acl, unknown)
    if decision.rule == "SuperUser":
        return Answer(True, "super_user", f"{principal} is in super.users: it may do everything.")
    if decision.is_allowed:
        return Answer(True, ALLOW_WITHOUT, f"No entry is about it, and {ALLOW_WITHOUT} is true.")
    if not bindings:
        return Answer(False, "no_acl", "No entry is about it, and what nobody allowed is denied.", unknown=unknown)
    return Answer(False, "no_matching_acl", "There are entries about it, but none allows this.", unknown=unknown)


def _unknown(settings: Settings, principal: str, has_entries: bool) -> tuple[str, ...]:
    """What could turn a no into a yes and is not told by the broker."""
    found = []
    if settings.super_users is None:
        found.append(f"Whether {principal} is one of super.users, who may do everything, the broker does not tell.")
    if settings.allows_without_acls is None and not has_entries:
        found.append(f"Whether {ALLOW_WITHOUT} is true, which would allow it, the broker does not tell.")
    return tuple(found)


def _binding_of(acl: Acl, bindings: list[AclBinding]) -> AclBinding:
    wanted = (acl.resource_type, acl.name, acl.principal, acl.operation, acl.permission, acl.host, acl.pattern)
    return next(binding for binding in bindings if tuple(binding) == wanted)


def _question(principal: str, host: str, operation: int, resource: Resource, verb: str) -> str:
    place = f" from {host}" if host else ""
    what = "do everything with" if operation == rights.ALL else operation_word(operation)
    return f"{principal} {verb} {what} {resource_text(resource)}{place}"


def _print(answer: Answer, principal: str, host: str, operation: int, resource: Resource) -> None:
    word = Styled("yes", fg="green", bold=True) if answer.is_allowed else Styled("no", fg="red", bold=True)
    verb = "may" if answer.is_allowed else "may not"
    doubt = "As far as the cluster tells, " if answer.unknown else ""
    print_title(f"{doubt}{_question(principal, host, operation, resource, verb)}.")
    print_fields([("Allowed", word), ("Because", answer.sentence)])
    for sentence in answer.unknown:
        print_note(sentence)
    if answer.elsewhere:
        print_note("There are entries for single addresses too: --host ADDRESS takes them into account.")
    for address, other in answer.elsewhere:
        if other.is_allowed != answer.is_allowed:
            print_note(f"From {address} it is {'allowed' if other.is_allowed else 'denied'}: {other.sentence}")


def _json(answer: Answer, principal: str, host: str, operation: int, resource: Resource) -> dict[str, object]:
    return {
        "principal": principal,
        "operation": rights.OPERATION_NAMES[operation],
        "resource_type": rights.RESOURCE_NAMES[resource.type],
        "resource_name": resource.name,
        "host": host or None,
        "allowed": answer.is_allowed,
        "decided_by": answer.decided_by,
        "acl": None if answer.acl is None else binding_json(answer.acl),
        "unknown": list(answer.unknown),
        "single_addresses": [
            {
                "host": address,
                "allowed": other.is_allowed,
                "decided_by": other.decided_by,
                "acl": None if other.acl is None else binding_json(other.acl),
            }
            for address, other in answer.elsewhere
        ],
    }
