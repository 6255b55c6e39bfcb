"""Topics as Metadata responses hold them, encoded once for each listener and version and kept while nothing changes.

Whoever asks for all topics of a large cluster gets bytes that are there already. A topic is encoded again when its own
image is another one, all of them when a broker is fenced, comes back, moves or changes its directories. What is kept is
bounded; what does not fit is encoded for every request, as if there were no cache.
"""

from __future__ import annotations

from typing import Final

from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BrokerRegistration, PartitionRegistration, TopicImage
from moldau.protocol.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponsePartition
from moldau.protocol.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from moldau.protocol.primitives import Writer

VIEWS_MAX: Final = 8
BYTES_MAX: Final = 32 << 20
ROWS_MAX: Final = 2_000
ENTRY_BYTES: Final = 200
"""About what the objects around an encoded topic take."""

# Where a row has the index of its partition, in every version: after the error code.
INDEX_AT: Final = 2
INDEX_END: Final = 6

BrokersAsSeen = dict[int, tuple[bool, bool, tuple[bytes, ...]]]
RowKey = tuple[object, ...]
DESCRIBE_TOPIC_PARTITIONS: Final = -1
"""Stands for a version: its rows are others than those of Metadata, and look alike where these do."""


class EncodedRow(MetadataResponsePartition):
    """A partition that is encoded already."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def encode(self, writer: Writer, version: int) -> None:
        writer.raw(self.data)


class EncodedDescription(DescribeTopicPartitionsResponsePartition):
    """The same in a response to DescribeTopicPartitions."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def encode(self, writer: Writer, version: int) -> None:
        writer.raw(self.data)


class EncodedTopic(MetadataResponseTopic):
    """A topic that is encoded already, and of which image it is. Only the error code can be read."""

    def __init__(self, topic: TopicImage, data: bytes) -> None:
        self.error_code = 0
        self.topic = topic
        self.data = data

    def encode(self, writer: Writer, version: int) -> None:
        writer.raw(self.data)


class TopicView:
    """What clients of one listener see in one version, with or without the operations they may do."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerRegistration] | None = None
        self.brokers_as_seen: BrokersAsSeen = {}
        self.topics: dict[str, EncodedTopic] = {}
        # Many partitions differ in their index only, so what comes after it is encoded once for all of them.
        self.rows: dict[RowKey, bytes] = {}
        self.size_bytes = 0

    def find(self, topic: TopicImage) -> EncodedTopic | None:
        found = self.topics.get(topic.name)
        return found if found is not None and found.topic is topic else None

    def keep(self, encoded: EncodedTopic) -> None:
        name = encoded.topic.name
        self._forget(name)
        self.topics[name] = encoded
        self.size_bytes += len(encoded.data) + ENTRY_BYTES

    def _forget(self, name: str) -> None:
        old = self.topics.pop(name, None)
        if old is not None:
            self.size_bytes -= len(old.data) + ENTRY_BYTES

    def row(self, partition: PartitionRegistration, index: int) -> bytes | None:
        """A row like those that were made for other partitions that look the same."""
        like = self.rows.get(row_key(partition))
        if like is None:
            return None
        return like[:INDEX_AT] + index.to_bytes(4, "big") + like[INDEX_END:]

    def keep_row(self, partition: PartitionRegistration, data: bytes) -> bytes:
        if len(self.rows) >= ROWS_MAX:
            self.rows.clear()
        self.rows[row_key(partition)] = data
        return data

    def follow(self, image: MetadataImage, listener: str) -> None:
        """Throws away what the image does not have any more."""
        if self.brokers is not image.brokers:
            self.brokers = image.brokers
            seen = brokers_as_seen(image, listener)
            if seen != self.brokers_as_seen:
                self.brokers_as_seen = seen
                self.clear()
        if len(self.topics) > len(image.topics_by_name):
            for name in [name for name in self.topics if name not in image.topics_by_name]:
                self._forget(name)

    def clear(self) -> None:
        self.topics.clear()
        self.rows.clear()
        self.size_bytes = 0


class TopicEncodings:
    """The views that were asked for last."""

    def __init__(self) -> None:
        self._views: dict[tuple[str, int, bool], TopicView] = {}

    def view(self, image: MetadataImage, listener: str, version: int, with_operations: bool) -> TopicView:
        key = (listener, version, with_operations)
        view = self._views.pop(key, None)
        if view is None:
            view = TopicView()
        # The last one that was used is the last one to go.
        self._views[key] = view
        view.follow(image, listener)
        return view

    def trim(self) -> None:
        """Gives memory back where there is too much; called when a response is made."""
        while len(self._views) > VIEWS_MAX or (self._views and self.size_bytes > BYTES_MAX):
            del self._views[next(iter(self._views))]

    @property
    def size_bytes(self) -> int:
        return sum(view.size_bytes for view in self._views.values())


def row_key(partition: PartitionRegistration) -> RowKey:
    """All of a partition that shows in a row, as long as the brokers stay as they are."""
    return (
        partition.leader,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        partition.directories,
        partition.elr,
        partition.last_known_elr,
    )


def brokers_as_seen(image: MetadataImage, listener: str) -> BrokersAsSeen:
    """All of the brokers that shows in the rows of topics."""
    return {
        broker_id: (broker.fenced, listener in broker.end_points, broker.log_dirs)
        for broker_id, broker in image.brokers.items()
    }
