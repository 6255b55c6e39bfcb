"""Partitions as people name them: TOPIC for all of a topic, TOPIC:0,2-4 for some."""

from __future__ import annotations

from collections.abc import Iterable

import click

from moldau.cli.positions import check_partitions, parse_partitions
from moldau.client.admin import Admin
from moldau.client.connection.cluster import PartitionMetadata


def find_partitions(admin: Admin, names: Iterable[str]) -> list[PartitionMetadata]:
    """The partitions that are named, in the order of topic and number; none named: all of the cluster."""
    wanted: dict[str, list[int] | None] = {}
    for text in names:
        topic, colon, numbers = text.rpartition(":") if ":" in text else (text, "", "")
        if not topic or (colon and not numbers):
            raise click.UsageError(f"Name partitions as TOPIC or TOPIC:0,2-4, not {text!r}.")
        before = wanted.get(topic, [])
        wanted[topic] = None if not colon or before is None else [*before, *parse_partitions(numbers)]
    found = []
    for topic in wanted or [topic.name for topic in admin.list_topics()]:
        there = {item.partition: item for item in admin.partitions_of(topic)}
        numbers_wanted = wanted.get(topic)
        if numbers_wanted is not None:
            check_partitions(topic, list(there), numbers_wanted)
        found += [there[number] for number in sorted(there if numbers_wanted is None else set(numbers_wanted))]
    return sorted(found, key=lambda item: (item.topic, item.partition))


def ids_text(ids: Iterable[int]) -> str:
    return ",".join(str(each) for each in ids)
