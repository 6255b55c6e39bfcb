"""What becomes of produced records: one batch's fate, shared by the futures of its records."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mypy_extensions import i64, mypyc_attr

from moldau.client.arguments import GivenMilliseconds, seconds_of
from moldau.client.errors import ClientError, RequestTimeoutError
from moldau.client.results import RecordMetadata

Callback = Callable[[RecordMetadata | None, ClientError | None], None]

_event_lock = threading.Lock()


class Fate:
    """The outcome of one batch; set once. A batch that had to be split has the fates of its parts instead."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic: str = topic
        self.partition: int = partition
        self.base_offset: i64 = -1
        self.append_time_ms: i64 = -1
        self.error: ClientError | None = None
        self.done: bool = False
        # (index of the first record, fate) of each part, once split
        self.parts: list[tuple[int, Fate]] = []
        self.callbacks: list[tuple[DeliveryFuture, Callback]] = []
        # Called once when the fate is settled or split, in the thread where that happens.
        self.listeners: list[Callable[[], object]] = []
        self._event: threading.Event | None = None

    def settle(self, base_offset: i64, append_time_ms: i64, error: ClientError | None) -> None:
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms
        self.error = error
        self._finish()

    def split(self, parts: list[tuple[int, Fate]]) -> None:
        """Passes the callbacks on to the parts; futures find their part when they look next."""
        for future, callback in self.callbacks:
            for first, part in reversed(parts):
                if future.index >= first:
                    part.callbacks.append((DeliveryFuture(part, future.index - first, future.timestamp), callback))
                    break
        self.callbacks = []
        self.parts = parts
        self._finish()

    def _finish(self) -> None:
        # The lock makes "not done, so I add an event or a listener" and "done, so I call them" exclude each other.
        with _event_lock:
            self.done = True
            listeners = self.listeners
            self.listeners = []
            event = self._event
        if event is not None:
            event.set()
        for listener in listeners:
            listener()

    def wait(self, timeout_s: float | None) -> bool:
        """An event is made only for those who wait, as most records are never waited for one by one."""
        if self.done:
            return True
        with _event_lock:
            if self.done:
                return True
            event = self._event
            if event is None:
                event = threading.Event()
                self._event = event
        return event.wait(timeout_s)

    def listen(self, listener: Callable[[], object]) -> bool:
        """Has the listener called when the fate is settled or split; False when that has happened already."""
        with _event_lock:
            if self.done:
                return False
            self.listeners.append(listener)
            return True


# Many at a time; the only cycle, over the callbacks of a fate, ends when those were told.
@mypyc_attr(acyclic=True)
class DeliveryFuture:
    """The future of one produced record, as send() returns it: result() waits until it is delivered."""

    def __init__(self, fate: Fate, index: i64, timestamp: i64) -> None:
        self.fate: Fate = fate
        self.index: i64 = index
        self.timestamp: i64 = timestamp

    def _resolve(self) -> bool:
        """Moves on to the part that has the record now; whether that is settled."""
        while self.fate.done and self.fate.parts:
            for first, part in reversed(self.fate.parts):
                if self.index >= first:
                    self.fate = part
                    self.index -= first
                    break
        return self.fate.done

    def done(self) -> bool:
        """Whether the record is delivered or has failed."""
        return self._resolve()

    def _add_callback(self, callback: Callback) -> None:
        """Only before the batch settles; the producer holds its lock meanwhile."""
        self.fate.callbacks.append((self, callback))

    def result(self, timeout_ms: GivenMilliseconds = None) -> RecordMetadata:
        """Waits until the record is delivered, and tells where it went.

        Raises the record's error, or RequestTimeoutError after timeout_ms; None waits as long as delivery.timeout.ms
        allows.
        """
        timeout_s = None if timeout_ms is None else seconds_of(timeout_ms)
        while not self._resolve():
            if not self.fate.wait(timeout_s):
                raise RequestTimeoutError("The record was not delivered within the timeout of result().")
        return self.metadata()

    def exception(self, timeout_ms: GivenMilliseconds = None) -> ClientError | None:
        """Waits as result() does: the record's error, None when it was delivered. Raises RequestTimeoutError."""
        timeout_s = None if timeout_ms is None else seconds_of(timeout_ms)
        while not self._resolve():
            if not self.fate.wait(timeout_s):
                raise RequestTimeoutError("The record was not delivered within the timeout of exception().")
        return self.fate.error

    def metadata(self) -> RecordMetadata:
        """Where the record went; only once done. Raises its error."""
        fate = self.fate
        if fate.error is not None:
            raise fate.error
        offset = -1 if fate.base_offset < 0 else int(fate.base_offset + self.index)
        timestamp = int(self.timestamp if fate.append_time_ms < 0 else fate.append_time_ms)
        return RecordMetadata(fate.topic, fate.partition, offset, timestamp)
