"""`moldau broker list|describe`: brokers, their log directories, what lies there, and what was configured."""

from __future__ import annotations

import click

from moldau.cli.cluster import print_brokers
from moldau.cli.completion import complete_brokers
from moldau.cli.explain import explain
from moldau.cli.options import Connection, connected, format_option, open_admin
from moldau.cli.output import (
    Styled,
    bytes_text,
    finish,
    plural,
    print_error,
    print_fields,
    print_json,
    print_table,
    print_title,
)
from moldau.client.admin import BROKER, CONFIG_SOURCES, Admin, ClusterDescription, ConfigResource, LogDirectory
from moldau.client.connection.cluster import Broker, PartitionMetadata
from moldau.client.errors import ClientError
from moldau.facts.cluster import all_partitions, broker_row, describe_brokers

# Less than a segment needs to begin with.
FULL_BYTES = 64 << 10
# As moldau.log.dir.free.bytes.min has it.
FREE_BYTES_MIN = 256 << 20
FREE_SHARE_MIN = 20
SPACE_REMARKS = {"full": ("but full",), "low": ("little space left",)}


@click.command("list")
@format_option
@connected
def list_brokers(connection: Connection, output_format: str) -> None:
    """List the brokers of the cluster."""
    with open_admin(connection) as admin:
        found = describe_brokers(admin)
        partitions = all_partitions(admin.list_topics())
    rows = [broker_row(found, broker, partitions) for broker in found.brokers]
    if output_format == "json":
        print_json(rows)
    else:
        print_brokers(rows)


@click.command()
@click.argument("ids", nargs=-1, type=click.IntRange(min=0), metavar="[ID]...", shell_complete=complete_brokers)
@format_option
@connected
def describe(connection: Connection, ids: tuple[int, ...], output_format: str) -> None:
    """Show brokers (all of them without an ID): address, partitions, log directories, configs that were set."""
    rows: list[dict[str, object]] = []
    failed = False
    with open_admin(connection) as admin:
        found = describe_brokers(admin)
        partitions = all_partitions(admin.list_topics())
        known = {broker.id: broker for broker in found.brokers}
        for number in dict.fromkeys(ids or known):
            if number not in known:
                failed = True
                there = ", ".join(str(item) for item in known)
                rows.append({"id": number, "error": "BROKER_ID_NOT_REGISTERED"})
                print_error(f"There is no broker {number} in the cluster; there are: {there}.")
                continue
            row = _describe(admin, found, known[number], partitions)
            rows.append(row)
            if output_format == "table":
                _print_broker(row)
    finish(output_format, rows, failed)


def find_broker(found: ClusterDescription, broker_id: int) -> Broker:
    """The broker of this id; an error that names those there are."""
    for broker in found.brokers:
        if broker.id == broker_id:
            return broker
    there = ", ".join(str(broker.id) for broker in found.brokers)
    raise click.ClickException(f"There is no broker {broker_id} in the cluster; there are: {there}.")


def _describe(
    admin: Admin, found: ClusterDescription, broker: Broker, partitions: list[PartitionMetadata]
) -> dict[str, object]:
    row = broker_row(found, broker, partitions)
    row["out_of_sync_replicas"] = sum(
        broker.id in item.replicas and broker.id not in item.in_sync_replicas for item in partitions
    )
    if row["fenced"]:
        return {**row, "configs": [], "log_directories": []}
    try:
        resource = ConfigResource(BROKER, str(broker.id))
        entries = admin.describe_configs([resource])[resource].get()
        row["configs"] = [
            {"name": entry.name, "value": entry.value, "source": CONFIG_SOURCES.get(entry.source, "unknown")}
            for entry in sorted(entries)
            if not entry.is_default
        ]
        row["log_directories"] = [
            _directory_row(item) for item in admin.describe_log_dirs([broker.id])[broker.id].get()
        ]
    except ClientError as error:
        row.setdefault("configs", [])
        row["log_directories"] = []
        row["message"] = explain(error)
    return row


def _directory_row(directory: LogDirectory) -> dict[str, object]:
    return {
        "path": directory.path,
        "error": None if directory.error is None else directory.error.message,
        "replicas": len(directory.replicas),
        "bytes": sum(replica.size for replica in directory.replicas),
        "total_bytes": None if directory.total_bytes < 0 else directory.total_bytes,
        "usable_bytes": None if directory.usable_bytes < 0 else directory.usable_bytes,
        "cordoned": directory.is_cordoned,
        "space": _space(directory),
    }


def _space(directory: LogDirectory) -> str | None:
    """Whether what comes still fits: Moldau refuses producers where little is left, Kafka fails when nothing is."""
    if directory.usable_bytes < 0:
        return None
    if directory.usable_bytes < FULL_BYTES:
        return "full"
    least = min(FREE_BYTES_MIN, max(0, directory.total_bytes) // FREE_SHARE_MIN)
    return "low" if directory.usable_bytes < least else "enough"


def _print_broker(row: dict[str, object]) -> None:
    configs, directories = row["configs"], row["log_directories"]
    assert isinstance(configs, list) and isinstance(directories, list)
    print_title(f"broker {row['id']}")
    lagging = int(str(row["out_of_sync_replicas"]))
    replicas = f"{row['replicas']}, {row['leaders']} of them leaders"
    print_fields(
        [
            ("address", f"{row['host']}:{row['port']}"),
            ("rack", row["rack"] or "-"),
            ("status", Styled("fenced", fg="red", bold=True) if row["fenced"] else Styled("active", fg="green")),
            ("replicas", Styled(f"{replicas}, {lagging} out of sync", fg="yellow") if lagging else replicas),
        ]
    )
    if "message" in row:
        print_error(str(row["message"]))
    click.echo()
    if directories:
        print_table(
            ("LOG DIRECTORY", "REPLICAS", "SIZE", "FREE", "TOTAL", "STATUS"),
            [_directory_cells(item) for item in directories],
            right=("REPLICAS", "SIZE", "FREE", "TOTAL"),
        )
        click.echo()
    if configs:
        cells = [
            (item["name"], "[hidden]" if item["value"] is None else item["value"], item["source"]) for item in configs
        ]
        print_table(("CONFIG", "VALUE", "SOURCE"), cells)
        click.echo(
            f"\n{plural(len(cells), 'config')} set; `moldau config describe broker {row['id']} --all` shows all.\n"
        )


def _directory_cells(item: dict[str, object]) -> tuple[object, ...]:
    sizes = [
        None if value is None else bytes_text(float(str(value)))
        for value in (item["bytes"], item["usable_bytes"], item["total_bytes"])
    ]
    if item["error"]:
        status: object = Styled(str(item["error"]), fg="red")
    else:
        words = ["cordoned" if item["cordoned"] else "online", *SPACE_REMARKS.get(str(item["space"]), ())]
        colour = "green" if words == ["online"] else "yellow"
        status = Styled(", ".join(words), fg="red" if item["space"] == "full" else colour)
    return (item["path"], item["replicas"], *sizes, status)
