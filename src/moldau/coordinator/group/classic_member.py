"""One member of a classic group: what it told when it joined, what it was assigned, and the responses it waits for."""

from __future__ import annotations

from collections.abc import Callable, Container

from moldau.protocol.messages.join_group_response import JoinGroupResponse
from moldau.protocol.messages.sync_group_response import SyncGroupResponse

JoinCallback = Callable[[JoinGroupResponse], None]
SyncCallback = Callable[[SyncGroupResponse], None]

Protocols = list[tuple[str, bytes]]
"""Names of assignment strategies with the member's metadata for each, the preferred one first."""


class ClassicMember:
    """Plain data. `session_due_ms` is when the member is gone unless it is heard of; its timer looks there.

    `is_new` holds until the member's first generation begins: it has no heartbeats yet, only a JoinGroup that waits.
    """

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        *,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.session_due_ms = 0
        self.awaiting_join: JoinCallback | None = None
        self.awaiting_sync: SyncCallback | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def metadata(self, protocol_name: str) -> bytes:
        for name, data in self.protocols:
            if name == protocol_name:
                return data
        raise KeyError(f"member {self.member_id} does not support {protocol_name}")

    def vote(self, candidates: Container[str]) -> str:
        """The first of its protocols that everybody supports."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise KeyError(f"member {self.member_id} supports none of the candidates")

    @property
    def keeps_session(self) -> bool:
        """Whoever waits for the others of its group cannot send heartbeats; a new member must not wait forever."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)
