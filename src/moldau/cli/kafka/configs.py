"""`kafka-configs`: describes and alters the configs of topics, brokers, groups, users and so on."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect, get_all, java_text
from moldau.cli.kafka.config_entities import DEFAULTS, FLAGS, ILLEGAL, RESOURCES, TERSE, Entities, singular
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
    from moldau.client.admin import Admin

DEFAULT_BROKER_SOURCE = 3
SOURCES = [
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "DYNAMIC_CLIENT_METRICS_CONFIG",
    "DYNAMIC_GROUP_CONFIG",
]
PARSER = OptionParser(
    [
        Option("bootstrap-server", "The brokers to connect to.", VALUE, described_as="server to connect to"),
        Option(
            "bootstrap-controller", "The controllers to connect to.", VALUE, described_as="controller to connect to"
        ),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("alter", "Change configs."),
        Option("describe", "Show configs."),
        Option("all", "Show all configs, not only those that were set."),
        Option("entity-type", f"One of {', '.join(FLAGS.values())}.", VALUE),
        Option("entity-name", "The name of the entity.", VALUE),
        Option("entity-default", "The default entity of the type."),
        Option("add-config", "Configs to set: k1=v1,k2=[v1,v2]", VALUE),
        Option("add-config-file", "A properties file with configs to set.", VALUE),
        Option("delete-config", "Configs to take away: k1,k2", VALUE),
        *(Option(flag, f"One of the {kind}.", VALUE) for flag, kind in FLAGS.items()),
        *(Option(flag, f"The defaults of {kind}.") for flag, kind in DEFAULTS.items()),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        check_help_or_version(options, "Describe and change the configs of entities.")
        entities = Entities(options, arguments)
        _check(options, entities)
        config = options.text("command-config")
        servers, controllers = options.text("bootstrap-server"), options.text("bootstrap-controller")
        with ask("", lambda: connect(servers, config, controllers)) as admin:
            if options.has("alter"):
                from moldau.cli.kafka.configs_alter import alter

                alter(admin, options, entities)
            else:
                _describe(admin, options, entities)
    except JavaFailure as failure:
        sys.stdout.flush()
        if failure.class_name in TERSE or failure.class_name.startswith("joptsimple."):
            sys.stderr.write(f"{failure.message}\n")
        else:
            line = " ".join(arguments)
            sys.stderr.write(f"Error while executing config command with args '{line}'\n")
            sys.stderr.write(
                f"java.util.concurrent.ExecutionException: {java_text(failure)}\nCaused by: {java_text(failure)}\n"
            )
        return 1
    return 0


def _check(options: Options, entities: Entities) -> None:
    if options.has("alter") == options.has("describe"):
        raise Exit(1, "Command must include exactly one action: --describe, --alter", options.parser)
    check_invalid(options, "describe", "alter", "add-config", "delete-config")
    types, names = entities.types, entities.names
    twice = [kind for index, kind in enumerate(types) if kind in types[:index]]
    if twice:
        _refuse(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if not options.has("bootstrap-server") and not options.has("bootstrap-controller"):
        _refuse("Either --bootstrap-server or --bootstrap-controller must be specified.")
    allowed = ["topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers"]
    for kind in types:
        if kind not in allowed:
            _refuse(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(allowed)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        _refuse("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        _refuse("Only 'users' and 'clients' entity types may be specified together")
    general = any(options.has(name) for name in ("entity-name", "entity-type", "entity-default"))
    if general and any(options.has(flag) for flag in (*FLAGS, *DEFAULTS)):
        _refuse("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        _refuse("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    has_name = any(names)
    if has_name and types[0] in ("brokers", "broker-loggers") and not re.fullmatch(r"[+-]?\d+", names[0]):
        _refuse(f"The entity name for {types[0]} must be a valid integer broker id, but it is: {names[0]}")
    if has_name and types[0] == "ips":
        for name in names:
            if name and not _is_address(name):
                _refuse(f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}")
    if options.has("describe") and "broker-loggers" in types and not has_name:
        _refuse(f"An entity name must be specified with --describe of {','.join(types)}")
    if options.has("alter"):
        _check_alter(options, types, names)


def _check_alter(options: Options, types: list[str], names: list[str]) -> None:
    if set(types) & {"users", "clients", "brokers", "ips"}:
        if not names:
            _refuse("An entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
        if len(names) < len(types):
            _refuse("An entity name must be specified for every entity type")
    elif not any(names):
        _refuse(f"An entity name must be specified with --alter of {','.join(types)}")
    if options.has("add-config") and options.has("add-config-file"):
        _refuse("Only one of --add-config or --add-config-file must be specified")
    if not any(options.has(name) for name in ("add-config", "add-config-file", "delete-config")):
        _refuse("At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter")


def _is_address(name: str) -> bool:
    import socket

    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False


def _refuse(sentence: str) -> None:
    raise JavaFailure(ILLEGAL, sentence)


def _describe(admin: Admin, options: Options, entities: Entities) -> None:
    kind = entities.types[0]
    if kind in ("users", "clients", "ips"):
        from moldau.cli.kafka.configs_quotas import describe_quotas

        describe_quotas(admin, entities.types, entities.names)
        return
    name = entities.names[0] if entities.names else None
    every = options.has("all")
    if name is not None and not every and not _exists(admin, kind, name):
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for entity in [name] if name is not None else _find_entities(admin, kind):
        if kind == "brokers" and not entity:
            print(f"Default configs for {kind} in the cluster are:")
        else:
            print(f"{'All' if every else 'Dynamic'} configs for {singular(kind)} {entity} are:")
        for line in config_lines(admin, kind, entity, every):
            print(line)


def _exists(admin: Admin, kind: str, name: str) -> bool:
    if kind == "topics":
        from moldau.config.resources import check_topic_name
        from moldau.protocol.errors import KafkaError

        try:
            check_topic_name(name)
        except KafkaError as error:
            raise JavaFailure(TERSE[1], error.message) from None
    elif kind in ("brokers", "broker-loggers") and not name:
        return True
    return name in _find_entities(admin, kind)


def _find_entities(admin: Admin, kind: str) -> list[str]:
    """The names of all entities of a type, in the order in which Java's client has them."""
    if kind == "topics":
        return hash_map_order(topic.name for topic in ask("listTopics", admin.list_topics))
    if kind in ("brokers", "broker-loggers"):
        return [*(str(broker.id) for broker in ask("listNodes", admin.describe_cluster).brokers), ""]
    resource, _ = RESOURCES[kind]
    listed = ask("listConfigResources", lambda: admin.list_config_resources([resource]))
    names = [item.name for item in listed]
    if kind == "groups":
        names = [group.group_id for group in ask("listGroups", lambda: admin.list_groups().get())] + names
    return list(dict.fromkeys(names))


def config_lines(admin: Admin, kind: str, entity: str, every: bool) -> list[str]:
    """The configs of one entity by name, with where their values come from."""
    from moldau.client.admin import ConfigResource

    resource_type, source = RESOURCES[kind]
    if kind == "brokers" and not entity:
        source = DEFAULT_BROKER_SOURCE
    resource = ConfigResource(resource_type, entity)
    found = get_all("describeConfigs", lambda: admin.describe_configs([resource], include_synonyms=True))
    lines = []
    for entry in sorted(found[resource]):
        if not every and source is not None and entry.source != source:
            continue
        synonyms = ", ".join(f"{SOURCES[origin]}:{name}={_text(value)}" for name, value, origin in entry.synonyms)
        sensitive = str(entry.is_sensitive).lower()
        lines.append(f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}")
    return lines


def _text(value: str | None) -> str:
    return "null" if value is None else value
