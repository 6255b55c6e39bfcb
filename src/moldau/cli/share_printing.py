"""Printing records of a share group and saying what became of them, in one step that somebody may interrupt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from moldau.client.share.acknowledgements import AcknowledgeType

if TYPE_CHECKING:
    from moldau.client.record import ConsumerRecord
    from moldau.client.share_consumer import ShareConsumer


def print_and_acknowledge(
    consumer: ShareConsumer, records: Sequence[ConsumerRecord], kind: AcknowledgeType, write: Callable[[], None]
) -> None:
    """Has them written, and the group told of it with the next request; what was not written goes back to the group."""
    try:
        write()
    except BaseException:
        for record in records:
            consumer.acknowledge(record, AcknowledgeType.RELEASE)
        raise
    for record in records:
        consumer.acknowledge(record, kind)
