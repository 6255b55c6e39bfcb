"""One login's dialogue as a mechanism sees it, on the server's and on the client's side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from mypy_extensions import mypyc_attr

NO_EXPIRY_MS = 1 << 62

Confirm = Callable[[], bool | None]
"""Whether a login counts that was let in with what may not be so; None as long as that is not known."""


class LoginRefused(Exception):
    """A login that fails. `told` is what the client may know; None where it only hears that something did not fit."""

    def __init__(self, told: str | None, reason: str = "") -> None:
        super().__init__(told or reason)
        self.told = told
        self.reason = reason or told or ""


class Derivation:
    """A step that costs too much for the thread that serves everybody: `compute` runs elsewhere, `resume` here."""

    def __init__(self, compute: Callable[[], bytes], resume: Callable[[bytes], bytes]) -> None:
        self.compute = compute
        self.resume = resume


@mypyc_attr(allow_interpreted_subclasses=True)
class SaslServer(ABC):
    """The broker's side of one login with one mechanism."""

    def __init__(self, mechanism: str) -> None:
        self.mechanism = mechanism
        self.is_complete = False
        self.user = ""
        self.principal_type = "User"
        self.token_authenticated = False
        self.expires_wall_ms = NO_EXPIRY_MS
        """When what the client showed is over, by the calendar."""
        self.confirm: Confirm | None = None
        """Asked after the login, until it knows."""

    @property
    def principal(self) -> str:
        assert self.is_complete, "nobody is known before the login is complete"
        return f"{self.principal_type}:{self.user}"

    def complete(self, user: str) -> None:
        self.user = user
        self.is_complete = True

    @abstractmethod
    def evaluate(self, token: bytes, wall_ms: int) -> bytes | Derivation:
        """What to say to a client's token; raises LoginRefused."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SaslClient(ABC):
    """The client's side."""

    mechanism = ""

    @abstractmethod
    def first(self) -> bytes:
        """What is said first."""

    @abstractmethod
    def next(self, response: bytes) -> bytes | None:
        """What to say to a response, None when everything is said. Raises LoginRefused if the broker is not who it
        should be."""
