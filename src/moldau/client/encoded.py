"""A producer's door for batches of records that are encoded already: Arrow tables, and lines of the command line.

Who makes records many at a time hands them over as the bytes of a batch, and no object is made for any of them. Users
have send(), send_many() and send_arrow().
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.client.produce.delivery import DeliveryFuture
    from moldau.client.producer import Producer
    from moldau.records.record_buffer import Body


class EncodedBatches:
    """Sends encoded batches through a producer, under its limits."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    @property
    def batch_bytes(self) -> int:
        """batch.size."""
        return self._producer._batch_bytes

    @property
    def request_bytes_max(self) -> int:
        """max.request.size, which no record may exceed."""
        return self._producer._request_bytes_max

    @property
    def encoded_bytes_max(self) -> int:
        """How large a batch should be at most: more than batch.size where memory allows, less once one was split."""
        return self._producer._encoded_bytes_max

    def partitions_for(self, topic: str) -> list[int]:
        """As Producer.partitions_for()."""
        return self._producer.partitions_for(topic)

    def send(
        self, topic: str, partition: int | None, data: Body, count: int, base_timestamp: int, max_timestamp: int
    ) -> DeliveryFuture:
        """Queues a batch; blocks as Producer.send() does. The future is that of the first record."""
        return self._producer._send_encoded(topic, partition, data, count, base_timestamp, max_timestamp)
