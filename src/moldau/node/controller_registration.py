"""Makes every controller known to the cluster: one that is not active asks the active one to register it (KIP-919)."""

from __future__ import annotations

import logging
from typing import Final

from moldau.node.controller_channel import ControllerChannel, has_no_response
from moldau.node.metadata_node import MetadataNode
from moldau.protocol.api_table import CONTROLLER_REGISTRATION
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS

log = logging.getLogger("moldau.node")

RETRY_MIN_MS: Final = 100
RETRY_MAX_MS: Final = 10_000


class ControllerRegistration:
    """The active controller registers itself when it begins (`MetadataNode`); this is for the others."""

    def __init__(self, metadata: MetadataNode, channel: ControllerChannel) -> None:
        self._metadata = metadata
        self._channel = channel
        self._busy = False
        self._next_ms = 0
        self._backoff_ms = RETRY_MIN_MS
        metadata.on_leader_changed.append(self._on_leader_changed)

    def _on_leader_changed(self, now_ms: int) -> None:
        self._next_ms, self._backoff_ms = now_ms, RETRY_MIN_MS

    def poll(self, now_ms: int) -> int:
        metadata = self._metadata
        if self._busy or metadata.is_active_controller or not metadata.is_registration_due(metadata.image):
            return NEVER_MS
        if metadata.leader_destination() is None:
            return NEVER_MS
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self._backoff_ms
            self._busy = True
            self._channel.ask(CONTROLLER_REGISTRATION, metadata.controller_registration(), self._on_response, now_ms)
        return self._next_ms

    def _on_response(self, response: Message | KafkaError, now_ms: int) -> None:
        self._busy = False
        if not isinstance(response, KafkaError):
            # Until the record has come here too.
            self._next_ms = now_ms + RETRY_MAX_MS
            self._backoff_ms = RETRY_MIN_MS
            return
        self._next_ms = now_ms + self._backoff_ms
        self._backoff_ms = min(2 * self._backoff_ms, RETRY_MAX_MS)
        if not has_no_response(response):
            log.warning("controller registration failed, trying again: %s", response.message)
