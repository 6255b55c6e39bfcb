"""What a verb of a coordinator decides: records to write, and the response that waits until they are committed."""

from __future__ import annotations

from collections.abc import Callable

from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message

StoredRecord = tuple[bytes, bytes | None]
"""Key and value as they go into the log; a value of None is a tombstone."""


class Outcome:
    """See the module.

    `response` is what the caller gets; None if the machine responds by itself, later (a member that waits for others).
    `replay` is False where the machine has changed its state already and only wants it written down.
    `on_written(error, now_ms)` is called once the records are committed (None) or cannot be (the error).
    A transactional outcome carries the producer whose transaction the records belong to.
    `atomic` is False where the records do not depend on each other: they may be written as several batches.
    """

    def __init__(
        self,
        records: list[StoredRecord] | None = None,
        response: Message | None = None,
        replay: bool = True,
        on_written: Callable[[KafkaError | None, int], None] | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        atomic: bool = True,
    ) -> None:
        self.records: list[StoredRecord] = [] if records is None else records
        self.response = response
        self.replay = replay
        self.on_written = on_written
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.atomic = atomic
