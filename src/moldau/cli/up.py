"""`moldau up`: a cluster of several nodes on this machine, each a process, under one supervisor."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from moldau.cli.options import format_option

if TYPE_CHECKING:
    from moldau.cli.up_secure import SecuredClients
    from moldau.server.local_cluster import LocalCluster, PlannedNode
    from moldau.server.supervisor import Supervisor

COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")
DEFAULT_DIRECTORY = "./moldau-data"


@click.command()
@click.option(
    "--brokers", type=click.IntRange(1, 100), metavar="N", help="How many brokers (3, or as many as there are)."
)
@click.option(
    "--controllers",
    type=click.IntRange(1, 9),
    metavar="M",
    help="So many controllers in processes of their own; without it the first brokers are controllers too.",
)
@click.option(
    "--data-dir",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the cluster; each node has one in it.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The name that clients are told.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="The port of the first broker, the others follow; 0 takes free ones. A cluster keeps those it had first.",
)
@click.option(
    "--secure", is_flag=True, help="TLS and logins everywhere, rights, an administrator and an ordinary user."
)
@click.option("--profile", metavar="NAME", help="With --secure: the name of the client profile [default: secure].")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A setting for all nodes; repeat it.")
@format_option
@click.pass_context
def up(
    context: click.Context,
    brokers: int | None,
    controllers: int | None,
    data_dir: Path,
    host: str,
    port: int,
    secure: bool,
    profile: str | None,
    overrides: tuple[str, ...],
    output_format: str,
) -> None:
    """Run a cluster on this machine until Ctrl-C or SIGTERM.

    Each node is a process of its own with its own ports and directory. What dies is started again; when this command
    ends, however it ends, so do the nodes. The nodes' log goes to the standard error, the addresses to the standard
    output once all nodes are ready.

    With --secure clients log in with SCRAM over TLS, and nodes know each other by certificates. The super user `admin`
    and the user `user`, who may use all topics and groups, have passwords that were made up, and client profiles
    (`moldau topic list --profile secure`); files for other clients lie in the directory `security` of the data
    directory.

    \b
    Examples:
      moldau up --brokers 3
      moldau up --brokers 5 --controllers 3 --data-dir /data/moldau --host kafka.example.org
      moldau up --brokers 3 --port 0 --format json
      moldau up --secure --data-dir secured
    """
    if profile is not None and not secure:
        raise click.UsageError("--profile goes with --secure.")
    cluster, clients = _prepare(
        data_dir.absolute(), (brokers, controllers), (host, port), overrides, secure=secure, profile=profile
    )
    lines = Lines(cluster)
    first_port = cluster.brokers()[0].port
    if context.get_parameter_source("port") is ParameterSource.COMMANDLINE and port not in (0, first_port):
        lines.show(None, f"the cluster keeps the ports it had first, from {first_port} on; --port is for new nodes")
    context.exit(asyncio.run(_run(cluster, clients, overrides, lines, output_format)))


def _prepare(
    directory: Path,
    counts: tuple[int | None, int | None],
    address: tuple[str, int],
    overrides: tuple[str, ...],
    *,
    secure: bool,
    profile: str | None,
) -> tuple[LocalCluster, SecuredClients | None]:
    """Everything that has to be there before the first node starts."""
    from moldau.cli.profiles import ProfileError
    from moldau.config.definitions import ConfigError
    from moldau.server.local_cluster import check_settings, lock_cluster, plan_cluster, write_files
    from moldau.server.storage_format import FormatError, random_uuid

    clients: SecuredClients | None = None
    try:
        if (directory / "meta.properties").exists():
            raise ConfigError(
                f"{directory} is the directory of a single node (`moldau server`): choose another with --data-dir"
            )
        cluster = plan_cluster(directory, *counts, *address, random_uuid(), secure)
        check_settings(cluster, overrides)
        lock_cluster(directory, secure)
        first_users: list[str] = []
        if secure:
            clients, first_users = _secure(cluster, profile)
        write_files(cluster, overrides, first_users)
    except (ConfigError, FormatError, ProfileError, OSError) as error:
        raise click.ClickException(str(error)) from None
    return cluster, clients


def _secure(cluster: LocalCluster, profile: str | None) -> tuple[SecuredClients, list[str]]:
    from moldau.cli.up_secure import SecuredClients
    from moldau.server.secured_cluster import ClusterSecurity

    security = ClusterSecurity(cluster.directory)
    security.prepare(cluster.host)
    clients = SecuredClients(cluster, security)
    clients.write(profile)
    return clients, security.first_users()


async def _run(
    cluster: LocalCluster,
    clients: SecuredClients | None,
    overrides: tuple[str, ...],
    lines: Lines,
    output_format: str,
) -> int:
    from moldau.server.supervisor import Supervisor

    tell = print_ready_json if output_format == "json" else print_ready
    granting: list[asyncio.Task[None]] = []

    async def grant_and_tell(supervisor: Supervisor, clients: SecuredClients) -> None:
        from moldau.client.errors import ClientError

        try:
            await asyncio.to_thread(clients.grant)
        except ClientError as error:
            lines.show(None, f"the user has no rights yet, the next start tries again: {error.message}")
        tell(supervisor, clients)

    def on_ready(supervisor: Supervisor) -> None:
        if clients is None:
            tell(supervisor, None)
        else:
            granting.append(asyncio.create_task(grant_and_tell(supervisor, clients)))

    return await Supervisor(cluster, overrides, lines.show, on_ready).run()


class Lines:
    """What the nodes say, each line behind the name of its node."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._width = max(len(node.name) for node in cluster.nodes)
        self._colours = {node.node_id: COLOURS[index % len(COLOURS)] for index, node in enumerate(cluster.nodes)}

    def show(self, node: PlannedNode | None, line: str) -> None:
        name = ("moldau up" if node is None else node.name).ljust(self._width)
        colour = None if node is None else self._colours[node.node_id]
        click.echo(f"{click.style(name, fg=colour, bold=node is None)} | {line}", err=True)


def print_ready(supervisor: Supervisor, clients: SecuredClients | None) -> None:
    cluster = supervisor.cluster
    click.echo(f"{len(supervisor.members)} nodes are ready; bootstrap servers: {cluster.bootstrap_servers}")
    if clients is not None:
        clients.print_lines()
    sys.stdout.flush()


def print_ready_json(supervisor: Supervisor, clients: SecuredClients | None) -> None:
    cluster = supervisor.cluster
    nodes = [
        {
            "node_id": member.node.node_id,
            "name": member.node.name,
            "roles": member.node.roles.split(","),
            "port": member.node.port or None,
            "controller_port": member.node.controller_port or None,
            "directory": str(cluster.properties_file(member.node).parent),
            "pid": member.pid,
        }
        for member in supervisor.members
    ]
    event: dict[str, object] = {
        "event": "ready",
        "bootstrap_servers": cluster.bootstrap_servers,
        "cluster_id": cluster.cluster_id,
        "nodes": nodes,
    }
    if clients is not None:
        event["users"] = clients.json()
    click.echo(json.dumps(event))
    sys.stdout.flush()
