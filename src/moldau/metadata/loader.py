"""Turns committed batches into images: one delta per batch, or per metadata transaction (KIP-868).

Records of an open transaction are collected and become visible together at its end; an abort drops them.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.snapshot import delta_between
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

Publish = Callable[[MetadataDelta, MetadataImage], None]


class MetadataLoader:
    """Holds the current image; `publish` is told about every new one."""

    def __init__(self, publish: Publish) -> None:
        self.image = MetadataImage()
        self._publish = publish
        self._open: MetadataDelta | None = None
        """The delta of the transaction that is open."""

    @property
    def in_transaction(self) -> bool:
        return self._open is not None

    def load_batch(self, records: list[Message], last_offset: int, epoch: int, timestamp_ms: int) -> None:
        """Replays one batch. A control batch has no metadata records but moves the image's offset."""
        delta = self._open if self._open is not None else MetadataDelta(self.image)
        for record in records:
            if isinstance(record, BeginTransactionRecord):
                delta = self._publish_so_far(delta, last_offset, epoch, timestamp_ms)
                self._open = delta
            elif isinstance(record, EndTransactionRecord):
                self._open = None
            elif isinstance(record, AbortTransactionRecord):
                self._open = None
                delta = MetadataDelta(self.image)
            else:
                delta.replay(record)
        if self._open is None:
            self._make_image(delta, last_offset, epoch, timestamp_ms)

    def _publish_so_far(self, delta: MetadataDelta, offset: int, epoch: int, timestamp_ms: int) -> MetadataDelta:
        """Records of the same batch in front of a transaction are visible without it."""
        self._make_image(delta, offset, epoch, timestamp_ms)
        return MetadataDelta(self.image)

    def take_over(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Publishes an image that the active controller made already when it wrote the records."""
        self._open = None
        self.image = image
        self._publish(delta, image)

    def load_snapshot(self, records: list[Message], last_offset: int, epoch: int, timestamp_ms: int) -> None:
        """Replaces everything: what the snapshot does not name is gone."""
        scratch = MetadataDelta(MetadataImage())
        for record in records:
            scratch.replay(record)
        self._open = None
        image = scratch.apply(last_offset, epoch, timestamp_ms)
        delta = delta_between(self.image, image)
        self.image = image
        self._publish(delta, image)

    def _make_image(self, delta: MetadataDelta, offset: int, epoch: int, timestamp_ms: int) -> None:
        self.image = delta.apply(offset, epoch, timestamp_ms)
        self._publish(delta, self.image)
