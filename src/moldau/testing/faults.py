"""The faults that a test has asked for: which requests they concern, what happens to those, and how often it has."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from moldau.testing.errors import WaitTimedOut
from moldau.testing.waiting import DEFAULT_TIMEOUT_MS

if TYPE_CHECKING:
    from moldau.protocol.primitives import Message

FAIL = "fail"
LOSE = "lose"
DELAY = "delay"
CUT = "cut"
HANG = "hang"


class Fault:
    """One fault, in force until it has happened often enough, or until `end()` or the end of its `with`."""

    def __init__(
        self,
        kind: str,
        what: str,
        *,
        apis: frozenset[int] | None = None,
        client_id: str | None = None,
        times: int | None = None,
        error: int = 0,
        delay_ms: int = 0,
        only: Callable[[Message, int], bool] | None = None,
        on_end: Callable[[Fault], None] | None = None,
    ) -> None:
        self.kind = kind
        self.what = what
        self.error = error
        self.delay_ms = delay_ms
        self.only = only
        """Of the requests that are refused: which, by their content and version."""
        self.hits = 0
        """How many requests it has befallen so far; for a cut, how many connections."""
        self._apis = apis
        self._client_id = client_id
        self._times = times
        self._happened = threading.Condition()
        self.on_end = on_end

    def matches_client(self, client_id: str) -> bool:
        """For the proxy: whether it concerns this client."""
        return self._client_id is None or fnmatch.fnmatchcase(client_id, self._client_id)

    def matches(self, api_key: int, client_id: str) -> bool:
        """For the proxy: whether it befalls this request."""
        return not self.is_over and (self._apis is None or api_key in self._apis) and self.matches_client(client_id)

    @property
    def is_for_all(self) -> bool:
        """Whether it does not matter whose connection it is."""
        return self._client_id is None

    @property
    def is_over(self) -> bool:
        """Whether it has happened as often as it was to."""
        return self._times is not None and self.hits >= self._times

    def happen(self) -> None:
        """For the proxy: it has befallen one more."""
        with self._happened:
            self.hits += 1
            self._happened.notify_all()

    def wait(self, hits: int | None = None, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        """Waits until it has happened so often: as often as it was to, or once, unless `hits` says otherwise."""
        wanted = hits if hits is not None else self._times or 1
        with self._happened:
            if not self._happened.wait_for(lambda: self.hits >= wanted, timeout_ms / 1000):
                raise WaitTimedOut(f"{self.what}: befell {self.hits} of {wanted} requests within {timeout_ms} ms")

    def end(self) -> None:
        """Everything is as before from now on."""
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end(self)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<Fault {self.what}, {self.hits} so far>"
