"""`moldau cluster describe`: who is in the cluster: its brokers, its quorum, its features."""

from __future__ import annotations

import click

from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, print_fields, print_json, print_table, print_title
from moldau.cli.watch import repeat
from moldau.client.admin import Admin, FeatureMetadata, QuorumInfo
from moldau.facts.cluster import all_partitions, ask_quorum, broker_row, describe_brokers


@click.command()
@click.option("--features", "with_features", is_flag=True, help="Also the levels of the cluster's features.")
@format_option
@watch_options
@connected
def describe(connection: Connection, with_features: bool, output_format: str, watch: bool, interval_s: float) -> None:
    """Show the cluster's id, controller, quorum and brokers."""
    with open_admin(connection) as admin:
        repeat(lambda: _show(admin, with_features, output_format), watch, interval_s)


def _show(admin: Admin, with_features: bool, output_format: str) -> None:
    found = describe_brokers(admin)
    topics = admin.list_topics()
    quorum = ask_quorum(admin)
    features = admin.describe_features()
    partitions = all_partitions(topics)
    brokers = [broker_row(found, broker, partitions) for broker in found.brokers]
    if output_format == "json":
        print_json(
            {
                "cluster_id": found.cluster_id,
                "controller": found.controller_id,
                "quorum": None if quorum is None else _quorum_row(quorum),
                "topics": len(topics),
                "partitions": len(partitions),
                "features": {name: level.highest for name, level in sorted(features.finalized.items())},
                "brokers": brokers,
            }
        )
        return
    internal = sum(topic.is_internal for topic in topics)
    fields: list[tuple[str, object]] = [
        ("controller", _controller_text(found.controller_id, quorum)),
        ("topics", f"{len(topics) - internal}" + (f" and {internal} internal" if internal else "")),
        ("partitions", len(partitions)),
    ]
    if quorum is not None:
        voters = ", ".join(str(voter.replica_id) for voter in quorum.voters)
        fields.insert(1, ("quorum", f"voters {voters}; epoch {quorum.leader_epoch}, offset {quorum.high_watermark:,}"))
    version = features.finalized.get("metadata.version")
    if version is not None:
        fields.append(("metadata version", _version_text(version.highest)))
    print_title(f"cluster {found.cluster_id}")
    print_fields(fields)
    click.echo()
    print_brokers(brokers)
    if with_features:
        click.echo()
        _print_features(features)


def _version_text(level: int) -> str:
    """The release, where this one knows it, and the level: a newer cluster has levels without a name here."""
    from moldau.metadata.features import LOWEST_METADATA_VERSION, metadata_version_name, metadata_version_names

    known = 0 <= level - LOWEST_METADATA_VERSION < len(metadata_version_names())
    return f"{metadata_version_name(level)} (level {level})" if known else f"level {level}"


def _controller_text(controller_id: int, quorum: QuorumInfo | None) -> object:
    """Brokers name any broker as the controller for old clients; the quorum knows who it really is."""
    leader = controller_id if quorum is None else quorum.leader_id
    return Styled("none", fg="red", bold=True) if leader < 0 else leader


def print_brokers(brokers: list[dict[str, object]]) -> None:
    rows = [
        (
            row["id"],
            f"{row['host']}:{row['port']}" if row["host"] else Styled("-", dim=True),
            row["rack"] or Styled("-", dim=True),
            Styled("fenced", fg="red", bold=True) if row["fenced"] else Styled("active", fg="green"),
            row["leaders"],
            row["replicas"],
        )
        for row in brokers
    ]
    columns = ("BROKER", "ADDRESS", "RACK", "STATUS", "LEADERS", "REPLICAS")
    print_table(columns, rows, right=("BROKER", "LEADERS", "REPLICAS"))


def _print_features(features: FeatureMetadata) -> None:
    rows = []
    for name, supported in sorted(features.supported.items()):
        level = features.finalized.get(name)
        rows.append((name, 0 if level is None else level.highest, f"{supported.lowest}-{supported.highest}"))
    print_table(("FEATURE", "LEVEL", "SUPPORTED"), rows, right=("LEVEL", "SUPPORTED"))


def _quorum_row(quorum: QuorumInfo) -> dict[str, object]:
    return {
        "leader": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [{"id": item.replica_id, "log_end_offset": item.log_end_offset} for item in quorum.voters],
        "observers": [{"id": item.replica_id, "log_end_offset": item.log_end_offset} for item in quorum.observers],
    }
