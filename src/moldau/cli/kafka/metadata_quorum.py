"""`kafka-metadata-quorum`: the state of the metadata quorum and of its replicas, and who votes in it."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka.admin_tools import Connect, ask, connect, java_text
from moldau.cli.kafka.options import JavaFailure
from moldau.cli.kafka.subcommands import CommandParser, connection_options
from moldau.protocol.uuids import ZERO_UUID, uuid_to_text

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.admin.quorum import QuorumInfo, QuorumReplica

HEADER = ["NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"]


def _parser() -> CommandParser:
    parser = CommandParser(prog="kafka-metadata-quorum", description="The metadata quorum.")
    connection_options(parser)
    parser.add_argument("--command-config", help="A file with settings for the admin client.")
    commands = parser.add_subparsers(dest="command")
    describe = commands.add_parser("describe", help="Show the quorum.")
    describe.add_argument("--status", action="store_true", help="In short.")
    describe.add_argument("--replication", action="store_true", help="Replica by replica.")
    describe.add_argument("--human-readable", action="store_true", help="Times as how long ago.")
    add = commands.add_parser("add-controller", help="Give a controller a vote.")
    add.add_argument("--dry-run", action="store_true", help="Only show what would be done.")
    remove = commands.add_parser("remove-controller", help="Take a controller's vote away.")
    remove.add_argument("--controller-id", "-i", type=int, required=True, help="The id of the controller.")
    remove.add_argument("--controller-directory-id", "-d", required=True, help="The id of its directory.")
    remove.add_argument("--dry-run", action="store_true", help="Only show what would be done.")
    return parser


def main(arguments: list[str], connect: Connect = connect) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command_config is not None and not os.path.exists(options.command_config):
            raise JavaFailure("TerseException", f"Properties file {options.command_config} does not exists!")
        if options.command == "describe":
            _check_describe(options)
        where = (options.bootstrap_server, options.command_config, options.bootstrap_controller)
        with ask("", lambda: connect(*where)) as admin:
            lines = _run(admin, options)
    except JavaFailure as failure:
        return _end(failure, options.command)
    print("\n".join(lines))
    return 0


def _check_describe(options: Any) -> None:
    """Exactly one of two things can be shown."""
    sentence = None
    if options.status and options.replication:
        sentence = "Only one of --status or --replication should be specified with describe sub-command"
    elif options.status and options.human_readable:
        sentence = "The option --human-readable is only supported along with --replication"
    elif not options.status and not options.replication:
        sentence = "One of --status or --replication must be specified with describe sub-command"
    if sentence is not None:
        raise JavaFailure("TerseException", sentence)


def _run(admin: Admin, options: Any) -> list[str]:
    if options.command == "describe":
        return _status(admin) if options.status else _replication(admin, options.human_readable)
    from moldau.cli.kafka.metadata_quorum_voters import add_controller, remove_controller

    return [
        add_controller(admin, options) if options.command == "add-controller" else remove_controller(admin, options)
    ]


def _end(failure: JavaFailure, command: str) -> int:
    terse = failure.class_name == "TerseException"
    # The message of the exception around it, which is the whole of the one inside.
    first = failure.message if terse or command == "describe" else java_text(failure)
    sys.stderr.write(f"{first}\n")
    if not terse:
        wrapped = f"java.util.concurrent.ExecutionException: {java_text(failure)}"
        sys.stderr.write(f"{wrapped}\nCaused by: {java_text(failure)}\n\n")
    return 1


def _status(admin: Admin) -> list[str]:
    cluster = ask("describeCluster", admin.describe_cluster)
    return status_lines(cluster.cluster_id, ask("describeMetadataQuorum", admin.describe_metadata_quorum))


def status_lines(cluster_id: str, quorum: QuorumInfo) -> list[str]:
    leader = next(voter for voter in quorum.voters if voter.replica_id == quorum.leader_id)
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    caught_up, own = slowest.last_caught_up_timestamp, leader.last_caught_up_timestamp
    lag_ms = -1
    if slowest == leader:
        lag_ms = 0
    elif own is not None and caught_up is not None:
        lag_ms = own - caught_up
    values = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _members(quorum, quorum.voters),
        "CurrentObservers": _members(quorum, quorum.observers),
    }
    return [f"{name + ':':<24}{value}" for name, value in values.items()]


def _members(quorum: QuorumInfo, replicas: list[QuorumReplica]) -> str:
    shown = []
    for replica in replicas:
        cells = [f'"id": {replica.replica_id}']
        if replica.directory_id != ZERO_UUID:
            cells.append(f'"directoryId": "{uuid_to_text(replica.directory_id)}"')
        endpoints = [
            f'"{item.listener}://{item.host}:{item.port}"' for item in quorum.nodes.get(replica.replica_id, [])
        ]
        if endpoints:
            cells.append(f'"endpoints": [{", ".join(endpoints)}]')
        shown.append("{" + ", ".join(cells) + "}")
    return "[" + ", ".join(shown) + "]"


def _replication(admin: Admin, readable: bool) -> list[str]:
    quorum = ask("describeMetadataQuorum", admin.describe_metadata_quorum)
    return replication_lines(quorum, int(time.time() * 1000) if readable else None)


def replication_lines(quorum: QuorumInfo, now_ms: int | None) -> list[str]:
    """A table, the leader first; now_ms: times are shown as how long ago."""
    leader = next(voter for voter in quorum.voters if voter.replica_id == quorum.leader_id)
    rows = [HEADER]
    followers = [voter for voter in quorum.voters if voter is not leader]
    for status, replicas in (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers)):
        for replica in replicas:
            times = [
                _time(moment, now_ms) for moment in (replica.last_fetch_timestamp, replica.last_caught_up_timestamp)
            ]
            lag = leader.log_end_offset - replica.log_end_offset
            identity = uuid_to_text(replica.directory_id)
            rows.append([str(replica.replica_id), identity, str(replica.log_end_offset), str(lag), *times, status])
    widths = [max(len(row[index]) for row in rows) for index in range(len(HEADER))]
    return ["".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _time(moment: int | None, now_ms: int | None) -> str:
    if moment is None:
        return "-1"
    return str(moment) if now_ms is None else f"{now_ms - moment} ms ago"
