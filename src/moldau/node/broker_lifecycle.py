"""A broker's life as the active controller sees it: registration, heartbeats, fencing, controlled shutdown.

starting → registering → catching up with the own registration (fenced, and wanting to be) → ready: the next heartbeat
unfences → leaving → gone. Whether the controller is this node or another makes no difference here; see
`ControllerChannel`. Kafka: BrokerLifecycleManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES, partition_version
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import EndPoint
from moldau.node.controller_channel import ControllerChannel, has_no_response
from moldau.node.metadata_node import MetadataNode
from moldau.protocol import errors
from moldau.protocol.api_table import BROKER_HEARTBEAT, BROKER_REGISTRATION
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from moldau.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from moldau.records.clocks import NEVER_MS

logger = logging.getLogger("moldau.node")

RETRY_MIN_MS: Final = 50
RETRY_MAX_MS: Final = 1000
LEAVING_INTERVAL_MS: Final = 20
"""How often a broker that gives up its leaderships asks whether it may go."""
LEAVING_MAX_MS: Final = 30_000
"""After that it goes without having been let go: it is as if it had died, and nothing is lost by that."""
UNHEARD_LEAVING_MAX_MS: Final = 2000
"""The same when no controller responds at all, as when a whole cluster is stopped."""


class BrokerLifecycle:
    """`broker_epoch` is -1 while the broker is not registered; `is_unfenced` says whether clients may come."""

    def __init__(self, metadata: MetadataNode, channel: ControllerChannel) -> None:
        self._metadata = metadata
        self._channel = channel
        self.broker_epoch = -1
        self.is_unfenced = False
        self.next_ms = NEVER_MS
        self.offline_log_dirs: list[bytes] = []
        self.cordoned_log_dirs: list[bytes] = []
        """Those that get no new replicas (KIP-1066)."""
        self.was_registered = False
        self.on_deadline: Callable[[int], None] | None = None
        self.on_registered: Callable[[int], None] | None = None
        """Told every broker epoch that this broker gets."""
        self.on_gave_up: Callable[[str], None] | None = None
        """Told why this broker could not join its cluster in `initial.broker.registration.timeout.ms`."""
        self._request: BrokerRegistrationRequest | None = None
        self._on_caught_up: Callable[[], None] | None = None
        self._on_unfenced: Callable[[], None] | None = None
        self._on_left: Callable[[], None] | None = None
        self._is_ready = False
        self._leaving = False
        self._leave_by_ms = NEVER_MS
        self._unheard_since_ms = NEVER_MS
        self._join_by_ms = NEVER_MS
        self._busy = False
        self._heartbeat_wanted = False
        self._registration_wanted = False
        self._backoff_ms = RETRY_MIN_MS
        metadata.on_leader_changed.append(self._on_leader_changed)

    # What the node wants

    @property
    def is_leaving(self) -> bool:
        """It has begun to hand over what it leads."""
        return self._leaving

    def join(
        self,
        end_points: list[EndPoint],
        log_dirs: list[bytes],
        previous_broker_epoch: int,
        now_ms: int,
        on_caught_up: Callable[[], None],
        on_unfenced: Callable[[], None],
    ) -> None:
        """Registers the broker and keeps its session alive. `on_caught_up` is called once, when the metadata here has
        the registration and therefore everything before it; `on_unfenced` once, when clients may come."""
        metadata = self._metadata
        self._request = BrokerRegistrationRequest(
            broker_id=metadata.node_id,
            cluster_id=metadata.cluster_id,
            incarnation_id=metadata.incarnation_id,
            listeners=[Listener(*end_point) for end_point in end_points],
            features=[Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
            rack=metadata.config.rack,
            log_dirs=log_dirs,
            previous_broker_epoch=previous_broker_epoch,
        )
        self._on_caught_up = on_caught_up
        self._on_unfenced = on_unfenced
        self._join_by_ms = now_ms + metadata.config.get_int("initial.broker.registration.timeout.ms")
        self._register(now_ms)

    def leave(self, now_ms: int, on_left: Callable[[], None]) -> None:
        """Controlled shutdown: gives up all leaderships, then calls `on_left`; also when nobody lets it go in time."""
        self._on_left = on_left
        self._leaving = True
        self._leave_by_ms = now_ms + LEAVING_MAX_MS
        self._unheard_since_ms = now_ms
        if self.broker_epoch < 0:
            self._left()
        else:
            self._heartbeat(now_ms)

    def report_offline_directory(self, directory_id: bytes, now_ms: int) -> None:
        """The controller takes what is there out of its ISRs: it is told in the next turn."""
        self.offline_log_dirs.append(directory_id)
        if self.broker_epoch >= 0:
            self._heartbeat_wanted = True
            self._set_next(now_ms)

    # What happens

    def poll(self, now_ms: int) -> int:
        if self._leaving and self._has_waited_enough(now_ms):
            logger.warning("controlled shutdown did not complete in time; stopping without it")
            self._left()
        elif now_ms >= self.next_ms and not self._busy:
            if self.broker_epoch < 0 or self._registration_wanted:
                self._register(now_ms)
            else:
                self._heartbeat(now_ms)
        return self.next_ms

    def _has_waited_enough(self, now_ms: int) -> bool:
        if self._on_left is None:
            return False
        return now_ms >= self._leave_by_ms or now_ms - self._unheard_since_ms >= UNHEARD_LEAVING_MAX_MS

    def _on_leader_changed(self, now_ms: int) -> None:
        """A new controller has heard of nobody: it is told at once that this broker is there."""
        metadata = self._metadata
        if self._request is None or not (metadata.is_active_controller or metadata.leader_destination()):
            return
        self._backoff_ms = RETRY_MIN_MS
        if self.broker_epoch < 0:
            self._register(now_ms)
        else:
            self._heartbeat(now_ms)

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        """Called after the node has applied a change."""
        self._check_caught_up(image, now_ms)
        if not self._is_ready:
            return
        if METADATA_VERSION in delta.changed_features and self._lacks_directories(image):
            # Registered when the cluster's version had no room for them.
            self._registration_wanted = True
            self._set_next(now_ms)
        if delta.changed_brokers:
            self._on_brokers_changed(delta, now_ms)

    def _lacks_directories(self, image: MetadataImage) -> bool:
        own = image.brokers.get(self._metadata.node_id)
        return own is not None and not own.log_dirs and partition_version(image.metadata_version) > 0

    def _on_brokers_changed(self, delta: MetadataDelta, now_ms: int) -> None:
        own = delta.changed_brokers.get(self._metadata.node_id)
        is_fenced = own is not None and own.broker_epoch == self.broker_epoch and own.fenced
        if is_fenced and self.is_unfenced and not self._leaving:
            logger.warning("this broker was fenced while it is running; asking to be unfenced")
            self.is_unfenced = False
            self._heartbeat(now_ms)
        elif any(broker is not None and broker.in_controlled_shutdown for broker in delta.changed_brokers.values()):
            # It may go when everybody knows that it leads nothing any more.
            self._heartbeat(now_ms)

    # Registration

    def _register(self, now_ms: int) -> None:
        request = self._request
        if self._busy or request is None or self._leaving:
            return
        self._busy = True
        self._registration_wanted = False
        self._channel.ask(BROKER_REGISTRATION, request, self._on_registered, now_ms, self._response_timeout_ms())

    def _on_registered(self, response: BrokerRegistrationResponse | KafkaError, now_ms: int) -> None:
        self._busy = False
        if isinstance(response, KafkaError):
            self._on_not_registered(response, now_ms)
            return
        self.broker_epoch = response.broker_epoch
        self.was_registered = True
        if self.on_registered is not None:
            self.on_registered(response.broker_epoch)
        self._is_ready = False
        self._backoff_ms = RETRY_MIN_MS
        self._set_next(now_ms + self._interval_ms())
        self._check_caught_up(self._metadata.image, now_ms)

    def _on_not_registered(self, error: KafkaError, now_ms: int) -> None:
        if not has_no_response(error):
            # Among them DUPLICATE_BROKER_REGISTRATION, which ends with the session of the process before.
            logger.warning("broker registration failed, trying again: %s", error.message)
        if now_ms >= self._join_by_ms and not self.was_registered and self.on_gave_up is not None:
            self._set_next(NEVER_MS)
            self.on_gave_up(f"broker registration timed out (initial.broker.registration.timeout.ms): {error.message}")
            return
        if self.broker_epoch >= 0:
            # Only the directories are missing in its registration: its session goes on.
            self._registration_wanted = True
            self._heartbeat(now_ms)
        else:
            self._retry_later(now_ms)

    def _check_caught_up(self, image: MetadataImage, now_ms: int) -> None:
        if self._is_ready or self.broker_epoch < 0 or image.offset < self.broker_epoch:
            return
        self._is_ready = True
        callback, self._on_caught_up = self._on_caught_up, None
        if callback is not None:
            callback()
        self._heartbeat(now_ms)

    # Heartbeats

    def _heartbeat(self, now_ms: int) -> None:
        """Tells the controller that this broker is alive, how far it is, and what it wants."""
        if self._busy:
            self._heartbeat_wanted = True
            return
        self._heartbeat_wanted = False
        self._set_next(now_ms + self._interval_ms())
        request = BrokerHeartbeatRequest(
            self._metadata.node_id,
            self.broker_epoch,
            self._metadata.image.offset,
            want_fence=not self._is_ready,
            want_shut_down=self._leaving,
            offline_log_dirs=list(self.offline_log_dirs),
            cordoned_log_dirs=list(self.cordoned_log_dirs),
        )
        self._busy = True
        self._channel.ask(BROKER_HEARTBEAT, request, self._on_heartbeat, now_ms, self._response_timeout_ms())

    def _on_heartbeat(self, response: BrokerHeartbeatResponse | KafkaError, now_ms: int) -> None:
        self._busy = False
        if isinstance(response, KafkaError):
            self._on_heartbeat_failed(response, now_ms)
            return
        self._backoff_ms = RETRY_MIN_MS
        self._unheard_since_ms = now_ms
        self.is_unfenced = not response.is_fenced
        if self._leaving:
            if response.should_shut_down:
                self._left()
            else:
                self._set_next(now_ms + LEAVING_INTERVAL_MS)
            return
        if self._heartbeat_wanted:
            self._set_next(now_ms)
        elif self._is_ready and response.is_fenced:
            self._retry_later(now_ms)
        if self.is_unfenced and self._on_unfenced is not None:
            callback, self._on_unfenced = self._on_unfenced, None
            callback()

    def _on_heartbeat_failed(self, error: KafkaError, now_ms: int) -> None:
        if error.code in (errors.STALE_BROKER_EPOCH, errors.BROKER_ID_NOT_REGISTERED):
            logger.warning("heartbeat rejected: the broker epoch is stale, registering again: %s", error.message)
            self.broker_epoch = -1
            self.is_unfenced = self._is_ready = False
            if self._leaving:
                self._left()
                return
        elif not has_no_response(error):
            logger.warning("the controller rejected a heartbeat: %s", error.message)
        self._retry_later(now_ms)

    # Times

    def _interval_ms(self) -> int:
        return self._metadata.config.get_int("broker.heartbeat.interval.ms")

    def _response_timeout_ms(self) -> int:
        return self._metadata.config.get_int("broker.session.timeout.ms") // 2

    def _retry_later(self, now_ms: int) -> None:
        """Never later than a heartbeat would come: the controller may hear this one although it did not respond, and
        the session must not end because of a pause between two of them."""
        self._set_next(now_ms + min(self._backoff_ms, self._interval_ms()))
        self._backoff_ms = min(2 * self._backoff_ms, RETRY_MAX_MS)

    def _set_next(self, next_ms: int) -> None:
        self.next_ms = next_ms
        if self.on_deadline is not None and next_ms < NEVER_MS:
            self.on_deadline(next_ms)

    def _left(self) -> None:
        self._set_next(NEVER_MS)
        callback, self._on_left = self._on_left, None
        if callback is not None:
            callback()
