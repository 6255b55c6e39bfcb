"""`moldau mcp`: tools for agents, over the Model Context Protocol, in a process of its own."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import click
from click.core import ParameterSource

from moldau.cli.console import settings_of
from moldau.cli.options import ADMIN, CONSUMER, PRODUCER, Connection, connected

STDIO = "stdio"
HTTP = "http"
TOKEN_VARIABLE = "MOLDAU_MCP_TOKEN"
TOKEN_BYTES_MAX = 4096


@click.command()
@click.option(
    "--command-config",
    metavar="FILE",
    help="A client.properties file with settings for all clients, as Kafka's own tools take it.",
)
@click.option(
    "--transport",
    type=click.Choice([STDIO, HTTP]),
    default=STDIO,
    show_default=True,
    help="How agents speak with it: it is started by one, or many find it at an address.",
)
@click.option(
    "--allow-writes/--read-only",
    "allow_writes",
    default=False,
    help="Whether there are tools that change something. Default: there are none.",
)
@click.option(
    "--topics",
    multiple=True,
    metavar="PATTERN",
    help="Topics that are there for agents, as `orders.*`; may be repeated. Default: all but the cluster's own.",
)
@click.option(
    "--groups",
    multiple=True,
    metavar="PATTERN",
    help="Groups that are there for agents; may be repeated. Default: all.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(1, 500),
    default=100,
    show_default=True,
    metavar="N",
    help="Rows of one result at most.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(4096, 16 * 1024 * 1024),
    default=64 * 1024,
    show_default=True,
    metavar="N",
    help="Bytes of the JSON of one result at most.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="With --transport http: the address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9081,
    show_default=True,
    help="With --transport http: the port; 0 takes a free one.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="With --transport http: a file with the token that agents have to send."
    f" Default: the variable {TOKEN_VARIABLE}. Needed where others can reach the address.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which it may be asked for besides localhost and --host, such as a proxy's; may be repeated.",
)
@click.option("--tls-cert", metavar="FILE", help="A certificate with its chain, as PEM: it speaks HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Its key, as PEM.")
@click.option("--audit-log", metavar="FILE", help="Where a line for each change goes; without it to the error output.")
@connected
def mcp(
    connection: Connection,
    command_config: str | None,
    transport: str,
    allow_writes: bool,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    max_rows: int,
    max_bytes: int,
    host: str,
    port: int,
    token_file: str | None,
    allowed_hosts: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    audit_log: str | None,
) -> None:
    """Serve tools with which agents look at the cluster, and change it where that is allowed.

    It needs `pip install 'moldau[mcp]'`, and works with Moldau and Apache Kafka. What agents may do is what the broker
    allows the user of these settings, less what the options leave out.

    \b
    Examples:
      moldau mcp
      moldau mcp --profile prod --topics 'orders.*' --topics payments
      moldau mcp --transport http --port 9081 --allow-writes --audit-log changes.jsonl
      moldau mcp --transport http --host 0.0.0.0 --token-file token --tls-cert chain.pem --tls-key key.pem
    """
    try:
        from moldau.mcp import http as over_http
        from moldau.mcp import stdio as over_stdio
    except ImportError as error:
        if (error.name or "").split(".")[0] == "moldau":
            raise
        raise click.ClickException(f"It needs the package {error.name}: pip install 'moldau[mcp]'.") from None
    from moldau.actions.addresses import CannotListen
    from moldau.mcp.bounds import limits_of
    from moldau.mcp.settings import HttpSettings, McpSettings, NotSafe

    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    if command_config is not None:
        _add_config(connection, command_config)
    settings = McpSettings(
        clients={kind: settings_of(connection, kind) for kind in (ADMIN, CONSUMER, PRODUCER)},
        allow_writes=allow_writes,
        topics=topics,
        groups=groups,
        limits=limits_of(max_rows, max_bytes),
        audit_file=audit_log,
    )
    _check_clients(settings.clients)
    if transport == STDIO:
        _set_up_logging()
        over_stdio.run(settings)
        return
    http = HttpSettings(host, port, _read_token(token_file), allowed_hosts, tls_cert, tls_key)
    try:
        http.check()
    except NotSafe as error:
        raise click.ClickException(str(error)) from None
    if not http.on_loopback and not tls_cert:
        click.echo("Others can reach this address: token and records cross the network in the clear.", err=True)
    _set_up_logging()
    try:
        over_http.run(settings, http, lambda address: click.echo(f"moldau mcp ready: {address}"))
    except CannotListen as error:
        raise click.ClickException(f"{error} Choose another address with --host and --port.") from None


def _add_config(connection: Connection, path: str) -> None:
    """Settings of a file serve all kinds of clients, as those of a profile do; an address that was given wins."""
    from moldau.cli.profiles import BOOTSTRAP_SERVERS, read_file

    found = read_file(path)
    connection.profile = {**connection.profile, **found}
    source = click.get_current_context().get_parameter_source("bootstrap_server")
    if source not in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        connection.bootstrap_server = found.get(BOOTSTRAP_SERVERS, connection.bootstrap_server)


def _check_clients(clients: Mapping[str, Mapping[str, object]]) -> None:
    """A wrong setting is told to who starts it, not to the first agent; raises ConfigError."""
    from moldau.client import config

    for kind, known in ((ADMIN, config.ADMIN), (CONSUMER, config.CONSUMER), (PRODUCER, config.PRODUCER)):
        config.ClientConfig(known, clients[kind])


def _set_up_logging() -> None:
    """To the error output: the other one is the protocol's."""
    from moldau.server.log_lines import set_up_logging

    set_up_logging("INFO")
    # The libraries below speak about every request; the client says what goes wrong to who asked.
    for name in ("uvicorn", "uvicorn.error", "mcp", "moldau.client"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _read_token(path: str | None) -> str | None:
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    with open(path, encoding="utf-8") as file:
        return file.read(TOKEN_BYTES_MAX).strip()
