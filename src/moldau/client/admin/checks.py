"""Checks of what is handed to the admin client, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from moldau.client.results import TopicPartition
from moldau.protocol.integers import INT_MAX

T = TypeVar("T")

UUID_BYTES = 16


def checked_names(names: Iterable[str], what: str) -> list[str]:
    """The names without repeats. A single string is refused: taken as a list it would name its letters."""
    if isinstance(names, (str, bytes)):
        raise TypeError(f"A list of {what} is wanted, not the single string {names!r}.")
    if not isinstance(names, Iterable):
        raise TypeError(f"A list of {what} is wanted, not {names!r}.")
    found = list(dict.fromkeys(names))
    for name in found:
        checked_name(name, what)
    return found


def checked_name(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is not a string: {what} are named by strings.")
    if not name:
        raise ValueError(f"An empty string is no name: {what}.")
    return name


def checked_group(group_id: str) -> str:
    """A group id. The empty one is allowed: very old consumers have committed under it."""
    if not isinstance(group_id, str):
        raise TypeError(f"{group_id!r} is not a string: groups are named by strings.")
    return group_id


def checked_groups(group_ids: Iterable[str]) -> list[str]:
    if isinstance(group_ids, (str, bytes)):
        raise TypeError(f"A list of groups is wanted, not the single string {group_ids!r}.")
    return [checked_group(group_id) for group_id in dict.fromkeys(group_ids)]


def checked_uuids(ids: Iterable[bytes], what: str) -> list[bytes]:
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"A list of {what} is wanted, not a single one.")
    found = list(dict.fromkeys(ids))
    for item in found:
        checked_uuid(item, what)
    return found


def checked_uuid(value: bytes, what: str) -> bytes:
    if not isinstance(value, bytes) or len(value) != UUID_BYTES:
        raise ValueError(f"{value!r} is not an id of {UUID_BYTES} bytes: {what}.")
    return value


def checked_int(value: int, what: str, lowest: int = 0, highest: int = INT_MAX) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be a whole number, not {value!r}.")
    if not lowest <= value <= highest:
        raise ValueError(f"{what} must be from {lowest} to {highest}, not {value}.")
    return value


def checked_ids(values: Iterable[int], what: str) -> list[int]:
    return [checked_int(value, what) for value in dict.fromkeys(values)]


def checked_partitions(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Partitions without repeats; plain (topic, partition) pairs are taken as well."""
    if isinstance(partitions, (str, bytes)):
        raise TypeError(f"A list of partitions is wanted, not the single string {partitions!r}.")
    if not isinstance(partitions, Iterable):
        raise TypeError(f"A list of partitions is wanted, not {partitions!r}.")
    found = []
    for item in dict.fromkeys(partitions):
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError(f"A partition is TopicPartition(topic, partition), not {item!r}.")
        topic, partition = item
        found.append(TopicPartition(checked_name(topic, "topics"), checked_int(partition, "a partition")))
    return found


def checked_offsets(offsets: Mapping[TopicPartition, int], lowest: int) -> list[TopicPartition]:
    for partition, offset in offsets.items():
        checked_int(offset, f"the offset of {partition}", lowest, 0x7FFFFFFFFFFFFFFF)
    return checked_partitions(offsets)


def checked_partitions_of_groups(
    groups: Mapping[str, Iterable[TopicPartition] | None],
) -> dict[str, list[TopicPartition] | None]:
    """The partitions of each group; None: all that there are."""
    return {
        checked_group(group_id): None if partitions is None else checked_partitions(partitions)
        for group_id, partitions in groups.items()
    }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions grouped as most requests want them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def topic_rows(partitions: Iterable[TopicPartition], row: Callable[[str, list[int]], T]) -> list[T]:
    """A row of a request for each topic, made from its name and the numbers of its partitions."""
    return [row(name, indexes) for name, indexes in by_topic(partitions).items()]


def topic_rows_or_all(
    partitions: Iterable[TopicPartition] | None, row: Callable[[str, list[int]], T]
) -> list[T] | None:
    """The same where None stands for all partitions."""
    return None if partitions is None else topic_rows(partitions, row)
