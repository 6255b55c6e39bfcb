"""`moldau acl list|create|delete`: who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from moldau.cli.acl_words import (
    COLUMNS,
    OPERATIONS,
    TYPE_CHOICE,
    TYPES,
    binding_cells,
    binding_json,
    binding_text,
    complete_names,
    parse_host,
    parse_operation,
    parse_operations,
    parse_principal,
    parse_resource,
)
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import finish, print_error, print_json, print_note, print_table, say

if TYPE_CHECKING:
    from moldau.client.admin import AclBinding, AclFilter

TYPE_HELP = f"TYPE is one of {', '.join(TYPES)}."


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds TYPE, NAME and the options that say which entries; the command reads them with read_filter()."""
    for option in (
        click.option("--deny", "only_deny", is_flag=True, help="Only entries that deny."),
        click.option("--allow", "only_allow", is_flag=True, help="Only entries that allow."),
        click.option("--host", metavar="ADDRESS", help="Only entries for this address; '*': those for all addresses."),
        click.option("--operation", metavar="OPERATION", help=f"Only this one of {', '.join(OPERATIONS)}."),
        click.option("--principal", metavar="TYPE:NAME", help="Only entries about this one, such as User:anna."),
        click.option("--prefix", "is_prefix", is_flag=True, help="NAME is a prefix that entries name."),
        click.option("--literal", "is_literal", is_flag=True, help="NAME is what it is, although it ends with a star."),
        click.option(
            "--applying",
            is_flag=True,
            help="All entries that hold for NAME: its own, those of its prefixes, and those of all names.",
        ),
        click.argument("name", required=False, shell_complete=complete_names),
        click.argument("resource_type", required=False, metavar="[TYPE]", type=TYPE_CHOICE),
    ):
        command = option(command)
    return command


def read_filter(
    *,
    resource_type: str | None,
    name: str | None,
    applying: bool,
    is_prefix: bool,
    is_literal: bool,
    principal: str | None,
    operation: str | None,
    host: str | None,
    only_allow: bool,
    only_deny: bool,
) -> AclFilter:
    """The filter that the options of filter_options() mean."""
    from moldau.client.admin import AclFilter, AclOperation, AclPermission, PatternType, ResourceType

    if only_allow and only_deny:
        raise click.UsageError("--allow and --deny are opposites: choose one.")
    if name is None and (is_prefix or applying or is_literal):
        raise click.UsageError("--prefix, --literal and --applying are about a NAME: say TYPE and NAME.")
    if applying and is_prefix:
        raise click.UsageError("--applying finds the prefixes of NAME by itself: leave --prefix out.")
    found = AclFilter(
        principal=None if principal is None else parse_principal(principal),
        operation=AclOperation.ANY if operation is None else AclOperation(parse_operation(operation)),
        permission=AclPermission.DENY if only_deny else AclPermission.ALLOW if only_allow else AclPermission.ANY,
        host=None if host is None else parse_host(host),
    )
    if resource_type is None:
        return found
    if name is None:
        return found._replace(resource_type=ResourceType(TYPES[resource_type.lower()]))
    resource = parse_resource(resource_type, name, is_prefix, is_literal)
    pattern = PatternType.MATCH if applying else PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    return found._replace(resource_type=ResourceType(resource.type), resource_name=resource.name, pattern_type=pattern)


@click.command("list", epilog=TYPE_HELP)
@filter_options
@format_option
@connected
def list_acls(connection: Connection, output_format: str, **chosen: object) -> None:
    """List the entries that allow and deny, all of them or some.

    \b
    Examples:
      moldau acl list
      moldau acl list --principal User:anna
      moldau acl list topic orders --applying       all that is said about this topic
      moldau acl list topic orders- --prefix        what is said about topics that begin so
    """
    wanted = read_filter(**chosen)  # type: ignore[arg-type]
    with open_admin(connection) as admin:
        found = admin.describe_acls(wanted)
    if output_format == "json":
        print_json([binding_json(binding) for binding in found])
    elif found:
        _print(found)
    else:
        print_note("There are no such entries." if any(chosen.values()) else "There are no entries yet.")


def _print(bindings: list[AclBinding]) -> None:
    ordered = sorted(bindings, key=lambda binding: (binding.principal, binding))
    print_table(COLUMNS, [binding_cells(binding) for binding in ordered])


