"""What is counted of requests, by API: how many in which version, with which errors, and how long they took.

Requests and errors are counted one by one. Times are taken of every request while there are few; of an API that is
asked thousands of times a second one in sixteen is timed, which says as much about how they are spread and costs the
others one subtraction.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.recent_values import RecentValues
from moldau.protocol import errors

BUSY_S: Final = 0.001
"""Requests of one API that come sooner after each other are many."""
SKIPPED_WHEN_BUSY: Final = 15

FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"
VERIFICATION: Final = "AddPartitionsToTxnVerification"


class RequestStats:
    """Those of one API, on one kind of listener. Times are in microseconds, sizes in bytes."""

    def __init__(self, name: str, highest_version: int, of_controller: bool = False) -> None:
        self.name = name
        self.of_controller = of_controller
        """Whether it counts what came to a controller's listener."""
        self.by_version: list[int] = [0] * (highest_version + 1)
        self.successes = 0
        """Items answered without an error; other codes are in `errors`."""
        self.errors: dict[int, int] = {}
        self.parts: dict[str, RequestStats] = {}
        """Kinds of requests of this API that are counted a second time, by name."""
        self.skip = 0
        """So many of the next requests are not timed."""
        self._skipped = 0
        self._timed_s = 0.0
        self.request_bytes = RecentValues()
        self.queue = RecentValues()
        self.local = RecentValues()
        self.remote = RecentValues()
        self.response_queue = RecentValues()
        self.response_send = RecentValues()
        self.total = RecentValues()
        self.throttle = RecentValues()

    @property
    def requests_total(self) -> int:
        return sum(self.by_version)

    def count_error(self, code: int) -> None:
        if code == errors.NONE:
            self.successes += 1
        else:
            self.errors[code] = self.errors.get(code, 0) + 1

    def begin(self, now_s: float) -> None:
        """A request is timed: whether the next ones are depends on how soon after another they come."""
        is_busy = now_s - self._timed_s < BUSY_S * (self._skipped + 1)
        self.skip = self._skipped = SKIPPED_WHEN_BUSY if is_busy else 0
        self._timed_s = now_s


class RequestTimes:
    """Told how far one request is on its way. Who takes the times stands above the line; nothing below reads them."""

    def __init__(self) -> None:
        self.also: RequestStats | None = None
        """Fetches are counted a second time, for who sent them."""

    def handled(self, received_s: float) -> None:
        """The handler has returned; what it waits for now is elsewhere."""
        raise NotImplementedError

    def completed(self) -> None:
        raise NotImplementedError

    def queued(self) -> None:
        """The response is the next to leave on its connection."""
        raise NotImplementedError

    def sent(self, throttle_ms: int) -> None:
        raise NotImplementedError
