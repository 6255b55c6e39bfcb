"""`kafka-client-metrics`: subscriptions to the metrics of clients (KIP-714): alter, describe, list, delete."""

from __future__ import annotations

import re
import secrets
import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, Connect, ask, connect, get_all
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, NO_FILE
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.java_order import hash_map_order
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
    from moldau.client.admin import Admin, ConfigChange, ConfigEntry

ABOUT = "Show and change the subscriptions to metrics of clients."
LOGGER = "org.apache.kafka.tools.ClientMetricsCommand"
INVALID_REQUEST = f"{ERRORS_PACKAGE}InvalidRequestException"
TIMEOUT_MS = 30_000
ACTIONS = ("alter", "delete", "describe", "list")
SETTINGS = ("generate-name", "interval", "match", "metrics")
KEYS = {"interval": "interval.ms", "metrics": "metrics", "match": "match"}
FIELDS = "client_id, client_instance_id, client_software_name, client_software_version, client_source_address"

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="server to connect to"),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("alter", "Change the configs of a subscription, or make it."),
        Option("delete", "Delete a subscription."),
        Option("describe", "Show the configs of a subscription, or of all."),
        Option("list", "List the subscriptions."),
        Option("name", "The subscription's name.", VALUE, described_as="name"),
        Option("generate-name", "Make up a name: a random uuid."),
        Option(
            "interval",
            "Milliseconds between two pushes of a client; empty resets it.",
            VALUE,
            "String",
            "push interval",
        ),
        Option(
            "match",
            f"Which clients: patterns by field, of {FIELDS}, client_source_port.",
            VALUE,
            described_as="k1=v1,k2=v2",
        ),
        Option("metrics", "Which metrics: prefixes of their names.", VALUE, described_as="m1,m2"),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = _parse(arguments)
        _check(options)
        return _run(options, connect)
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"{failure.message}\n{failure.java_text()}\n\n")
        return 1


def _run(options: Options, connect: Connect) -> int:
    where, config_file = options.text("bootstrap-server"), options.text("command-config")
    try:
        with ask("", lambda: connect(where, config_file)) as admin:
            _act(admin, options)
    except JavaFailure as failure:
        if failure.class_name == NO_FILE:
            raise
        print(f"Error while executing client metrics command : {failure.message}")
        sys.stdout.flush()
        sys.stderr.write(log_line("ERROR", failure.java_text() + "\n", LOGGER))
        return 1
    return 0


def _act(admin: Admin, options: Options) -> None:
    if options.has("alter"):
        _alter(admin, options)
    elif options.has("describe"):
        _describe(admin, options)
    elif options.has("delete"):
        _delete(admin, options)
    else:
        print("\n".join(_names(admin)))


def _parse(arguments: list[str]) -> Options:
    try:
        return PARSER.parse(arguments)
    except JavaFailure as failure:
        raise Exit(1, failure.message or "", PARSER) from None


def _check(options: Options) -> None:
    check_help_or_version(options, ABOUT)
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise Exit(1, "Command must include exactly one action: --alter, --delete, --describe or --list.", PARSER)
    if not options.has("bootstrap-server"):
        raise JavaFailure(ILLEGAL_ARGUMENT, "--bootstrap-server must be specified.")
    check_invalid(options, "delete", *SETTINGS)
    check_invalid(options, "describe", *SETTINGS)
    check_invalid(options, "list", "name", *SETTINGS)
    if options.has("alter") and options.has("name") == options.has("generate-name"):
        raise JavaFailure(ILLEGAL_ARGUMENT, "One of --name or --generate-name must be specified with --alter.")
    if options.has("delete") and not options.has("name"):
        raise JavaFailure(ILLEGAL_ARGUMENT, "A client metrics resource name must be specified with --delete.")
    interval = options.text("interval")
    if interval and not _is_int(interval):
        sentence = "Invalid interval value. Enter an integer, or leave empty to reset."
        raise JavaFailure(ILLEGAL_ARGUMENT, sentence)


def _is_int(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None and -(1 << 31) <= int(text) < 1 << 31


def _alter(admin: Admin, options: Options) -> None:
    from moldau.client.admin import DELETE, SET, ConfigChange

    name = _random_name() if options.has("generate-name") else options.text("name") or ""
    if not name:
        raise JavaFailure(INVALID_REQUEST, "Subscription name can't be empty")
    values: dict[str, str] = {}
    interval = options.text("interval")
    if interval is not None:
        values[KEYS["interval"]] = interval
    for option in ("metrics", "match"):
        if options.has(option):
            values[KEYS[option]] = ",".join(_pieces(options.values(option)))
    changes = [ConfigChange(key, values[key], SET if values[key] else DELETE) for key in hash_map_order(values)]
    _change(admin, name, changes)
    print(f"Altered client metrics config for {name}.")


def _delete(admin: Admin, options: Options) -> None:
    from moldau.client.admin import DELETE, ConfigChange

    name = options.text("name") or ""
    if not name:
        raise JavaFailure(INVALID_REQUEST, "Client metrics subscription name must not be empty")
    changes = [ConfigChange(entry.name, entry.value, DELETE) for entry in _configs(admin, name)]
    _change(admin, name, changes)
    print(f"Deleted client metrics config for {name}.")


def _describe(admin: Admin, options: Options) -> None:
    name, there = options.text("name"), _names(admin)
    if name is not None and name not in there:
        print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    for each in there if name is None else [name]:
        print(f"Client metrics configs for {each} are:")
        for entry in _configs(admin, each):
            print(f"  {entry.name}={entry.value}")


def _change(admin: Admin, name: str, changes: list[ConfigChange]) -> None:
    from moldau.client.admin import CLIENT_METRICS, ConfigResource

    resource = ConfigResource(CLIENT_METRICS, name)
    get_all(
        "incrementalAlterConfigs",
        lambda: admin.incremental_alter_configs({resource: changes}, timeout_ms=TIMEOUT_MS),
    )


def _names(admin: Admin) -> list[str]:
    return ask("listConfigResources", lambda: admin.list_client_metrics_resources(timeout_ms=TIMEOUT_MS))


def _configs(admin: Admin, name: str) -> list[ConfigEntry]:
    from moldau.client.admin import CLIENT_METRICS, ConfigResource

    resource = ConfigResource(CLIENT_METRICS, name)
    found = get_all("describeConfigs", lambda: admin.describe_configs([resource], timeout_ms=TIMEOUT_MS))[resource]
    by_name = {entry.name: entry for entry in found}
    return [by_name[each] for each in hash_map_order(by_name)]


def _pieces(values: list[str]) -> list[str]:
    """What stands between commas, without what is empty; an empty value is one empty piece."""
    return [piece for value in values for piece in [part for part in value.split(",") if part] or [value]]


def _random_name() -> str:
    from moldau.protocol.uuids import random_uuid, uuid_to_text

    return uuid_to_text(random_uuid(secrets.token_bytes))
