"""What becomes of produced records: one batch's fate, shared by the futures of its records."""

from __future__ import annotations

import threading
from collections.abc import Callable

from moldau.client.errors import ClientError, RequestTimeoutError
from moldau.client.results import RecordMetadata

Callback = Callable[[RecordMetadata | None, ClientError | None], None]

_event_lock = threading.Lock()


class Fate:
    """The outcome of one batch; set once."""

    __slots__ = ("_event", "append_time_ms", "base_offset", "callbacks", "done", "error", "partition", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.base_offset = -1
        self.append_time_ms = -1
        self.error: ClientError | None = None
        self.done = False
        self._event: threading.Event | None = None
        self.callbacks: list[tuple[DeliveryFuture, Callback]] = []

    def settle(self, base_offset: int, append_time_ms: int, error: ClientError | None) -> None:
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self.error = error
        self.done = True
        event = self._event
        if event is not None:
            event.set()

    def wait(self, timeout_s: float | None) -> bool:
        """An event is made only for those who wait, as most records are never waited for one by one."""
        if self.done:
            return True
        with _event_lock:
            event = self._event
            if event is None:
                event = self._event = threading.Event()
        # The batch may have settled between the look above and the event, so look again before waiting on it.
        return self.done or event.wait(timeout_s)


class DeliveryFuture:
    """The future of one produced record."""

    __slots__ = ("_fate", "_index", "_timestamp")

    def __init__(self, fate: Fate, index: int, timestamp: int) -> None:
        self._fate = fate
        self._index = index
        self._timestamp = timestamp

    def done(self) -> bool:
        return self._fate.done

    def add_callback(self, callback: Callback) -> None:
        """Only before the batch settles; the producer holds its lock meanwhile."""
        self._fate.callbacks.append((self, callback))

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record went; raises its error, or RequestTimeoutError after timeout seconds."""
        fate = self._fate
        if not fate.wait(timeout):
            raise RequestTimeoutError("The record was not delivered within the timeout of result().")
        if fate.error is not None:
            raise fate.error
        offset = -1 if fate.base_offset < 0 else fate.base_offset + self._index
        timestamp = self._timestamp if fate.append_time_ms < 0 else fate.append_time_ms
        return RecordMetadata(fate.topic, fate.partition, offset, timestamp)

    def exception(self, timeout: float | None = None) -> ClientError | None:
        """The record's error, None when it was delivered."""
        if not self._fate.wait(timeout):
            raise RequestTimeoutError("The record was not delivered within the timeout of exception().")
        return self._fate.error
