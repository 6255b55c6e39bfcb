"""What a client stands on beside its settings: its network, its patience with the first contact, its heartbeat thread.

No user chooses these, so no constructor names them. Who does (tests with a network of their own, the command line)
hands over a configuration that wired() made: `Consumer("broker:9092", config=wired(network=network))`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from moldau.client.connection.transport import Network


class Wiring(NamedTuple):
    """None: as for every user."""

    # In place of sockets.
    network: Network | None = None
    # For how long the bootstrap servers are tried again while none can be reached; 0 tries each of them once.
    first_contact_ms: int | None = None
    # Whether a thread keeps the member of a group alive between two polls; None: unless the network is one's own.
    heartbeat_thread: bool | None = None

    @property
    def wants_heartbeat_thread(self) -> bool:
        """Tests that bring a clock of their own do without."""
        return self.network is None if self.heartbeat_thread is None else self.heartbeat_thread


class WiredConfig(dict[str, object]):
    """Settings by Kafka's names, with what the client stands on; a copy as a plain dict has only the settings."""

    wiring: Wiring


def wired(
    config: Mapping[str, object] | None = None,
    *,
    network: Network | None = None,
    first_contact_ms: int | None = None,
    heartbeat_thread: bool | None = None,
) -> WiredConfig:
    """The settings for the argument `config` of any client, with what it is to stand on."""
    made = WiredConfig(config or {})
    made.wiring = Wiring(network, first_contact_ms, heartbeat_thread)
    return made


def wiring_of(config: Mapping[str, object] | None) -> Wiring:
    """What wired() put into a configuration; in any other one, nothing."""
    return config.wiring if isinstance(config, WiredConfig) else Wiring()
