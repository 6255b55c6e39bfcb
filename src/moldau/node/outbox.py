"""How a node talks to other nodes: requests out, responses or failures back, in the node's own turn.

The server process gives a node an outbox on sockets (`net/outbound.py`), the simulator one on its own network
(`sim/cluster/outbox.py`). A channel is one connection: responses come in the order of the requests, so a long poll has
one to itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from moldau.protocol.primitives import Message

REFUSED: Final = 1
"""Nobody listens there: the process is gone, or has not come yet."""
CLOSED: Final = 2
"""The other side closed or reset the connection while the response was awaited."""
TIMED_OUT: Final = 3
"""No response in time; the connection is closed, because what comes late would be taken for the next response."""
UNREACHABLE: Final = 4
"""The name does not resolve, or there is no way there."""

FAILURES: Final = {REFUSED: "refused", CLOSED: "closed", TIMED_OUT: "timed out", UNREACHABLE: "unreachable"}


class NoResponse:
    """What comes instead of a response. Whether the other side did what was asked is not known, except when REFUSED."""

    __slots__ = ("reason",)

    def __init__(self, reason: int) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"NoResponse({FAILURES[self.reason]})"


OnResponse = Callable[[Message | NoResponse, int], None]
"""Called with what came and `now_ms`; once, and never inside `send`."""


class Channel(ABC):
    """One connection to one address, made when it is first needed and made anew after it broke."""

    @abstractmethod
    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, on_response: OnResponse) -> None:
        """Sends a request; those before it need not have their responses yet."""

    @abstractmethod
    def close(self) -> None:
        """Nobody is interested any more: what has no response yet never will be, and no callback comes."""


class Outbox(ABC):
    @abstractmethod
    def open(self, purpose: str, host: str, port: int) -> Channel:
        """A channel of its own for one purpose ("raft", "replication", …). Nothing is sent before the first request."""


class NoOutbox(Outbox):
    """For a node that is alone."""

    def open(self, purpose: str, host: str, port: int) -> Channel:
        raise AssertionError(f"a node without an outbox was asked to talk to {host}:{port} ({purpose})")
