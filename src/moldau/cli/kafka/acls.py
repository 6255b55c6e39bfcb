"""`kafka-acls`: lists, adds and removes ACLs.

The real tool walks sets whose order changes from run to run; here resources and entries come in a fixed order.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.acls_options import (
    Entries,
    Entry,
    Pattern,
    entries_of,
    entries_to_add,
    named_resources,
    parse,
    principals_of,
    split,
)
from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, Connect, ask, connect
from moldau.cli.kafka.java_failures import EXECUTION, executed, wrapped
from moldau.cli.kafka.options import JavaFailure, Options

if TYPE_CHECKING:
    from moldau.client.admin import AclBinding, AclFilter, Admin

NULL_POINTER = "java.lang.NullPointerException"
READ_LINE = "java.io.Console.readLine()"


def main(arguments: list[str], connect: Connect = connect) -> int:
    options = parse(arguments)
    try:
        with ask("", lambda: _open(options, connect)) as admin:
            if options.has("add"):
                _add(admin, options)
            elif options.has("remove"):
                _remove(admin, options)
            else:
                _list(admin, options)
    except JavaFailure as failure:
        print(f"Error while executing ACL command: {failure.message}\n{failure.java_text()}\n")
        return 1
    return 0


def _open(options: Options, connect: Connect) -> Admin:
    config = options.text("command-config")
    if options.has("command-config") and config is None:
        print("Did not load any properties since the property file is not specified")
    return connect(options.text("bootstrap-server"), config, options.text("bootstrap-controller"))


# Add


def _add(admin: Admin, options: Options) -> None:
    for resource, wanted in entries_to_add(options).items():
        present = _find(admin, [resource]).get(resource, [])
        for entry in wanted:
            if entry in present:
                print(f"Acl (pattern={resource}, entry={entry}) already exists.")
        absent = [entry for entry in wanted if entry not in present]
        if absent:
            print(f"Adding ACLs for resource `{resource}`: \n {_lines(absent)}\n")
            _create(admin, resource, absent)


def _create(admin: Admin, resource: Pattern, entries: list[Entry]) -> None:
    from moldau.client.admin import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

    if not resource.name:
        # Our client does not even send that.
        raise wrapped(EXECUTION, JavaFailure(ERRORS_PACKAGE + "InvalidRequestException", "Invalid empty resource name"))
    bindings = [
        AclBinding(
            ResourceType(resource.resource_type),
            resource.name,
            entry.principal,
            AclOperation(entry.operation),
            AclPermission(entry.permission),
            entry.host,
            PatternType(resource.pattern_type),
        )
        for entry in entries
    ]
    executed("createAcls", lambda: [outcome.get() for outcome in admin.create_acls(bindings).values()])


# Remove


def _remove(admin: Admin, options: Options) -> None:
    for resource, entries in entries_of(options).items():
        if _confirms(options, resource, entries):
            _delete(admin, [_filter(resource, entry) for entry in entries] or [_filter(resource)])


def _delete(admin: Admin, filters: list[AclFilter]) -> None:
    found = executed("deleteAcls", lambda: [outcome.get() for outcome in admin.delete_acls(filters).values()])
    executed("deleteAcls", lambda: [removed.get() for matching in found for removed in matching.values()])


def _confirms(options: Options, resource: Pattern, entries: list[Entry]) -> bool:
    if options.has("force"):
        return True
    if entries:
        print(f"Are you sure you want to remove ACLs: \n {_lines(entries)}\n from resource filter `{resource}`? (y/n)")
    else:
        print(f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)")
    return _read_console().lower() == "y"


def _read_console() -> str:
    """A line that a person typed. From a pipe nobody can confirm: the real tool fails there, and removes nothing."""
    sys.stdout.flush()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        missing = f'Cannot invoke "{READ_LINE}" because the return value of "java.lang.System.console()" is null'
        raise JavaFailure(NULL_POINTER, missing)
    line = sys.stdin.readline()
    if not line:
        call = "String.equalsIgnoreCase(String)"
        raise JavaFailure(NULL_POINTER, f'Cannot invoke "{call}" because the return value of "{READ_LINE}" is null')
    return line.rstrip("\r\n")


# List


def _list(admin: Admin, options: Options) -> None:
    resources = named_resources(options)
    principals = principals_of(options, "principal")
    found = _find(admin, resources)
    if not principals:
        _print(found)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        own = {
            resource: [entry for entry in entries if entry.principal == principal]
            for resource, entries in found.items()
        }
        _print({resource: entries for resource, entries in own.items() if entries})


def _find(admin: Admin, resources: list[Pattern]) -> Entries:
    """The entries about these resources, or about all where there are none."""
    found: Entries = {}
    filters: list[AclFilter | None] = [_filter(resource) for resource in resources]
    for wanted in filters or [None]:
        for pattern, entry in map(split, _described(admin, wanted)):
            entries = found.setdefault(pattern, [])
            if entry not in entries:
                entries.append(entry)
    return {pattern: found[pattern] for pattern in sorted(found)}


def _described(admin: Admin, wanted: AclFilter | None) -> list[AclBinding]:
    return executed("describeAcls", lambda: admin.describe_acls(wanted))


def _print(found: Entries) -> None:
    for resource, entries in found.items():
        print(f"Current ACLs for resource `{resource}`:\n{_lines(entries)}\n")


def _lines(entries: list[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


def _filter(resource: Pattern, entry: Entry | None = None) -> AclFilter:
    from moldau.client.admin import AclFilter, AclOperation, AclPermission, PatternType, ResourceType

    found = AclFilter(
        ResourceType(resource.resource_type), resource.name, pattern_type=PatternType(resource.pattern_type)
    )
    if entry is None:
        return found
    return found._replace(
        principal=entry.principal,
        host=entry.host,
        operation=AclOperation(entry.operation),
        permission=AclPermission(entry.permission),
    )
