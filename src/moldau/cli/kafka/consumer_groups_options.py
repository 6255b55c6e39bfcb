"""The options of `kafka-consumer-groups`, and which of them go together."""

from __future__ import annotations

import sys

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

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)
# Options that are allowed beside certain actions only.
_WITH = {
    "members": ("describe",),
    "verbose": ("describe",),
    "offsets": ("describe",),
    "state": ("describe", "list"),
    "type": ("list",),
}
_NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require"
    " either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are"
    " scripting this command and want to keep the current default behavior without prompting.\n"
)

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("group", "The group; may be given many times.", VALUE, described_as="consumer group"),
        Option("all-groups", "All groups of consumers."),
        Option("topic", "A topic, or some of its partitions: topic:0,1.", VALUE, described_as="topic"),
        Option("all-topics", "All topics that the group has offsets of."),
        Option("list", "List the groups."),
        Option("describe", "Show the groups: offsets and lag, or what --members or --state ask for."),
        Option("delete", "Delete groups with their offsets."),
        Option("delete-offsets", "Delete the offsets of topics."),
        Option("reset-offsets", "Show, and with --execute set, new offsets of groups without members."),
        Option("validate-regex", "Say whether this is a regular expression of RE2.", VALUE),
        Option("timeout", "How long to wait for responses.", VALUE, "Long", "timeout (ms)", 5000),
        Option("dry-run", "Show the new offsets and change nothing."),
        Option("execute", "Set the new offsets."),
        Option("export", "Print the new offsets as CSV."),
        Option("to-offset", "Reset to this offset.", VALUE, "Long", "offset"),
        Option("from-file", "Reset to the offsets in a CSV file.", VALUE, described_as="path to CSV file"),
        Option("to-datetime", "Reset to a time: 'YYYY-MM-DDThh:mm:ss.sss'.", VALUE, described_as="datetime"),
        Option("by-duration", "Reset to a time that long ago: 'PnDTnHnMnS'.", VALUE, described_as="duration"),
        Option("to-earliest", "Reset to the first offset."),
        Option("to-latest", "Reset to the end."),
        Option("to-current", "Reset to the committed offset."),
        Option("shift-by", "Move the committed offset by so many, back if negative.", VALUE, "Long", "offsets"),
        Option("members", "Describe the members."),
        Option("offsets", "Describe the offsets; the same as neither --members nor --state."),
        Option("state", "Describe the state; with --list: show states, or only groups in these.", OPTIONAL_VALUE),
        Option("type", "With --list: show types, or only groups of these.", OPTIONAL_VALUE),
        Option("verbose", "Describe more."),
    ]
)


def check_options(options: Options) -> None:
    """Ends the tool when the command line makes no sense, in the order in which the real tool looks."""
    check_available(options, _WITH)
    check_help_or_version(options, "List, describe and delete groups of consumers, and reset their offsets.")
    if not options.has("validate-regex"):
        check_required(options, "bootstrap-server")
    _check_describe(options)
    _check_deletes(options)
    _check_reset(options)
    check_unmixed(options)
    if sum(options.has(action) for action in ACTIONS) != 1:
        names = ", ".join(f"--{action}" for action in ACTIONS)
        raise _usage(f"Command must include exactly one action: {names}")


def _check_describe(options: Options) -> None:
    if not options.has("describe"):
        return
    _require_groups(options, "describe")
    check_views(options, PARSER)


def _check_deletes(options: Options) -> None:
    if options.has("delete"):
        _require_groups(options, "delete")
        if options.has("topic"):
            raise _usage("The consumer does not support topic-specific offset deletion from a consumer group.")
    check_delete_offsets(options, PARSER)


def _check_reset(options: Options) -> None:
    if not options.has("reset-offsets"):
        return
    check_both_ways(options, PARSER)
    if not options.has("dry-run") and not options.has("execute"):
        sys.stderr.write(_NO_ACTION)
    _require_groups(options, "reset-offsets")
    check_one_scenario(options, SCENARIOS)


def _require_groups(options: Options, action: str) -> None:
    if not options.has("group") and not options.has("all-groups"):
        raise _usage(f"Option [{action}] takes one of these options: [group], [all-groups]")


def _usage(message: str) -> Exit:
    return Exit(1, message, PARSER)