@click.command(epilog=TYPE_HELP)
@click.argument("principal")
@click.argument("operations", metavar="OPERATION[,...]")
@click.argument("resource_type", metavar="TYPE", type=TYPE_CHOICE)
@click.argument("name", required=False, shell_complete=complete_names)
@click.option("--prefix", "is_prefix", is_flag=True, help="For all names that begin with NAME.")
@click.option("--literal", "is_literal", is_flag=True, help="NAME is what it is, although it ends with a star.")
@click.option("--deny", is_flag=True, help="Deny it. What is denied stays so, whatever else allows it.")
@click.option("--host", "hosts", multiple=True, metavar="ADDRESS", help="Only from this address; may be repeated.")
@format_option
@connected
def create(
    connection: Connection,
    principal: str,
    operations: str,
    resource_type: str,
    name: str | None,
    is_prefix: bool,
    is_literal: bool,
    deny: bool,
    hosts: tuple[str, ...],
    output_format: str,
) -> None:
    """Allow or deny someone something.

    \b
    Examples:
      moldau acl create User:anna read topic orders
      moldau acl create User:anna read group billing
      moldau acl create User:etl read,write topic sales- --prefix
      moldau acl create 'User:*' describe topic '*'
      moldau acl create User:bob write topic orders --deny --host 10.0.0.7
      moldau acl create User:ops alter cluster
    """
    from moldau.client.admin import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

    resource = parse_resource(resource_type, name, is_prefix, is_literal)
    bindings = [
        AclBinding(
            ResourceType(resource.type),
            resource.name,
            parse_principal(principal),
            AclOperation(operation),
            AclPermission.DENY if deny else AclPermission.ALLOW,
            parse_host(host),
            PatternType.PREFIXED if resource.is_prefix else PatternType.LITERAL,
        )
        for operation in parse_operations(operations, resource.type)
        for host in dict.fromkeys(hosts or ("*",))
    ]
    with open_admin(connection) as admin:
        outcomes = admin.create_acls(bindings)
    rows: list[dict[str, object]] = []
    for binding, outcome in outcomes.items():
        if outcome.error is None:
            rows.append({**binding_json(binding), "created": True})
            say(output_format, f"{binding_text(binding)}.")
        else:
            rows.append({**binding_json(binding), "error": outcome.error.name, "message": outcome.error.message})
            print_error(explain(outcome.error) or outcome.error.message)
    finish(output_format, rows, any(outcome.error is not None for outcome in outcomes.values()))


@click.command(epilog=TYPE_HELP)
@filter_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@format_option
@connected
def delete(connection: Connection, yes: bool, output_format: str, **chosen: object) -> None:
    """Delete entries: shows which ones, asks, and deletes exactly those.

    \b
    Examples:
      moldau acl delete --principal User:bob
      moldau acl delete topic orders --principal User:anna --operation read
      moldau acl delete topic orders- --prefix --yes
    """
    wanted = read_filter(**chosen)  # type: ignore[arg-type]
    if not any(chosen.values()):
        raise click.UsageError("Say which entries: TYPE and NAME, --principal, or others of the options.")
    with open_admin(connection) as admin:
        found = admin.describe_acls(wanted)
        if not found:
            print_error("There are no such entries. `moldau acl list` shows which there are.")
            finish(output_format, [], True)
        if not yes:
            _confirm(found, output_format)
        outcomes = admin.delete_acls([_exact(binding) for binding in found])
    rows: list[dict[str, object]] = []
    errors = [outcome.error for outcome in outcomes.values()]
    for binding, error in zip(found, errors, strict=True):
        if error is None:
            rows.append({**binding_json(binding), "deleted": True})
        else:
            rows.append({**binding_json(binding), "error": error.name, "message": error.message})
            print_error(explain(error) or error.message)
    deleted = errors.count(None)
    if deleted:
        say(output_format, f"Deleted {deleted:,} {'entry' if deleted == 1 else 'entries'}.")
    finish(output_format, rows, deleted < len(found))


def _confirm(found: list[AclBinding], output_format: str) -> None:
    if output_format == "json":
        raise click.UsageError("Programs cannot be asked: --format json deletes with --yes only.")
    _print(found)
    what = "this entry" if len(found) == 1 else f"these {len(found):,} entries"
    click.confirm(f"Delete {what}?", abort=True)


def _exact(binding: AclBinding) -> AclFilter:
    """The filter that finds this entry alone: what came later stays."""
    from moldau.client.admin import AclFilter

    return AclFilter(
        binding.resource_type,
        binding.resource_name,
        binding.principal,
        binding.operation,
        binding.permission,
        binding.host,
        binding.pattern_type,
    )
