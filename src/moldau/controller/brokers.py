"""Brokers: registration (its offset is the broker's epoch), heartbeats, fencing, controlled shutdown."""

from __future__ import annotations

import logging

from moldau.controller.leadership import Leadership
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import BrokerContact, ControllerState
from moldau.metadata.features import (
    METADATA_VERSION,
    register_broker_version,
    supports_controller_registration,
    supports_cordoned_dirs,
)
from moldau.metadata.model import BrokerRegistration
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from moldau.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from moldau.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from moldau.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from moldau.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from moldau.protocol.stored import metadata_records as r

logger = logging.getLogger("moldau.controller")


class Brokers:
    def __init__(self, state: ControllerState, leadership: Leadership) -> None:
        self.state = state
        self.leadership = leadership
        self._unheard_since_ms: dict[int, int] = {}

    # Registration

    def register(self, request: BrokerRegistrationRequest, now_ms: int) -> Result:
        self._check_registration(request)
        existing = self.state.image.brokers.get(request.broker_id)
        if existing is not None and existing.incarnation_id != request.incarnation_id:
            self._check_predecessor(existing, now_ms)
        records: list[VersionedRecord] = []
        is_new = existing is None or existing.incarnation_id != request.incarnation_id
        if existing is not None and is_new:
            unclean = existing.broker_epoch != request.previous_broker_epoch and self.state.image.elr_enabled
            self.leadership.remove_broker(request.broker_id, records, unclean)
        epoch = self.state.next_offset if existing is None or is_new else existing.broker_epoch
        fenced = True if existing is None or is_new else existing.fenced
        records.append(self._registration_record(request, epoch, fenced))
        self.state.contacts.pop(request.broker_id, None)
        logger.info("broker %d registers with epoch %d, fenced until it has caught up", request.broker_id, epoch)
        return Result(records, BrokerRegistrationResponse(broker_epoch=epoch))

    def _check_registration(self, request: BrokerRegistrationRequest) -> None:
        state = self.state
        if request.cluster_id != state.cluster_id:
            message = f"Expected cluster ID {state.cluster_id}, but got cluster ID {request.cluster_id}"
            raise KafkaError(errors.INCONSISTENT_CLUSTER_ID, message)
        if len(set(request.log_dirs)) != len(request.log_dirs):
            raise KafkaError(errors.INVALID_REGISTRATION, "Duplicate directory specified.")
        for broker_id, other in state.image.brokers.items():
            shared = set(other.log_dirs) & set(request.log_dirs)
            if broker_id != request.broker_id and shared:
                message = f"Broker {broker_id} is already registered with directory {next(iter(shared)).hex()}"
                raise KafkaError(errors.INVALID_REGISTRATION, message)
        ranges = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
        for name, level in state.image.features.items():
            low, high = ranges.get(name, (0, 0))
            if not low <= level <= high and (name in ranges or name == METADATA_VERSION):
                message = (
                    f"Unable to register because the broker does not support finalized version {level} of {name}. "
                    f"The broker wants a version between {low} and {high}, inclusive."
                )
                raise KafkaError(errors.UNSUPPORTED_VERSION, message)

    def _check_predecessor(self, existing: BrokerRegistration, now_ms: int) -> None:
        """A second process with the id of one that is alive is refused; one that is leaving or silent gives way."""
        contact = self.state.contacts.get(existing.broker_id)
        if contact is None or contact.broker_epoch != existing.broker_epoch or existing.in_controlled_shutdown:
            return
        if not existing.fenced and now_ms - contact.last_heartbeat_ms < self._session_timeout_ms():
            raise KafkaError(
                errors.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently restarted this should "
                "self-resolve once the heartbeat manager expires the broker's session.",
            )

    def _registration_record(self, request: BrokerRegistrationRequest, epoch: int, fenced: bool) -> VersionedRecord:
        version = register_broker_version(self.state.image.metadata_version)
        record = r.RegisterBrokerRecord(
            broker_id=request.broker_id,
            incarnation_id=request.incarnation_id,
            broker_epoch=epoch,
            end_points=[r.BrokerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners],
            features=[
                r.BrokerFeature(f.name, f.min_supported_version, f.max_supported_version) for f in request.features
            ],
            rack=request.rack,
            fenced=fenced,
        )
        if version >= 3:
            record.log_dirs = list(request.log_dirs)
        return record, version

    def unregister(self, request: UnregisterBrokerRequest) -> Result:
        broker = self.state.image.brokers.get(request.broker_id)
        if broker is None:
            message = f"Broker ID {request.broker_id} is not currently registered"
            raise KafkaError(errors.BROKER_ID_NOT_REGISTERED, message)
        records: list[VersionedRecord] = []
        self.leadership.remove_broker(request.broker_id, records)
        records.append((r.UnregisterBrokerRecord(request.broker_id, broker.broker_epoch), 0))
        return Result(records, UnregisterBrokerResponse())

    def register_controller(self, request: ControllerRegistrationRequest) -> Result:
        if not supports_controller_registration(self.state.image.metadata_version):
            message = "The current MetadataVersion is too old to support controller registrations."
            raise KafkaError(errors.UNSUPPORTED_VERSION, message)
        record = r.RegisterControllerRecord(
            request.controller_id,
            request.incarnation_id,
            request.zk_migration_ready,
            [r.ControllerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners],
            [r.ControllerFeature(f.name, f.min_supported_version, f.max_supported_version) for f in request.features],
        )
        return Result([(record, 0)], ControllerRegistrationResponse())

    # Heartbeats

    def check_epoch(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        broker = self.state.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(errors.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if broker.broker_epoch != broker_epoch:
            message = f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {broker_epoch}"
            raise KafkaError(errors.STALE_BROKER_EPOCH, message)
        return broker

    def heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int) -> Result:
        broker = self.check_epoch(request.broker_id, request.broker_epoch)
        contact = self.state.contacts.get(broker.broker_id)
        if contact is None or contact.broker_epoch != broker.broker_epoch:
            contact = self.state.contacts[broker.broker_id] = BrokerContact(broker.broker_epoch, now_ms)
        contact.last_heartbeat_ms = now_ms
        contact.metadata_offset = max(contact.metadata_offset, request.current_metadata_offset)
        registered_at = self.state.registration_offsets.get(broker.broker_id, broker.broker_epoch)
        caught_up = request.current_metadata_offset >= registered_at
        records: list[VersionedRecord] = []
        response = BrokerHeartbeatResponse(is_caught_up=caught_up)
        self._next_state(request, broker, contact, caught_up, records, response)
        if request.offline_log_dirs:
            self.leadership.directories_offline(broker.broker_id, list(request.offline_log_dirs), records)
        self._note_cordoned(request, broker, records)
        return Result(records, response)

    def _next_state(
        self,
        request: BrokerHeartbeatRequest,
        broker: BrokerRegistration,
        contact: BrokerContact,
        caught_up: bool,
        records: list[VersionedRecord],
        response: BrokerHeartbeatResponse,
    ) -> None:
        """fenced -> unfenced -> controlled shutdown -> shutdown now, as the broker asks and its leaderships allow."""
        if broker.fenced:
            response.is_fenced = True
            if request.want_shut_down:
                response.should_shut_down = True
            elif not request.want_fence and caught_up:
                self.leadership.unfence(broker.broker_id, records)
                response.is_fenced = False
        elif broker.in_controlled_shutdown:
            response.is_fenced = False
            if self._may_shut_down(broker.broker_id, contact):
                self.leadership.fence(broker.broker_id, records)
                response.is_fenced = response.should_shut_down = True
        elif request.want_fence:
            self.leadership.fence(broker.broker_id, records)
            response.is_fenced = True
        elif request.want_shut_down and self.leadership.has_leaderships(broker.broker_id):
            self.leadership.begin_controlled_shutdown(broker.broker_id, records)
            contact.controlled_shutdown_offset = self.state.next_offset + len(records) - 1
            response.is_fenced = False
        elif request.want_shut_down:
            self.leadership.fence(broker.broker_id, records)
            response.is_fenced = response.should_shut_down = True
        else:
            response.is_fenced = False

    def _may_shut_down(self, broker_id: int, contact: BrokerContact) -> bool:
        """When it leads nothing, and every active broker knows that."""
        if self.leadership.has_leaderships(broker_id):
            return False
        others = [c for i, c in self.state.contacts.items() if i != broker_id and self.state.is_active(i)]
        return all(other.metadata_offset >= contact.controlled_shutdown_offset for other in others)

    def _note_cordoned(
        self, request: BrokerHeartbeatRequest, broker: BrokerRegistration, records: list[VersionedRecord]
    ) -> None:
        cordoned = request.cordoned_log_dirs
        if cordoned is None or not supports_cordoned_dirs(self.state.image.metadata_version):
            return
        if broker.cordoned_log_dirs is None or sorted(cordoned) != sorted(broker.cordoned_log_dirs):
            change = r.BrokerRegistrationChangeRecord(
                broker.broker_id, broker.broker_epoch, cordoned_log_dirs=list(cordoned)
            )
            records.append((change, 3))

    # Silence

    def _session_timeout_ms(self) -> int:
        return self.state.config.get_int("broker.session.timeout.ms")

    def activate(self, now_ms: int) -> None:
        """A new controller grants every unfenced broker a full session before it judges."""
        for broker_id, broker in self.state.image.brokers.items():
            if not broker.fenced:
                self._unheard_since_ms[broker_id] = now_ms

    def next_expiry_ms(self, now_ms: int) -> int | None:
        """When the first unfenced broker will have been silent for too long."""
        times = [
            self._last_contact_ms(broker_id, now_ms) + self._session_timeout_ms()
            for broker_id, broker in self.state.image.brokers.items()
            if not broker.fenced
        ]
        return min(times, default=None)

    def _last_contact_ms(self, broker_id: int, now_ms: int) -> int:
        """Its last heartbeat, or when this controller began to wait for one."""
        contact = self.state.contacts.get(broker_id)
        if contact is not None:
            return max(contact.last_heartbeat_ms, self._unheard_since_ms.get(broker_id, 0))
        return self._unheard_since_ms.setdefault(broker_id, now_ms)

    def fence_stale(self, now_ms: int) -> Result:
        """Fences the broker that is silent longest, if it is so for longer than its session; one at a time."""
        records: list[VersionedRecord] = []
        stale = [
            (self._last_contact_ms(broker_id, now_ms), broker_id)
            for broker_id, broker in self.state.image.brokers.items()
            if not broker.fenced and now_ms - self._last_contact_ms(broker_id, now_ms) >= self._session_timeout_ms()
        ]
        if not stale:
            return Result(records, [])
        broker_id = min(stale)[1]
        logger.info("broker %d is silent for longer than its session timeout and is fenced", broker_id)
        self.leadership.fence(broker_id, records)
        return Result(records, [broker_id])
