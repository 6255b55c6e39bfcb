"""`kafka-consumer-groups`: lists, describes, resets and deletes groups of consumers and their offsets."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect
from moldau.cli.kafka.consumer_groups_options import PARSER, check_options
from moldau.cli.kafka.consumer_groups_text import STATES, pad, print_error, width_of
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, NO_FILE, RUNTIME, executed, list_all, unchecked, wrapped
from moldau.cli.kafka.options import Exit, JavaFailure, Options

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupListing

TYPES = ("Classic", "Consumer")
UNKNOWN = "Unknown"
GROUP_WIDTH = 15


def main(arguments: list[str], connect: Connect = connect) -> int:
    options = PARSER.parse(arguments)
    check_options(options)
    if options.has("validate-regex"):
        from moldau.cli.kafka.consumer_groups_regex import validate

        print(validate(options.text("validate-regex") or ""))
        return 0
    try:
        _run(options, connect)
    except JavaFailure as failure:
        if failure.class_name == ILLEGAL_ARGUMENT:
            raise Exit(1, failure.message or "", PARSER) from None
        print_error(f"Executing consumer group command failed due to {failure.message}")
        sys.stdout.flush()
        sys.stderr.write(f"{failure.java_text()}\n")
    return 0


def _run(options: Options, connect: Connect) -> None:
    try:
        admin = ask("", lambda: connect(options.text("bootstrap-server"), options.text("command-config")))
    except JavaFailure as failure:
        raise wrapped(RUNTIME, failure) if failure.class_name == NO_FILE else failure from None
    with admin:
        # Read here, whatever is to be done: that decides what an unreadable number does.
        options.longs("to-offset")
        options.long("shift-by")
        timeout_ms = max(options.long("timeout") or 0, 0)
        if options.has("list"):
            _list(admin, options, timeout_ms)
        elif options.has("describe"):
            from moldau.cli.kafka.consumer_groups_describe import describe

            describe(admin, options, _chosen(admin, options, timeout_ms), timeout_ms)
        elif options.has("delete"):
            from moldau.cli.kafka.consumer_groups_delete import delete_groups

            delete_groups(admin, _chosen(admin, options, timeout_ms), timeout_ms)
        elif options.has("reset-offsets"):
            from moldau.cli.kafka.consumer_groups_reset import reset_offsets

            reset_offsets(admin, options, _chosen(admin, options, timeout_ms), timeout_ms)
        else:
            from moldau.cli.kafka.consumer_groups_delete import delete_offsets

            delete_offsets(admin, options.text("group") or "", options.values("topic"), timeout_ms)


def _chosen(admin: Admin, options: Options, timeout_ms: int) -> list[str]:
    """The groups that --group or --all-groups mean."""
    if not options.has("all-groups"):
        return list(dict.fromkeys(options.values("group")))
    return [group.group_id for group in _in_order(unchecked("", lambda: _listing(admin, timeout_ms)))]


def _list(admin: Admin, options: Options, timeout_ms: int) -> None:
    with_type, with_state = options.has("type"), options.has("state")
    if not with_type and not with_state:
        for group in _in_order(unchecked("", lambda: _listing(admin, timeout_ms))):
            print(group.group_id)
        return
    types, states = read_types(options.text("type")), read_states(options.text("state"))
    found = _in_order(executed("", lambda: _listing(admin, timeout_ms, states, types)))
    width = max([GROUP_WIDTH, *(width_of(group.group_id) for group in found)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [(group.group_id, _canonical(group.type, TYPES), _canonical(group.state, STATES)) for group in found]
    for group_id, group_type, state in rows:
        shown = [pad(group_id, width)]
        shown += [pad(group_type, 20)] if with_type else []
        shown += [pad(state, 20)] if with_state else []
        print(" ".join(shown))


def _listing(
    admin: Admin, timeout_ms: int, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[GroupListing]:
    return list_all(lambda: admin.list_consumer_groups(states, types, timeout_ms).get())


def _in_order(groups: list[GroupListing]) -> list[GroupListing]:
    from moldau.cli.kafka.java_order import hash_map_order

    by_id = {group.group_id: group for group in groups}
    return [by_id[group_id] for group_id in hash_map_order(by_id)]


def read_states(text: str | None) -> list[str]:
    """The states of a list; none where there is no list."""
    return _read_names(text, STATES, "Invalid state list '{}'. Valid states are: {}")


def read_types(text: str | None) -> list[str]:
    return _read_names(text, TYPES, "Invalid types list '{}'. Valid types are: {}")


def _read_names(text: str | None, known: tuple[str, ...], refusal: str) -> list[str]:
    if not text:
        return []
    found = [_canonical(part.strip(), known) for part in text.split(",")]
    if UNKNOWN in found:
        raise JavaFailure(ILLEGAL_ARGUMENT, refusal.format(text, ", ".join(known)))
    return list(dict.fromkeys(found))


def _canonical(name: str, known: tuple[str, ...]) -> str:
    return next((each for each in known if each.lower() == name.lower()), UNKNOWN)
