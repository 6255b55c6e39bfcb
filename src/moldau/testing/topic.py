"""A topic in a test: its name, usable wherever a name is, with what a test wants to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from moldau.testing.waiting import DEFAULT_TIMEOUT_MS

if TYPE_CHECKING:
    from moldau.client import ConsumerRecord, RecordMetadata
    from moldau.testing.looking import ClientMethods


class Topic(str):
    """A str, so that every client takes it; at the end of its `with` the topic is deleted."""

    partitions: int
    _cluster: ClientMethods

    @staticmethod
    def of(name: str, partitions: int, cluster: ClientMethods) -> Topic:
        """For the cluster: the topic of this name."""
        topic = Topic(name)
        topic.partitions = partitions
        topic._cluster = cluster
        return topic

    @property
    def name(self) -> str:
        """The topic's name as plain text."""
        return str(self)

    def produce(
        self,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]] = (),
    ) -> RecordMetadata:
        """Writes a record and waits until it is there."""
        return self._cluster.produce(self, value, key, partition=partition, headers=headers)

    def records(self, partition: int | None = None) -> list[ConsumerRecord]:
        """All records that are there now."""
        return self._cluster.records(self, partition)

    def wait_for_records(self, count: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> list[ConsumerRecord]:
        """Waits until at least so many records are there, and returns all."""
        return self._cluster.wait_for_records(self, count, timeout_ms)

    def delete(self) -> None:
        """Deletes the topic; one that is not there is fine."""
        self._cluster.delete_topic(self)

    def __enter__(self) -> Topic:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.delete()
