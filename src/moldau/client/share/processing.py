"""The time in which one record of a share group is worked on: what becomes of it follows from how the block ends."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

from moldau.client.record import ConsumerRecord
from moldau.client.share.acknowledgements import AcknowledgeType

if TYPE_CHECKING:
    from moldau.client.share_consumer import ShareConsumer

logger = logging.getLogger("moldau.client")

Kinds = type[BaseException] | tuple[type[BaseException], ...]


class Processing(AbstractContextManager[ConsumerRecord]):
    """The time in which one record is worked on."""

    def __init__(
        self, consumer: ShareConsumer, record: ConsumerRecord, reject: Kinds, release: Kinds, renew: bool
    ) -> None:
        self._consumer = consumer
        self._record = record
        self._reject = reject
        self._release = release
        self._renew = renew

    def __enter__(self) -> ConsumerRecord:
        self._consumer._begin_processing(self._renew)
        return self._record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        decided, handled = decide(self._record, error, self._reject, self._release)
        self._consumer._end_processing(self._record, decided, self._renew)
        return handled


def decide(
    record: ConsumerRecord, error: BaseException | None, reject: Kinds, release: Kinds
) -> tuple[AcknowledgeType, bool]:
    """What becomes of a record after an error, and whether that was all there is to do about it."""
    if error is None:
        return AcknowledgeType.ACCEPT, False
    rejected = isinstance(error, reject)
    handled = rejected or isinstance(error, release)
    if handled:
        where = f"{record.topic}-{record.partition} at offset {record.offset}"
        what = "rejected" if rejected else "released"
        logger.warning("The record of %s is %s: %s: %s", where, what, type(error).__name__, error)
    return (AcknowledgeType.REJECT if rejected else AcknowledgeType.RELEASE), handled
