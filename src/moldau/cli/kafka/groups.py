"""`kafka-groups`: lists the groups of all kinds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect
from moldau.cli.kafka.consumer_groups_text import pad, width_of
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, NO_FILE, list_all
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.options import (
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_invalid,
)

if TYPE_CHECKING:
    from moldau.client.admin import GroupListing

ABOUT = "List the groups of all kinds."
LOGGER = "org.apache.kafka.tools.GroupsCommand"
TYPES = ("Classic", "Consumer", "Share", "Streams")
WIDTH = 20
TIMEOUT_MS = 30_000

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("list", "List the groups."),
        Option("group-type", "Only groups of this type: classic, consumer, share, streams.", VALUE, "String", "type"),
        Option("protocol", "Only groups of this protocol.", VALUE, described_as="protocol"),
        Option("consumer", "Only groups of consumers, of both protocols, and groups that have offsets alone."),
        Option("share", "Only share groups."),
        Option("streams", "Only streams groups."),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = _parse(arguments)
        _check(options)
        config_file = options.text("command-config")
        found = _list(options.text("bootstrap-server"), config_file, connect)
    except JavaFailure as failure:
        sys.stderr.write(f"{failure.message}\n{failure.java_text()}\n\n")
        return 1
    if found is None:
        return 1
    _print_groups([group for group in found if _is_wanted(group, options)])
    return 0


def _list(servers: str | None, config_file: str | None, connect: Connect) -> list[GroupListing] | None:
    """All groups; None after a failure that was told."""
    try:
        with ask("", lambda: connect(servers, config_file)) as admin:
            return list_all(lambda: admin.list_groups(timeout_ms=TIMEOUT_MS).get())
    except JavaFailure as failure:
        if failure.class_name == NO_FILE:
            raise
        print(f"Error while executing groups command : {failure.message}")
        sys.stdout.flush()
        sys.stderr.write(log_line("ERROR", failure.java_text() + "\n", LOGGER))
        return None


def _parse(arguments: list[str]) -> Options:
    try:
        options = PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, failure.message or "", PARSER) from None
    if not options.has("bootstrap-server") and not options.has("help") and not options.has("version"):
        raise Exit(1, "Missing required option(s) [bootstrap-server]", PARSER)
    return options


def _check(options: Options) -> None:
    check_help_or_version(options, ABOUT)
    if not options.has("list"):
        raise Exit(1, "Command must include exactly one action: --list.", PARSER)
    if options.has("group-type") and _canonical(options.text("group-type") or "") is None:
        raise JavaFailure(ILLEGAL_ARGUMENT, "--group-type must be a valid group type.")
    check_invalid(options, "consumer", "group-type", "protocol", "share", "streams")
    check_invalid(options, "share", "consumer", "group-type", "protocol", "streams")
    check_invalid(options, "streams", "consumer", "group-type", "protocol", "share")


def _canonical(name: str) -> str | None:
    return next((each for each in TYPES if each.lower() == name.lower()), None)


def _is_wanted(group: GroupListing, options: Options) -> bool:
    kind, protocol = options.text("group-type"), options.text("protocol")
    if kind is not None or protocol is not None:
        return (kind is None or _canonical(group.type) == _canonical(kind)) and (
            protocol is None or group.protocol_type == protocol
        )
    found = _canonical(group.type)
    if options.has("consumer"):
        return group.protocol_type in ("consumer", "") or found == "Consumer"
    if options.has("share"):
        return found == "Share"
    return found == "Streams" if options.has("streams") else True


def _print_groups(groups: list[GroupListing]) -> None:
    from moldau.cli.kafka.java_order import hash_map_order

    by_id = {group.group_id: group for group in groups}
    rows = [
        (group_id, _shown_type(by_id[group_id].type), by_id[group_id].protocol_type)
        for group_id in hash_map_order(by_id)
    ]
    width = max([WIDTH, *(width_of(cell) for row in rows for cell in row)])
    print(" ".join(pad(title, width) for title in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        # Each cell has a blank behind it, the last one too; only the titles do without.
        print("".join(f"{pad(cell, width)} " for cell in row))


def _shown_type(name: str) -> str:
    return "" if not name else _canonical(name) or "Unknown"
