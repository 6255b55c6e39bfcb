"""`kafka-reassign-partitions`: plans, starts, watches and cancels moves of replicas to brokers and directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect, java_text, read_text
from moldau.cli.kafka.options import (
    OPTIONAL_VALUE,
    VALUE,
    Exit,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_required,
)

if TYPE_CHECKING:
    from moldau.client.admin import Admin

TERSE = "org.apache.kafka.tools.TerseException"

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
COMMON = ("bootstrap-server", "command-config")
PERMITTED = {
    "verify": ("preserve-throttles", *COMMON),
    "generate": ("disable-rack-aware", *COMMON),
    "execute": (
        "additional",
        "replica-alter-log-dirs-throttle",
        "throttle",
        "timeout",
        "disallow-replication-factor-change",
        *COMMON,
    ),
    "cancel": ("preserve-throttles", "timeout", "bootstrap-controller", *COMMON),
    "list": ("bootstrap-controller", *COMMON),
}

PARSER = OptionParser(
    [
        Option("bootstrap-server", "The brokers to connect to.", OPTIONAL_VALUE, described_as="Server(s) to use"),
        Option("bootstrap-controller", "The controllers to ask.", OPTIONAL_VALUE, described_as="controller(s)"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="Admin settings"),
        Option("verify", "Show how far a reassignment is, and clear its throttles when it is done."),
        Option("generate", "Propose a plan; nothing is moved."),
        Option("execute", "Start a reassignment."),
        Option("cancel", "Call off a reassignment that goes on."),
        Option("list", "List the reassignments that go on."),
        Option("reassignment-json-file", "A file with a plan.", VALUE, described_as="manual assignment json file"),
        Option("topics-to-move-json-file", "A file that names topics.", VALUE, described_as="topics to move"),
        Option("broker-list", "The brokers to which partitions shall go.", VALUE, described_as="brokerlist"),
        Option("disable-rack-aware", "Do not look at racks."),
        Option("throttle", "Bytes a second between brokers.", VALUE, "Long", "throttle", default=-1),
        Option(
            "replica-alter-log-dirs-throttle",
            "Bytes a second between directories.",
            VALUE,
            "Long",
            "replicaAlterLogDirsThrottle",
            default=-1,
        ),
        Option("timeout", "How long to wait for moves to start, in ms.", VALUE, "Long", "timeout", default=10000),
        Option("additional", "Add to a reassignment that goes on."),
        Option("preserve-throttles", "Leave the throttles as they are."),
        Option("disallow-replication-factor-change", "Refuse plans that change how many replicas there are."),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    options, action = _parse(arguments)
    config = options.text("command-config")
    where = (options.text("bootstrap-server"), config, options.text("bootstrap-controller"))
    try:
        with ask("", lambda: connect(*where, client_id="reassign-partitions-tool")) as admin:
            run(admin, action, options)
    except JavaFailure as failure:
        if failure.class_name == TERSE:
            print(failure.message)
        else:
            print(f"Error: {failure.message}\n{java_text(failure)}\n")
        return 1
    return 0


def _parse(arguments: list[str]) -> tuple[Options, str]:
    options = PARSER.parse(arguments)
    check_help_or_version(options, "Move replicas of partitions between brokers.")
    actions = [action for action in ACTIONS if options.has(action)]
    if len(actions) != 1:
        named = ", ".join(f"--{action}" for action in ACTIONS)
        raise Exit(1, f"Command must include exactly one action: {named}", PARSER)
    action = actions[0]
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        raise Exit(1, "Please don't specify both --bootstrap-server and --bootstrap-controller", PARSER)
    if not options.has("bootstrap-server") and not options.has("bootstrap-controller"):
        raise Exit(1, "Please specify either --bootstrap-server or --bootstrap-controller", PARSER)
    check_required(options, *REQUIRED[action])
    allowed = {action, *REQUIRED[action], *PERMITTED[action], "help", "version"}
    for name in PARSER.options:
        if options.has(name) and name not in allowed:
            raise Exit(1, f'Option "[{name}]" can\'t be used with action "[{action}]"', PARSER)
    return options, action


def run(admin: Admin, action: str, options: Options) -> None:
    from moldau.cli.kafka import reassign_actions as actions

    keep = options.has("preserve-throttles")
    timeout_ms = options.long("timeout") or 0
    if action == "list":
        actions.list_reassignments(admin)
    elif action == "generate":
        text = read_text(options.text("topics-to-move-json-file") or "")
        actions.generate(admin, text, options.text("broker-list") or "", not options.has("disable-rack-aware"))
    elif action == "verify":
        actions.verify(admin, read_text(options.text("reassignment-json-file") or ""), keep)
    elif action == "cancel":
        actions.cancel(admin, read_text(options.text("reassignment-json-file") or ""), keep, timeout_ms)
    else:
        limits = actions.Limits(
            options.long("throttle") or 0, options.long("replica-alter-log-dirs-throttle") or 0, timeout_ms
        )
        actions.execute(
            admin,
            read_text(options.text("reassignment-json-file") or ""),
            limits,
            options.has("additional"),
            not options.has("disallow-replication-factor-change"),
        )
