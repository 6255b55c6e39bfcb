"""The broker of a combined node as its own controller sees it: registration, heartbeats, controlled shutdown.

The controller is in the same process, so a verb takes the place of a request. A broker joins fenced; when its
registration is committed it has applied everything before it, and the first heartbeat unfences it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.metadata.features import SUPPORTED_FEATURES
from moldau.metadata.model import EndPoint
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from moldau.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from moldau.raft.core import NEVER_MS

if TYPE_CHECKING:
    from moldau.node.metadata_node import MetadataNode

logger = logging.getLogger("moldau.node")

RETRY_MS = 100


class LocalBroker:
    """`broker_epoch` is -1 until the registration is committed; `is_unfenced` says whether clients may come."""

    def __init__(self, node: MetadataNode) -> None:
        self._node = node
        self.broker_epoch = -1
        self.is_unfenced = False
        self.next_ms = NEVER_MS
        self.offline_log_dirs: list[bytes] = []
        self._request: BrokerRegistrationRequest | None = None
        self._on_unfenced: Callable[[], None] | None = None
        self._on_left: Callable[[], None] | None = None
        self._leaving = False
        self._busy = False

    def join(
        self,
        end_points: list[EndPoint],
        log_dirs: list[bytes],
        previous_broker_epoch: int,
        now_ms: int,
        on_unfenced: Callable[[], None],
    ) -> None:
        """Registers the broker and keeps its session alive; `on_unfenced` is called once."""
        self._request = BrokerRegistrationRequest(
            broker_id=self._node.node_id,
            cluster_id=self._node.cluster_id,
            incarnation_id=self._node.incarnation_id,
            listeners=[Listener(*end_point) for end_point in end_points],
            features=[Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
            rack=self._node.config.rack,
            log_dirs=log_dirs,
            previous_broker_epoch=previous_broker_epoch,
        )
        self._on_unfenced = on_unfenced
        self._register(now_ms)

    def leave(self, now_ms: int, on_left: Callable[[], None]) -> None:
        """Controlled shutdown: gives up all leaderships, then calls `on_left`."""
        self._on_left = on_left
        self._leaving = True
        if self.broker_epoch < 0 or not self._node.is_active_controller:
            self._left()
        else:
            self.heartbeat(now_ms)

    def on_controller_active(self, now_ms: int) -> None:
        """A new controller in this process: whoever is not registered yet tries again at once."""
        if self._request is not None and self.broker_epoch < 0:
            self._register(now_ms)

    def poll(self, now_ms: int) -> None:
        if now_ms >= self.next_ms and not self._busy:
            if self.broker_epoch < 0:
                self._register(now_ms)
            else:
                self.heartbeat(now_ms)

    def _register(self, now_ms: int) -> None:
        request = self._request
        if self._busy or request is None:
            return
        if not self._node.is_active_controller:
            self.next_ms = now_ms + RETRY_MS
            return
        self._busy = True
        self._node.submit(
            lambda controller: controller.register_broker(request, now_ms),
            lambda answer: self._on_registered(answer, now_ms),
            now_ms,
        )

    def _on_registered(self, answer: BrokerRegistrationResponse | KafkaError, now_ms: int) -> None:
        self._busy = False
        if isinstance(answer, KafkaError):
            logger.warning("the broker could not register, it tries again: %s", answer.message)
            self.next_ms = now_ms + RETRY_MS
            return
        self.broker_epoch = answer.broker_epoch
        self.heartbeat(now_ms)

    def heartbeat(self, now_ms: int) -> None:
        """Tells the controller that this broker is alive, how far it is, and what it wants."""
        if self._busy:
            return
        self.next_ms = now_ms + self._node.config.get_int("broker.heartbeat.interval.ms")
        request = BrokerHeartbeatRequest(
            self._node.node_id,
            self.broker_epoch,
            self._node.image.offset,
            want_shut_down=self._leaving,
            offline_log_dirs=list(self.offline_log_dirs),
            cordoned_log_dirs=[],
        )
        self._busy = True
        self._node.submit(
            lambda controller: controller.broker_heartbeat(request, now_ms),
            lambda answer: self._on_heartbeat(answer, now_ms),
            now_ms,
        )

    def _on_heartbeat(self, answer: BrokerHeartbeatResponse | KafkaError, now_ms: int) -> None:
        self._busy = False
        if isinstance(answer, KafkaError):
            if answer.code == errors.STALE_BROKER_EPOCH:
                self.broker_epoch = -1
            self.next_ms = now_ms + RETRY_MS
            return
        self.is_unfenced = not answer.is_fenced
        if answer.should_shut_down:
            self._left()
        elif self._leaving:
            self.heartbeat(now_ms)
        elif self.is_unfenced and self._on_unfenced is not None:
            callback, self._on_unfenced = self._on_unfenced, None
            callback()

    def _left(self) -> None:
        self.next_ms = NEVER_MS
        callback, self._on_left = self._on_left, None
        if callback is not None:
            callback()
