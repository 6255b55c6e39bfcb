"""`moldau client list`: who is connected to the brokers, with which software, how much they send, who is throttled."""

from __future__ import annotations

import click

from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, bytes_text, plural, print_json, print_note, print_table
from moldau.cli.watch import repeat
from moldau.config.own_keys import METRICS_LISTENER_KEY, split_address
from moldau.facts.clients import Client, ConnectedTo, Found, clients_of, fetch_connections, pages_of

RIGHT = ("CONNECTIONS", "BROKER", "SINCE", "REQUESTS", "IN", "OUT", "THROTTLED")
NOBODY = Styled("-", dim=True)


@click.command("list")
@click.option("--connections", "each", is_flag=True, help="A row for each connection instead of each client.")
@click.option("--telemetry", is_flag=True, help="Also the instance ids by which clients push their metrics (KIP-714).")
@click.option(
    "--metrics-address",
    "addresses",
    multiple=True,
    metavar="HOST:PORT",
    help="Ask these pages of metrics instead of finding those of all brokers.",
)
@format_option
@watch_options
@connected
def list_clients(
    connection: Connection,
    each: bool,
    telemetry: bool,
    addresses: tuple[str, ...],
    output_format: str,
    watch: bool,
    interval_s: float,
) -> None:
    """List the clients that are connected now: software, principal, address, traffic, and whether they are throttled.

    Kafka's protocol does not tell; brokers of Moldau do on their pages of metrics (moldau.metrics.listener).
    """
    pages = _given_pages(addresses) if addresses else _find_pages(connection)
    repeat(lambda: _show(fetch_connections(pages), each, telemetry, output_format), watch, interval_s)


def _given_pages(addresses: tuple[str, ...]) -> dict[str, tuple[str, int] | None]:
    try:
        return {text: split_address(text) for text in addresses}
    except ValueError as error:
        raise click.BadParameter(f"{error} is not HOST:PORT", param_hint="--metrics-address") from None


def _find_pages(connection: Connection) -> dict[str, tuple[str, int] | None]:
    with open_admin(connection) as admin:
        return {f"broker {name}": address for name, address in pages_of(admin).items()}


def _show(found: Found, each: bool, telemetry: bool, output_format: str) -> None:
    if found.silent and not found.connections:
        raise click.ClickException(
            f"No page tells who is connected ({', '.join(found.silent)}). Set {METRICS_LISTENER_KEY} on the brokers to"
            " an address that can be reached from here, or name one with --metrics-address."
        )
    clients = clients_of(found.connections)
    if output_format == "json":
        rows = found.connections if each else clients
        print_json([row._asdict() for row in rows])
    elif each:
        _print_connections(found.connections, telemetry)
    else:
        _print_clients(clients, telemetry)
    if output_format == "table":
        _print_notes(found)


def _print_clients(clients: list[Client], telemetry: bool) -> None:
    columns = ["CLIENT ID", "SOFTWARE", "PRINCIPAL", "ADDRESS", "CONNECTIONS", "SINCE", "REQUESTS", "IN", "OUT"]
    columns += ["THROTTLED", *(["INSTANCE"] if telemetry else [])]
    rows = [
        [
            row.client_id if row.client_id is not None else NOBODY,
            software_text(row.software_name, row.software_version),
            row.principal,
            row.host,
            row.connections,
            duration_text(row.connected_ms),
            f"{row.requests:,}",
            bytes_text(row.bytes_in),
            bytes_text(row.bytes_out),
            throttle_cell(row.throttled_ms, row.throttled_total),
            *([", ".join(row.instance_ids) or NOBODY] if telemetry else []),
        ]
        for row in clients
    ]
    print_table(columns, rows, right=RIGHT)


def _print_connections(connections: list[ConnectedTo], telemetry: bool) -> None:
    columns = ["BROKER", "LISTENER", "ADDRESS", "CLIENT ID", "SOFTWARE", "PRINCIPAL", "SINCE", "REQUESTS", "IN", "OUT"]
    columns += ["THROTTLED", *(["INSTANCE"] if telemetry else [])]
    rows = [
        [
            row.broker,
            row.listener + (" (TLS)" if row.tls else ""),
            row.address,
            row.client_id if row.client_id is not None else NOBODY,
            software_text(row.software_name, row.software_version),
            row.principal,
            duration_text(row.connected_ms),
            f"{row.requests:,}",
            bytes_text(row.bytes_in),
            bytes_text(row.bytes_out),
            throttle_cell(row.throttled_ms, row.throttled_total),
            *([", ".join(row.instance_ids) or NOBODY] if telemetry else []),
        ]
        for row in connections
    ]
    print_table(columns, rows, right=RIGHT)


def _print_notes(found: Found) -> None:
    if found.left_out:
        print_note(f"{plural(found.left_out, 'connection')} more are left out.")
    if found.silent:
        print_note(f"Not known of {', '.join(found.silent)}: no page of metrics that can be reached from here.")


def software_text(name: str, version: str) -> str:
    return name if version == "unknown" else f"{name} {version}"


def duration_text(duration_ms: int) -> str:
    """The two largest units: 3 d 4 h, 12 min 5 s, 8 s."""
    seconds = duration_ms // 1000
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def throttle_cell(wait_ms: int, times: int) -> object:
    """How long it has to wait now, or how often it had to since it connected."""
    if wait_ms > 0:
        return Styled(f"for {wait_ms:,} ms", fg="red")
    return f"{times:,} times" if times > 1 else "once" if times else NOBODY
