"""`moldau console`: the web console, in a process of its own."""

from __future__ import annotations

import logging
import os
import signal
import threading

import click

from moldau.cli.options import ADMIN, CONSUMER, PRODUCER, Connection, connected
from moldau.cli.server_console import PARENT_VARIABLE

DEFAULT_LISTEN = "127.0.0.1:9080"


@click.command()
@click.option(
    "--listen",
    default=DEFAULT_LISTEN,
    show_default=True,
    metavar="HOST:PORT",
    help="Where browsers find it; port 0 takes a free one.",
)
@click.option(
    "--allow-changes/--read-only",
    "allow_changes",
    default=None,
    help="Whether the pages can change anything. Default: on loopback they can, elsewhere not.",
)
@click.option(
    "--login/--no-login",
    default=None,
    help="Whether people log in with users of the broker's. Default: as the broker's listener wants it.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which browsers may ask for the console, besides localhost and addresses; may be repeated.",
)
@click.option(
    "--runs",
    multiple=True,
    type=click.Path(file_okay=False),
    metavar="DIRECTORY",
    help="A directory `runs` in the state directory of pipelines or loads; may be repeated.",
)
@click.option("--audit-log", metavar="FILE", help="Where a line for each change goes; without it to the error output.")
@click.option("--tls-cert", metavar="FILE", help="A certificate with its chain, as PEM: the console speaks HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Its key, as PEM.")
@click.option(
    "--idle",
    "idle_s",
    type=click.FloatRange(min=1),
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="After how long without a request a session ends, with its credentials.",
)
@connected
def console(
    connection: Connection,
    listen: str,
    allow_changes: bool | None,
    login: bool | None,
    allowed_hosts: tuple[str, ...],
    runs: tuple[str, ...],
    audit_log: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    idle_s: float,
) -> None:
    """Serve pages about the cluster: topics, records, groups, quorum, users; for Moldau and Apache Kafka.

    It needs `pip install 'moldau[console]'`. What people may do is what the broker allows them: with a login each
    has the rights of their own user, without one those of the console's settings.

    \b
    Examples:
      moldau console
      moldau console -b kafka-1:9092 --listen 0.0.0.0:9080
      moldau console --profile prod --read-only --runs lake/orders/state/runs
    """
    try:
        from moldau.actions.addresses import CannotListen
        from moldau.console.serve import run
    except ImportError as error:
        if (error.name or "").split(".")[0] == "moldau":
            raise
        raise click.ClickException(
            f"The console needs the package {error.name}: pip install 'moldau[console]'."
        ) from None
    from moldau.console.settings import ConsoleSettings

    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key belong together.")
    host, port = split_listen(listen)
    settings = ConsoleSettings(
        bootstrap=connection.bootstrap_server,
        clients={kind: settings_of(connection, kind) for kind in (ADMIN, CONSUMER, PRODUCER)},
        host=host,
        port=port,
        allow_changes=allow_changes,
        login=login,
        allowed_hosts=allowed_hosts,
        runs=runs,
        audit_file=audit_log,
        idle_s=idle_s,
        tls_certificate=tls_cert,
        tls_key=tls_key,
    )
    from moldau.server.log_lines import set_up_logging

    set_up_logging("INFO")
    # The libraries below speak about every connection; the client says what goes wrong to who asked.
    for name in ("uvicorn", "uvicorn.error", "moldau.client"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if not settings.on_loopback and not tls_cert:
        click.echo("Others can reach this address: passwords and records cross the network in the clear.", err=True)
    if os.environ.get(PARENT_VARIABLE):
        end_with_stdin()
    try:
        run(settings, lambda address: click.echo(f"moldau console ready: {address}"))
    except CannotListen as error:
        raise click.ClickException(f"{error} Choose another address with --listen.") from None


def end_with_stdin() -> None:
    """Ends this process when whoever started it is gone, however they went."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="moldau-console-parent", daemon=True).start()


def settings_of(connection: Connection, kind: str) -> dict[str, object]:
    """What was given, without what the command line adds for itself: who runs for long has limits of its own."""
    given = connection.config(kind)
    for name in ("client.id", "request.timeout.ms", "socket.connection.setup.timeout.ms"):
        if name not in connection.settings and name not in connection.profile:
            given.pop(name, None)
    return given


def split_listen(text: str) -> tuple[str, int]:
    """HOST:PORT, [ADDRESS]:PORT or a port alone."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--listen wants HOST:PORT as in {DEFAULT_LISTEN}, not {text!r}.")
    return host.strip("[]") or "0.0.0.0", int(port)
