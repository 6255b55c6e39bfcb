"""`kafka-share-groups`: lists, describes, resets and deletes share groups and their offsets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect
from moldau.cli.kafka.consumer_groups_text import pad, print_error, width_of
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, NO_FILE, RUNTIME, executed, unchecked, wrapped
from moldau.cli.kafka.options import Exit, JavaFailure, Options
from moldau.cli.kafka.share_groups_calls import list_groups
from moldau.cli.kafka.share_groups_options import PARSER, check_options

if TYPE_CHECKING:
    from moldau.client.admin import Admin

STATES = ("Empty", "Dead", "Stable")
GROUP_WIDTH = 15


def main(arguments: list[str], connect: Connect = connect) -> int:
    options = PARSER.parse(arguments)
    check_options(options)
    try:
        _run(options, connect)
    except JavaFailure as failure:
        if failure.class_name == ILLEGAL_ARGUMENT:
            raise Exit(1, failure.message or "", PARSER) from None
        print_error(f"Executing share group command failed due to {failure.message}")
        sys.stdout.flush()
        sys.stderr.write(f"{failure.java_text()}\n")
    return 0


def _run(options: Options, connect: Connect) -> None:
    try:
        admin = ask("", lambda: connect(options.text("bootstrap-server"), options.text("command-config")))
    except JavaFailure as failure:
        raise wrapped(RUNTIME, failure) if failure.class_name == NO_FILE else failure from None
    with admin:
        timeout_ms = max(options.long("timeout") or 0, 0)
        if options.has("list"):
            _list(admin, options, timeout_ms)
        elif options.has("describe"):
            from moldau.cli.kafka.share_groups_describe import describe

            describe(admin, options, _chosen(admin, options, timeout_ms), timeout_ms)
        elif options.has("delete"):
            from moldau.cli.kafka.share_groups_delete import delete_groups

            delete_groups(admin, None if options.has("all-groups") else options.values("group"), timeout_ms)
        elif options.has("reset-offsets"):
            from moldau.cli.kafka.share_groups_reset import reset_offsets

            reset_offsets(admin, options, timeout_ms)
        else:
            from moldau.cli.kafka.share_groups_delete import delete_offsets

            delete_offsets(admin, options.text("group") or "", options.values("topic"), timeout_ms)


def _chosen(admin: Admin, options: Options, timeout_ms: int) -> list[str]:
    """The groups that --group or --all-groups mean."""
    if not options.has("all-groups"):
        return list(dict.fromkeys(options.values("group")))
    return [group.group_id for group in unchecked("", lambda: list_groups(admin, timeout_ms))]


def _list(admin: Admin, options: Options, timeout_ms: int) -> None:
    if not options.has("state"):
        for group in unchecked("", lambda: list_groups(admin, timeout_ms)):
            print(group.group_id)
        return
    states = read_states(options.text("state"))
    found = executed("", lambda: list_groups(admin, timeout_ms, states))
    width = max([GROUP_WIDTH, *(width_of(group.group_id) for group in found)])
    print(f"{pad('GROUP', width)} STATE")
    for group in found:
        print(f"{pad(group.group_id, width)} {_canonical(group.state) or 'Unknown'}")


def read_states(text: str | None) -> list[str]:
    """The states of a list; none where there is no list. Java's split drops empty pieces at the end."""
    if not text:
        return []
    pieces = text.rstrip(",").split(",") if text.rstrip(",") else []
    found = [_canonical(piece.strip()) for piece in pieces]
    known = [state for state in found if state is not None]
    if len(known) < len(found):
        raise JavaFailure(ILLEGAL_ARGUMENT, f"Invalid state list '{text}'. Valid states are: {', '.join(STATES)}")
    return list(dict.fromkeys(known))


def _canonical(name: str) -> str | None:
    return next((each for each in STATES if each.lower() == name.lower()), None)
