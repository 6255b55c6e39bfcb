"""`moldau config describe|alter`: configs of topics, brokers, groups, the cluster, and where values come from."""

from __future__ import annotations

from fnmatch import fnmatchcase

import click

from moldau.cli.completion import complete_brokers, complete_groups, complete_topics
from moldau.cli.config_changes import change_options, parse_changes
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import Styled, finish, print_error, print_note, print_table, print_title, say
from moldau.client.admin import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CONFIG_SOURCES,
    CONFIG_TYPES,
    GROUP,
    TOPIC,
    ConfigEntry,
    ConfigResource,
)
from moldau.client.errors import ClientError, error_for
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION

KINDS = {
    "topic": TOPIC,
    "broker": BROKER,
    "group": GROUP,
    "cluster": BROKER,
    "broker-logger": BROKER_LOGGER,
    "client-metrics": CLIENT_METRICS,
}

_SOURCE_COLOURS = {1: "green", 2: "green", 3: "cyan", 4: "yellow", 7: "green", 8: "green"}


def _complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    kind = ctx.params.get("kind")
    if kind in ("broker", "broker-logger"):
        return complete_brokers(ctx, param, incomplete)
    if kind == "group":
        return complete_groups(ctx, param, incomplete)
    return complete_topics(ctx, param, incomplete) if kind == "topic" else []


kind_argument = click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
names_argument = click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete_names)


def resources_of(kind: str, names: tuple[str, ...]) -> list[ConfigResource]:
    """Whose configs are meant; those of the cluster are the defaults of all its brokers."""
    if kind == "cluster":
        if names:
            raise click.UsageError("There is one cluster: leave the name out, or say which kind of thing it names.")
        return [ConfigResource(BROKER, "")]
    if not names:
        raise click.UsageError(f"Say which {kind}: `moldau config describe {kind} NAME`.")
    for name in names:
        if kind in ("broker", "broker-logger") and not name.isdigit():
            raise click.UsageError(
                f"A broker has a number, not {name!r}. `moldau cluster describe` lists them; the defaults of all"
                " brokers are those of the cluster: `moldau config describe cluster`."
            )
    return [ConfigResource(KINDS[kind], name) for name in dict.fromkeys(names)]


@click.command()
@kind_argument
@names_argument
@click.option("-a", "--all", "everything", is_flag=True, help="Also the values that are Kafka's own defaults.")
@click.option("-k", "--key", "keys", multiple=True, metavar="KEY", help="Only these configs; 'log.*' matches many.")
@click.option("--chain", is_flag=True, help="Show each value that would hold if the one before it were deleted.")
@click.option("--docs", is_flag=True, help="Say what each config means.")
@format_option
@connected
def describe(
    connection: Connection,
    kind: str,
    names: tuple[str, ...],
    everything: bool,
    keys: tuple[str, ...],
    chain: bool,
    docs: bool,
    output_format: str,
) -> None:
    """Show configs and where each value comes from.

    KIND is topic, broker, group, cluster (what holds for all brokers), broker-logger or client-metrics.

    SOURCE is `topic`, `group` or `broker` (set there), `cluster default` (set for all brokers), `file` (the broker's
    server.properties) or `default`.

    \b
    Examples:
      moldau config describe topic orders
      moldau config describe broker 1 --all --key 'log.retention.*' --chain
      moldau config describe cluster
    """
    resources = resources_of(kind, names)
    with open_admin(connection) as admin:
        outcomes = admin.describe_configs(resources, include_synonyms=True, include_documentation=docs)
    rows: list[dict[str, object]] = []
    failed = False
    for resource in resources:
        outcome = outcomes[resource]
        if outcome.error is not None:
            failed = True
            rows.append(_refused(kind, resource.name, outcome.error))
            continue
        matching = [entry for entry in sorted(outcome.get()) if _matches(entry.name, keys)]
        rows.append(
            {
                "kind": kind,
                "name": resource.name,
                "configs": [
                    _entry_row(entry, docs) for entry in matching if everything or keys or not entry.is_default
                ],
            }
        )
        if output_format == "table":
            _print_entries(kind, resource.name, matching, everything or bool(keys), chain, docs)
    finish(output_format, rows, failed)


