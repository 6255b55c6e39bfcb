"""Asks brokers what a read must know before it starts: topics and their ids, and the offsets that options mean.

One `Lookup` is one connection to the cluster, used by the driver for a batch read, a stream or a load. It waits out
brokers that are down for a while; what does not pass by waiting is told in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from moldau.client import config as client_settings
from moldau.client.connection.cluster import Cluster, TopicMetadata
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError
from moldau.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from moldau.client.results import OffsetAndTimestamp, TopicPartition
from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION
from moldau.protocol.uuids import ZERO_UUID, uuid_to_text
from moldau.spark import options as words
from moldau.spark.offsets import EARLIEST_OFFSET, LATEST_OFFSET, Offsets
from moldau.spark.options import Bound, OptionError, ReadOptions

T = TypeVar("T")

TIMEOUT_MS = 60_000

DATA_LOSS_ADVICE = (
    "Set failOnDataLoss to false to go on with what is there; start with a new checkpoint to read the topic anew."
)


class ReadError(RuntimeError):
    """A read cannot go on; the message is a sentence that says what to do."""


@dataclass(frozen=True)
class Found:
    """The partitions that a subscription means now, and the ids of their topics."""

    partitions: tuple[TopicPartition, ...]
    # 22 characters each; a topic is missing where the broker tells no ids.
    topic_ids: Mapping[str, str]


class Lookup:
    """The questions of one read; to be closed, or used with `with`."""

    def __init__(self, options: ReadOptions, timeout_ms: int = TIMEOUT_MS) -> None:
        self._options = options
        self._timeout_ms = timeout_ms
        self._isolation = READ_COMMITTED if options.read_committed else READ_UNCOMMITTED
        settings = client_settings.read(client_settings.CONSUMER, None, options.client_config, {})
        # auto_create_topics stays off: a read never creates a topic.
        self._cluster = Cluster(settings)

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Partitions

    def find_partitions(self, allow_missing: bool = False) -> Found:
        """Asks which topics and partitions the options mean.

        A topic that does not exist raises ReadError; with allow_missing it is left out.
        """
        wanted = self._options.subscription
        if wanted.pattern:
            matches = re.compile(wanted.pattern)
            self._ask(lambda: self._cluster.refresh(None, self._timeout_ms))
            topics = [
                row for name, row in self._cluster.topics.items() if matches.fullmatch(name) and not row.is_internal
            ]
            return _found([TopicPartition(row.name, number) for row in topics for number in row.partitions], topics)
        names = sorted({item.topic for item in wanted.partitions}) or list(wanted.topics)
        topics = [row for name in names if (row := self._topic(name, allow_missing)) is not None]
        if not wanted.partitions:
            return _found([TopicPartition(row.name, number) for row in topics for number in row.partitions], topics)
        for row in topics:
            for item in wanted.partitions:
                if item.topic == row.name and item.partition not in row.partitions:
                    count = len(row.partitions)
                    raise ReadError(
                        f"assign names {item}, but topic {row.name} has {count} partitions, from 0 to {count - 1}."
                    )
        return _found([item for item in wanted.partitions if any(row.name == item.topic for row in topics)], topics)

    def _topic(self, name: str, allow_missing: bool) -> TopicMetadata | None:
        try:
            return self._cluster.topic(name, self._timeout_ms)
        except ClientError as error:
            if error.code == UNKNOWN_TOPIC_OR_PARTITION and allow_missing:
                return None
            if error.code == UNKNOWN_TOPIC_OR_PARTITION:
                option = self._options.subscription.option
                sentence = f"Topic {name} does not exist: create it, or correct the option {option}."
                raise ReadError(sentence) from None
            raise ReadError(self._sentence(error)) from None

    # Offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._offsets(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Behind the last record that a reader can see: high watermarks, or last stable offsets for read_committed."""
        return self._offsets(dict.fromkeys(partitions, LATEST))

    def at_time(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; None where no record is so young."""
        rows = self._list(times)
        return {item: (None if row.offset < 0 else row.offset) for item, row in rows.items()}

    def starting_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where the options say to start."""
        bound = self._options.starting
        items = list(partitions)
        if bound.kind in (words.TIMESTAMP, words.TIMESTAMPS):
            return self._starting_by_time(bound, items)
        return self._by_offset(bound, items)

    def ending_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where the options say to end; a time beyond the last record means the latest."""
        bound = self._options.ending
        items = list(partitions)
        if bound.kind in (words.TIMESTAMP, words.TIMESTAMPS):
            found = self.at_time(_times(bound, items))
            late = self.latest([item for item, offset in found.items() if offset is None])
            return {item: late[item] if offset is None else offset for item, offset in found.items()}
        return self._by_offset(bound, items)

    def _starting_by_time(self, bound: Bound, items: list[TopicPartition]) -> Offsets:
        found = self.at_time(_times(bound, items))
        missing = [item for item, offset in found.items() if offset is None]
        if missing and self._options.timestamp_strategy != words.LATEST:
            names = ", ".join(str(item) for item in missing)
            raise ReadError(
                f"No record of {names} is as young as {bound.option} says: choose an earlier time, or set"
                " startingOffsetsByTimestampStrategy to latest to start behind the last record."
            )
        late = self.latest(missing)
        return {item: late[item] if offset is None else offset for item, offset in found.items()}

    def _by_offset(self, bound: Bound, items: list[TopicPartition]) -> Offsets:
        if bound.kind == words.EARLIEST:
            return self.earliest(items)
        if bound.kind == words.LATEST:
            return self.latest(items)
        _check_covers(bound, items)
        chosen = {item: bound.by_partition[item] for item in items}
        first = self.earliest([item for item, offset in chosen.items() if offset == EARLIEST_OFFSET])
        last = self.latest([item for item, offset in chosen.items() if offset == LATEST_OFFSET])
        return {item: first.get(item, last.get(item, offset)) for item, offset in chosen.items()}

    def _offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        return {item: row.offset for item, row in self._list(wanted).items()}

    def _list(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        if not wanted:
            return {}
        outcomes = self._ask(lambda: list_offsets(self._cluster, wanted, self._timeout_ms, self._isolation))
        return {item: self._ask(outcome.get) for item, outcome in outcomes.items()}

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except ClientError as error:
            raise ReadError(self._sentence(error)) from None

    def _sentence(self, error: ClientError) -> str:
        return explain(error, self._options.bootstrap_servers)


def explain(error: ClientError, bootstrap_servers: str) -> str:
    """What a client's error means for somebody who runs a query, and what to do."""
    if isinstance(error, NetworkError | RequestTimeoutError):
        return f"{error.message} Check kafka.bootstrap.servers ({bootstrap_servers}) and that the brokers are up."
    return f"{error.message} ({error.name})"


def recreated_sentence(topic: str, old_id: str, new_id: str) -> str:
    return f"Topic {topic} was deleted and created again: its id was {old_id} and is {new_id} now."


def _found(partitions: Iterable[TopicPartition], topics: Iterable[TopicMetadata]) -> Found:
    ids = {row.name: uuid_to_text(row.topic_id) for row in topics if row.topic_id != ZERO_UUID}
    return Found(tuple(sorted(partitions)), ids)


def _times(bound: Bound, items: list[TopicPartition]) -> dict[TopicPartition, int]:
    if bound.kind == words.TIMESTAMP:
        return dict.fromkeys(items, bound.timestamp_ms)
    _check_covers(bound, items)
    return {item: bound.by_partition[item] for item in items}


def _check_covers(bound: Bound, items: list[TopicPartition]) -> None:
    """All partitions that are read must be named, and no others: a forgotten one would be read from somewhere."""
    missing = [item for item in items if item not in bound.by_partition]
    if missing:
        names = ", ".join(str(item) for item in missing)
        sentence = f"The option {bound.option} must name all partitions that are read: {names} is missing."
        raise OptionError(f"{sentence} Write -2 for the earliest and -1 for the latest offset.")
    beyond = sorted(set(bound.by_partition) - set(items))
    if beyond:
        names = ", ".join(str(item) for item in beyond)
        raise OptionError(f"The option {bound.option} names {names}, which does not exist or is not subscribed to.")
