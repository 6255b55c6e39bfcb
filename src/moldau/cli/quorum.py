"""`moldau quorum describe|add-voter|remove-voter`: the controllers that keep the cluster's metadata."""

from __future__ import annotations

import time

import click

from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, print_fields, print_json, print_table, print_title, say
from moldau.cli.watch import repeat
from moldau.client.admin import Admin, QuorumInfo, QuorumReplica, RaftEndpoint
from moldau.protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

# A voter that the leader did not hear of for so long is shown in red.
SILENT_MS = 10_000


@click.command()
@format_option
@watch_options
@connected
def describe(connection: Connection, output_format: str, watch: bool, interval_s: float) -> None:
    """Show who leads the quorum, who votes, and how far each replica of the metadata is."""
    with open_admin(connection) as admin:
        repeat(lambda: _show(admin, output_format), watch, interval_s)


def _show(admin: Admin, output_format: str) -> None:
    quorum = admin.describe_metadata_quorum()
    now_ms = int(time.time() * 1000)
    leader = next((each for each in quorum.voters if each.replica_id == quorum.leader_id), None)
    end = quorum.high_watermark if leader is None else leader.log_end_offset
    if output_format == "json":
        rows = [_row(quorum, each, end) for each in [*quorum.voters, *quorum.observers]]
        print_json(
            {
                "leader": quorum.leader_id,
                "leader_epoch": quorum.leader_epoch,
                "high_watermark": quorum.high_watermark,
                "replicas": rows,
            }
        )
        return
    print_title("metadata quorum")
    votes = f"{len(quorum.voters) // 2 + 1} of {len(quorum.voters)}"
    print_fields(
        [
            ("leader", Styled("none", fg="red", bold=True) if quorum.leader_id < 0 else quorum.leader_id),
            ("epoch", quorum.leader_epoch),
            ("committed up to", f"{quorum.high_watermark:,}"),
            ("votes needed", votes),
        ]
    )
    click.echo()
    _print_replicas(quorum, end, now_ms)


def _role(quorum: QuorumInfo, replica: QuorumReplica) -> str:
    if replica.replica_id == quorum.leader_id:
        return "leader"
    return "voter" if replica in quorum.voters else "observer"


def _row(quorum: QuorumInfo, replica: QuorumReplica, end: int) -> dict[str, object]:
    return {
        "id": replica.replica_id,
        "role": _role(quorum, replica),
        "directory_id": None if replica.directory_id == ZERO_UUID else uuid_to_text(replica.directory_id),
        "endpoints": [
            f"{item.listener}://{item.host}:{item.port}" for item in quorum.nodes.get(replica.replica_id, [])
        ],
        "log_end_offset": replica.log_end_offset,
        "lag": _lag(replica, end),
        "last_fetch_timestamp": replica.last_fetch_timestamp,
        "last_caught_up_timestamp": replica.last_caught_up_timestamp,
    }


def _lag(replica: QuorumReplica, end: int) -> int | None:
    return None if replica.log_end_offset < 0 else max(0, end - replica.log_end_offset)


def _print_replicas(quorum: QuorumInfo, end: int, now_ms: int) -> None:
    rows = []
    for replica in [*quorum.voters, *quorum.observers]:
        endpoints = [f"{item.host}:{item.port}" for item in quorum.nodes.get(replica.replica_id, [])]
        role = _role(quorum, replica)
        lag = _lag(replica, end)
        rows.append(
            (
                replica.replica_id,
                Styled(role, fg="green", bold=True) if role == "leader" else role,
                ", ".join(endpoints) or Styled("-", dim=True),
                replica.log_end_offset if replica.log_end_offset >= 0 else Styled("?", dim=True),
                Styled("?", dim=True) if lag is None else lag,
                Styled("-", dim=True) if role == "leader" else _ago(replica.last_caught_up_timestamp, now_ms),
                Styled("-", dim=True) if replica.directory_id == ZERO_UUID else uuid_to_text(replica.directory_id),
            )
        )
    columns = ("NODE", "ROLE", "ADDRESS", "END", "LAG", "CAUGHT UP", "DIRECTORY ID")
    print_table(columns, rows, right=("NODE", "END", "LAG", "CAUGHT UP"))


def _ago(timestamp: int | None, now_ms: int) -> Styled:
    if timestamp is None or timestamp < 0:
        return Styled("never", fg="red")
    silent_ms = max(0, now_ms - timestamp)
    text = f"{silent_ms} ms ago" if silent_ms < 1000 else f"{silent_ms / 1000:,.0f} s ago"
    return Styled(text, fg="red" if silent_ms > SILENT_MS else None)


def _parse_uuid(text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError:
        raise click.UsageError(
            f"{text!r} is no directory id; `moldau storage info -c FILE` on that node shows it."
        ) from None


def _parse_endpoint(text: str) -> RaftEndpoint:
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not name or not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise click.UsageError(
            f"Write the endpoint as LISTENER://HOST:PORT, such as CONTROLLER://10.0.0.4:9093; not {text!r}."
        )
    return RaftEndpoint(name, host.strip("[]"), int(port))


@click.command("add-voter")
@click.argument("node_id", metavar="ID", type=click.IntRange(min=0))
@click.argument("directory_id", metavar="DIRECTORY-ID")
@click.argument("endpoints", metavar="LISTENER://HOST:PORT...", nargs=-1, required=True)
@format_option
@connected
def add_voter(
    connection: Connection, node_id: int, directory_id: str, endpoints: tuple[str, ...], output_format: str
) -> None:
    """Give a controller a vote. It must run already and have caught up with the quorum.

    \b
    Example:
      moldau quorum add-voter 4 x5mYFSDcTmqPJYqBcbnw4Q CONTROLLER://10.0.0.4:9093
    """
    directory = _parse_uuid(directory_id)
    addresses = [_parse_endpoint(text) for text in endpoints]
    with open_admin(connection) as admin:
        admin.add_raft_voter(node_id, directory, addresses)
        _tell_voters(admin, output_format, f"Node {node_id} votes now.")


@click.command("remove-voter")
@click.argument("node_id", metavar="ID", type=click.IntRange(min=0))
@click.argument("directory_id", metavar="DIRECTORY-ID")
@format_option
@connected
def remove_voter(connection: Connection, node_id: int, directory_id: str, output_format: str) -> None:
    """Take a controller's vote away; its node goes on as an observer."""
    directory = _parse_uuid(directory_id)
    with open_admin(connection) as admin:
        admin.remove_raft_voter(node_id, directory)
        _tell_voters(admin, output_format, f"Node {node_id} has no vote any more.")


def _tell_voters(admin: Admin, output_format: str, sentence: str) -> None:
    say(output_format, sentence)
    if output_format == "json":
        print_json({"voters": sorted(each.replica_id for each in admin.describe_metadata_quorum().voters)})
