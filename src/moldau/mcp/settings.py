"""What `moldau mcp` was told at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.actions.addresses import is_loopback
from moldau.actions.scope import Scope
from moldau.mcp.bounds import DEFAULT_LIMITS, Limits

DEFAULT_PORT = 9081
TOKEN_CHARS_MIN = 16
# A call that takes longer fails, with what to do about it.
CALL_S_MAX = 30.0


class NotSafe(Exception):
    """The settings would let strangers in; the text says what to do."""


@dataclass(frozen=True)
class McpSettings:
    """clients says how brokers are reached; the rest what agents may see and do, and how much at once."""

    # Settings by Kafka's names for each kind of client: admin, consumer, producer.
    clients: Mapping[str, Mapping[str, object]]
    allow_writes: bool = False
    # Patterns of names; none: every topic but the cluster's own, and every group.
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    limits: Limits = DEFAULT_LIMITS
    call_s: float = CALL_S_MAX
    audit_file: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.topics or ("*",), self.groups or None)


@dataclass(frozen=True)
class HttpSettings:
    """Where agents find it over HTTP, and what they have to know."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = None
    # Names besides those of loopback and the address itself under which it may be asked for.
    allowed_hosts: tuple[str, ...] = ()
    tls_certificate: str | None = None
    tls_key: str | None = None

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    def check(self) -> None:
        """Raises NotSafe where strangers could use it."""
        if not self.on_loopback and self.token is None:
            raise NotSafe(
                f"Others can reach {self.host}: name a file with a token that agents have to send, with --token-file."
            )
        if self.token is not None and len(self.token) < TOKEN_CHARS_MIN:
            raise NotSafe(f"The token has {len(self.token)} characters; it must have {TOKEN_CHARS_MIN} at least.")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise NotSafe("The token has characters that no header can carry: use letters, digits, '-' and '_'.")
