"""`moldau topic describe`: partitions, offsets and configs of topics, with --watch also how fast they grow."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from moldau.cli.completion import complete_topics
from moldau.cli.options import Connection, connected, format_option, open_admin, watch_options
from moldau.cli.output import Styled, finish, plural, print_fields, print_table, print_title
from moldau.cli.topic import error_row, replication_factor_of, tell_error
from moldau.cli.watch import repeat
from moldau.client.admin import CONFIG_SOURCES, TOPIC, Admin, ConfigEntry, ConfigResource
from moldau.client.connection.cluster import PartitionMetadata, TopicMetadata
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import TopicPartition
from moldau.protocol.uuids import uuid_to_text

Ends = dict[TopicPartition, tuple[float, int]]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_topics)
@format_option
@watch_options
@connected
def describe(
    connection: Connection, names: tuple[str, ...], output_format: str, watch: bool, interval_s: float
) -> None:
    """Show partitions, offsets and configs of topics.

    With --watch, RATE tells how many records a second came to each partition since the last look.
    """
    ends: Ends = {}
    with open_admin(connection) as admin:
        repeat(lambda: _show(admin, names, output_format, ends if watch else None), watch, interval_s)


def _show(admin: Admin, names: Sequence[str], output_format: str, ends: Ends | None) -> None:
    rows: list[dict[str, object]] = []
    failed = False
    for name, outcome in admin.describe_topics(dict.fromkeys(names)).items():
        if outcome.error is not None:
            failed = True
            rows.append(error_row(name, outcome.error))
            tell_error(outcome.error)
            continue
        described = _describe(admin, outcome.get(), ends)
        rows.append(described)
        if output_format == "table":
            _print_description(described, ends is not None)
    finish(output_format, rows, failed)


def _describe(admin: Admin, topic: TopicMetadata, ends: Ends | None) -> dict[str, object]:
    partitions = [topic.partitions[index] for index in sorted(topic.partitions)]
    keys = [TopicPartition(topic.name, item.partition) for item in partitions if item.leader >= 0]
    starts = _offsets(admin, keys, EARLIEST)
    latest = _offsets(admin, keys, LATEST)
    rates = {} if ends is None else _rates(ends, latest)
    resource = ConfigResource(TOPIC, topic.name)
    found = admin.describe_configs([resource])[resource]
    entries: list[ConfigEntry] = [] if found.error is not None else found.get()
    rows = []
    for item in partitions:
        key = TopicPartition(topic.name, item.partition)
        row = _partition_row(item, starts.get(key), latest.get(key))
        if ends is not None:
            row["records_per_second"] = rates.get(key)
        rows.append(row)
    return {
        "name": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "replication_factor": replication_factor_of(topic),
        "configs": [
            {"name": entry.name, "value": entry.value, "source": CONFIG_SOURCES.get(entry.source, "unknown")}
            for entry in sorted(entries)
            if not entry.is_default
        ],
        "partitions": rows,
    }


def _offsets(admin: Admin, keys: list[TopicPartition], which: int) -> dict[TopicPartition, int]:
    """The offsets that were told; a partition whose leader does not respond is left out."""
    found = admin.list_offsets(dict.fromkeys(keys, which)) if keys else {}
    return {key: outcome.get().offset for key, outcome in found.items() if outcome.error is None}


def _rates(ends: Ends, latest: dict[TopicPartition, int]) -> dict[TopicPartition, float]:
    """Records a second since the last look; remembers this one."""
    now = time.monotonic()
    rates = {}
    for key, end in latest.items():
        if key in ends and now > ends[key][0]:
            rates[key] = round((end - ends[key][1]) / (now - ends[key][0]), 1)
        ends[key] = (now, end)
    return rates


def _partition_row(item: PartitionMetadata, start: int | None, end: int | None) -> dict[str, object]:
    return {
        "partition": item.partition,
        "leader": item.leader,
        "leader_epoch": item.leader_epoch,
        "replicas": item.replicas,
        "in_sync_replicas": item.in_sync_replicas,
        "offline_replicas": item.offline_replicas,
        "start_offset": start,
        "end_offset": end,
    }


def _print_description(described: dict[str, object], with_rate: bool) -> None:
    partitions = described["partitions"]
    configs = described["configs"]
    assert isinstance(partitions, list) and isinstance(configs, list)
    known = [row for row in partitions if row["start_offset"] is not None and row["end_offset"] is not None]
    offsets = sum(row["end_offset"] - row["start_offset"] for row in known)
    print_title(str(described["name"]))
    fields: list[tuple[str, object]] = [
        ("id", described["topic_id"]),
        ("partitions", len(partitions)),
        ("replication factor", described["replication_factor"]),
        ("offsets", f"{offsets:,} from start to end"),
    ]
    if described["internal"]:
        fields.append(("internal", "yes"))
    if with_rate:
        total = sum(row["records_per_second"] or 0 for row in partitions)
        fields.append(("rate", f"{plural(round(total), 'record')} a second"))
    for index, entry in enumerate(configs):
        value = "[hidden]" if entry["value"] is None else entry["value"]
        fields.append(("configs" if index == 0 else "", f"{entry['name']}={value} ({entry['source']})"))
    print_fields(fields)
    click.echo()
    columns = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN-SYNC", "START", "END"]
    right = {"PARTITION", "LEADER", "EPOCH", "START", "END", "RATE"}
    rows = [_cells(row) for row in partitions]
    if with_rate:
        columns.append("RATE")
        for cells, row in zip(rows, partitions, strict=True):
            rate = row["records_per_second"]
            cells.append("" if rate is None else Styled(f"{rate:,.0f}/s", fg="green" if rate else None, dim=not rate))
    print_table(columns, rows, right=right)
    click.echo()


def _cells(row: dict[str, object]) -> list[object]:
    leader, replicas, in_sync = row["leader"], row["replicas"], row["in_sync_replicas"]
    assert isinstance(leader, int) and isinstance(replicas, list) and isinstance(in_sync, list)
    return [
        row["partition"],
        Styled("none", fg="red", bold=True) if leader < 0 else leader,
        row["leader_epoch"],
        ids_text(replicas),
        Styled(ids_text(in_sync), fg="yellow") if len(in_sync) < len(replicas) else ids_text(in_sync),
        "?" if row["start_offset"] is None else row["start_offset"],
        "?" if row["end_offset"] is None else row["end_offset"],
    ]


def ids_text(values: Sequence[int]) -> str:
    return ",".join(str(value) for value in values)
