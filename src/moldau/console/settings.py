"""What the console was told at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.actions.addresses import is_loopback
from moldau.actions.clients import ADMIN

IDLE_SECONDS = 30 * 60
DEFAULT_PORT = 9080


@dataclass(frozen=True)
class ConsoleSettings:
    """bootstrap and clients say how brokers are reached; the rest who may use the console, and for what."""

    bootstrap: str
    # Settings by Kafka's names for each kind of client: admin, consumer, producer.
    clients: Mapping[str, Mapping[str, object]]
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    # None: as the address says, which allows changes on loopback alone.
    allow_changes: bool | None = None
    # None: as the broker says, which wants a login or does not.
    login: bool | None = None
    # Names besides localhost and addresses under which browsers may ask for the console.
    allowed_hosts: tuple[str, ...] = ()
    # Directories with the logs of pipelines' runs.
    runs: tuple[str, ...] = ()
    audit_file: str | None = None
    idle_s: float = IDLE_SECONDS
    # What a page shows of one record before somebody asks for all of it.
    preview_bytes: int = 4096
    tls_certificate: str | None = None
    tls_key: str | None = None

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def may_change(self) -> bool:
        """Whether this console changes anything at all; what a user may do is up to the broker besides."""
        return self.on_loopback if self.allow_changes is None else self.allow_changes

    @property
    def has_credentials(self) -> bool:
        """Whether the console logs in by itself."""
        given = self.clients.get(ADMIN, {})
        names = ("sasl.jaas.config", "sasl.username", "sasl.oauthbearer.token.endpoint.url", "ssl.keystore.location")
        return any(given.get(name) for name in names)
