"""The order in which Java's HashMap walks partitions and its other keys: several of Kafka's tools print in it."""

from __future__ import annotations

from moldau.client.results import TopicPartition
from moldau.telemetry.hash_order import LOAD as LOAD
from moldau.telemetry.hash_order import hash_map_order as hash_map_order
from moldau.telemetry.hash_order import hash_order as hash_order
from moldau.telemetry.hash_order import string_hash as string_hash


def combined_hash(first: int, *parts: int) -> int:
    """What Java's classes make of the hashes of their fields."""
    found = first
    for part in parts:
        found = (31 * found + part) & 0xFFFFFFFF
    return found


def partition_hash(partition: TopicPartition) -> int:
    return combined_hash(1, partition.partition, string_hash(partition.topic))
