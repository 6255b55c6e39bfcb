"""The options of `kafka-share-groups`, and which of them go together."""

from __future__ import annotations

from moldau.cli.kafka.group_options import (
    check_available,
    check_both_ways,
    check_delete_offsets,
    check_one_scenario,
    check_unmixed,
    check_views,
)
from moldau.cli.kafka.options import (
    OPTIONAL_VALUE,
    VALUE,
    Exit,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_required,
)

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCENARIOS = ("to-datetime", "to-earliest", "to-latest")
# Options that are allowed beside certain actions only.
_WITH = {
    "members": ("describe",),
    "offsets": ("describe",),
    "state": ("describe", "list"),
    "verbose": ("describe",),
}

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("group", "The share group; --describe and --delete take many.", VALUE, described_as="share group"),
        Option("all-groups", "All share groups."),
        Option("topic", "A topic; in a reset also some of its partitions: topic:0,1.", VALUE, described_as="topic"),
        Option("all-topics", "All topics that the group has offsets of."),
        Option("list", "List the share groups."),
        Option("describe", "Show the groups: start offsets and lag, or what --members or --state ask for."),
        Option("delete", "Delete share groups without members, with all they know."),
        Option("delete-offsets", "Forget the offsets of topics."),
        Option("reset-offsets", "Show, and with --execute set, new start offsets of a group without members."),
        Option("timeout", "How long to wait for responses.", VALUE, "Long", "timeout (ms)", 5000),
        Option("dry-run", "Show the new offsets and change nothing."),
        Option("execute", "Set the new offsets."),
        Option("to-datetime", "Reset to a time: 'YYYY-MM-DDThh:mm:ss.sss'.", VALUE, described_as="datetime"),
        Option("to-earliest", "Reset to the first offset."),
        Option("to-latest", "Reset to the end."),
        Option("members", "Describe the members."),
        Option("offsets", "Describe the start offsets; the same as neither --members nor --state."),
        Option("state", "Describe the state; with --list: show states, or only groups in these.", OPTIONAL_VALUE),
        Option("verbose", "Describe more."),
    ]
)


def check_options(options: Options) -> None:
    """Ends the tool when the command line makes no sense, in the order in which the real tool looks."""
    check_available(options, _WITH)
    check_help_or_version(options, "List, describe and delete share groups, and reset their offsets.")
    check_required(options, "bootstrap-server")
    _check_describe(options)
    _check_deletes(options)
    _check_reset(options)
    check_unmixed(options)
    if sum(options.has(action) for action in ACTIONS) != 1:
        names = ", ".join(f"--{action}" for action in ACTIONS)
        raise _usage(f"Command must include exactly one action: {names}.")


def _check_describe(options: Options) -> None:
    if not options.has("describe"):
        return
    if not options.has("group") and not options.has("all-groups"):
        raise _usage("Option [describe] takes one of these options: [all-groups], [group]")
    check_views(options, PARSER)


def _check_deletes(options: Options) -> None:
    if options.has("delete"):
        if not options.has("group") and not options.has("all-groups"):
            raise _usage("Option [delete] takes the options [group] or [all-groups]")
        if options.has("group") and options.has("all-groups"):
            raise _usage("Option [delete] takes either [group] or [all-groups], not both.")
        if options.has("topic"):
            raise _usage("Option [delete] does not take the option: [topic]")
    check_delete_offsets(options, PARSER)


def _check_reset(options: Options) -> None:
    if not options.has("reset-offsets"):
        return
    check_both_ways(options, PARSER)
    if not options.has("dry-run") and not options.has("execute"):
        raise _usage("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not options.has("group"):
        raise _usage("Option [reset-offsets] takes the option: [group]")
    if not options.has("topic") and not options.has("all-topics"):
        raise _usage("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    if not any(map(options.has, SCENARIOS)):
        names = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        raise _usage(f"Option [reset-offsets] takes one of these options: {names}")
    check_one_scenario(options, SCENARIOS)


def _usage(message: str) -> Exit:
    return Exit(1, message, PARSER)
