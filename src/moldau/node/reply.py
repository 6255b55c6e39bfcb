"""One response in the making: whoever finishes it completes it, the connection sends it when its turn comes."""

from __future__ import annotations

from collections.abc import Callable

from moldau.metrics.request_stats import RequestTimes
from moldau.protocol.records_data import FileRecords


class Reply:
    """`parts` is what goes on the wire, size field included; None when the request wants no response (acks=0)."""

    def __init__(self) -> None:
        self.parts: list[bytes | FileRecords] | None = None
        self.done = False
        self.close_connection = False
        self.mute_ms = 0  # nothing is read from the connection for so long, from the moment this is complete
        self.on_done: Callable[[Reply], None] | None = None
        self.on_abandon: Callable[[], None] | None = None
        self.times: RequestTimes | None = None  # of those requests that are timed

    def complete(self, parts: list[bytes | FileRecords] | None) -> None:
        assert not self.done, "a reply is completed once"
        self.parts = parts
        self.done = True
        self.on_abandon = None
        times = self.times
        if times is not None:
            times.completed()
        callback = self.on_done
        if callback is not None:
            self.on_done = None
            callback(self)

    def abandon(self) -> None:
        """The client is gone: whoever still works on the response may stop."""
        self.on_done = None
        callback = self.on_abandon
        if callback is not None and not self.done:
            self.on_abandon = None
            callback()