def _refused(kind: str, name: str, error: ClientError) -> dict[str, object]:
    """Tells the error; brokers themselves do not say which topic they do not know."""
    if kind == "topic" and error.code == UNKNOWN_TOPIC_OR_PARTITION:
        error = error_for(error.code, f"Topic {name} does not exist.")
    print_error(explain(error) or error.message)
    return {"kind": kind, "name": name, "error": error.name, "message": error.message}


def _matches(name: str, keys: tuple[str, ...]) -> bool:
    return not keys or any(fnmatchcase(name, key) for key in keys)


def _entry_row(entry: ConfigEntry, docs: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "name": entry.name,
        "value": entry.value,
        "source": CONFIG_SOURCES.get(entry.source, "unknown"),
        "type": CONFIG_TYPES.get(entry.type, "unknown"),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "chain": [
            {"name": name, "value": value, "source": CONFIG_SOURCES.get(source, "unknown")}
            for name, value, source in entry.synonyms
        ],
    }
    if docs:
        row["documentation"] = entry.documentation
    return row


def _print_entries(kind: str, name: str, entries: list[ConfigEntry], everything: bool, chain: bool, docs: bool) -> None:
    shown = [entry for entry in entries if everything or not entry.is_default]
    print_title(f"{kind} {name}".rstrip())
    columns = ["KEY", "VALUE", "SOURCE"] + (["CHAIN"] if chain else []) + (["MEANING"] if docs else [])
    rows: list[list[object]] = []
    for entry in shown:
        source = CONFIG_SOURCES.get(entry.source, "unknown")
        colour = _SOURCE_COLOURS.get(entry.source)
        row: list[object] = [entry.name, _value(entry), Styled(source, fg=colour, dim=colour is None)]
        if chain:
            row.append(Styled(_chain(entry), dim=True))
        if docs:
            row.append(Styled(entry.documentation or "", dim=True))
        rows.append(row)
    if rows:
        print_table(columns, rows)
    hidden = len(entries) - len(shown)
    if hidden:
        print_note(f"{hidden} more have their default values; --all shows them.")
    elif not entries:
        print_note("Nothing is set.")
    click.echo()


def _value(entry: ConfigEntry) -> object:
    if entry.is_sensitive:
        return Styled("[hidden]", dim=True)
    return Styled("null", dim=True) if entry.value is None else entry.value


def _chain(entry: ConfigEntry) -> str:
    """Where the value comes from first, then what would hold without it; nothing if there is no such thing."""
    if len(entry.synonyms) < 2:
        return ""
    return "  <  ".join(
        f"{'[hidden]' if value is None else value} ({CONFIG_SOURCES.get(source, 'unknown')}"
        f"{'' if name == entry.name else ' ' + name})"
        for name, value, source in entry.synonyms
    )


@click.command()
@kind_argument
@names_argument
@change_options
@click.option("--validate-only", is_flag=True, help="Only ask whether the broker would do it.")
@format_option
@connected
def alter(
    connection: Connection,
    kind: str,
    names: tuple[str, ...],
    sets: tuple[str, ...],
    deletes: tuple[str, ...],
    appends: tuple[str, ...],
    subtracts: tuple[str, ...],
    validate_only: bool,
    output_format: str,
) -> None:
    """Set configs and take them away.

    KIND is topic, broker, group, cluster (what holds for all brokers), broker-logger or client-metrics.

    \b
    Examples:
      moldau config alter topic orders --set retention.ms=86400000
      moldau config alter broker 1 --set log.cleaner.threads=2
      moldau config alter cluster --set message.max.bytes=2000000
      moldau config alter group billing --set consumer.session.timeout.ms=50000
      moldau config alter topic orders --delete retention.ms
    """
    resources = resources_of(kind, names)
    changes = parse_changes(sets, deletes, appends, subtracts)
    if not changes:
        raise click.UsageError("Say what to change: --set KEY=VALUE or --delete KEY.")
    with open_admin(connection) as admin:
        outcomes = admin.incremental_alter_configs(dict.fromkeys(resources, changes), validate_only)
    rows: list[dict[str, object]] = []
    failed = False
    for resource in resources:
        error = outcomes[resource].error
        title = f"{kind} {resource.name}".rstrip()
        if error is not None:
            failed = True
            rows.append(_refused(kind, resource.name, error))
        else:
            rows.append({"kind": kind, "name": resource.name, "altered": not validate_only})
            done = "can be changed" if validate_only else "are changed"
            say(output_format, f"The configs of {title} {done}.")
    finish(output_format, rows, failed)
