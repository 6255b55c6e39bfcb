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
from moldau.metadata.model import BrokerRegistration, is_reserved_directory
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
from moldau.protocol.uuids import uuid_to_text

logger = logging.getLogger("moldau.controller")


def has_everything(existing: BrokerRegistration, request: BrokerRegistrationRequest) -> bool:
    """Whether a broker comes back with all it had: its last run ended well, and none of its directories is missing.

    A process that ends before it hears its epoch has done nothing with it: the next one names the epoch before. As long
    as a registration was not unfenced nobody counts on what the broker wrote since, so it has as much."""
    missing = [directory for directory in existing.log_dirs if directory not in request.log_dirs]
    epochs = (existing.broker_epoch, *existing.idle_since)
    return request.previous_broker_epoch in epochs and not missing


class Brokers:
    def __init__(self, state: ControllerState, leadership: Leadership) -> None:
        self.state = state
        self.leadership = leadership
        self._unheard_since_ms: dict[int, int] = {}
        self._fenced_at: dict[int, int] = {}
        """Where the records are that ended a broker's session."""

    # Registration

    def register(self, request: BrokerRegistrationRequest, now_ms: int) -> Result:
        self._check_registration(request)
        existing = self.state.image.brokers.get(request.broker_id)
        records: list[VersionedRecord] = []
        if existing is not None and existing.incarnation_id == request.incarnation_id:
            # The same process again: its first response was lost, or it has something new to tell.
            epoch = existing.broker_epoch
            record = self._registration_record(request, epoch, existing.fenced, existing.in_controlled_shutdown)
        else:
            if existing is not None:
                self._check_predecessor(existing, now_ms)
            epoch = self.state.next_offset
            if existing is not None and has_everything(existing, request):
                self.leadership.remove_broker(request.broker_id, records)
            else:
                self.leadership.forget_broker(request.broker_id, records)
            record = self._registration_record(request, epoch, True, False)
            self.state.contacts.pop(request.broker_id, None)
            self._fenced_at.pop(request.broker_id, None)
            logger.info(
                "registering broker %d with broker epoch %d, fenced until it has caught up", request.broker_id, epoch
            )
        records.append(record)
        return Result(records, BrokerRegistrationResponse(broker_epoch=epoch))

    def _check_registration(self, request: BrokerRegistrationRequest) -> None:
        state = self.state
        if request.cluster_id != state.cluster_id:
            message = f"Expected cluster ID {state.cluster_id}, but got cluster ID {request.cluster_id}"
            raise KafkaError(errors.INCONSISTENT_CLUSTER_ID, message)
        if register_broker_version(state.image.metadata_version) >= 3:
            self._check_directories(request)
        ranges = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
        for name, level in state.image.features.items():
            low, high = ranges.get(name, (0, 0))
            if not low <= level <= high and (name in ranges or name == METADATA_VERSION):
                message = (
                    f"Unable to register because the broker does not support finalized version {level} of {name}. "
                    f"The broker wants a version between {low} and {high}, inclusive."
                )
                raise KafkaError(errors.UNSUPPORTED_VERSION, message)

    def _check_directories(self, request: BrokerRegistrationRequest) -> None:
        if not request.log_dirs:
            raise KafkaError(errors.INVALID_REGISTRATION, "No directories specified in request")
        if len(set(request.log_dirs)) != len(request.log_dirs):
            raise KafkaError(errors.INVALID_REGISTRATION, "Duplicate directory specified.")
        if any(is_reserved_directory(directory) for directory in request.log_dirs):
            raise KafkaError(errors.INVALID_REGISTRATION, "Reserved directory ID in request")
        for broker_id, other in self.state.image.brokers.items():
            shared = [directory for directory in request.log_dirs if directory in other.log_dirs]
            if broker_id != request.broker_id and shared:
                message = f"Broker {broker_id} is already registered with directory {uuid_to_text(shared[0])}"
                raise KafkaError(errors.INVALID_REGISTRATION, message)

    def _check_predecessor(self, existing: BrokerRegistration, now_ms: int) -> None:
        """A second process with the id of one that is alive is refused; one that is leaving, silent or whose connection
        broke gives way."""
        contact = self.state.contacts.get(existing.broker_id)
        if contact is None or contact.broker_epoch != existing.broker_epoch or contact.is_connection_lost:
            return
        if existing.in_controlled_shutdown:
            return
        if not existing.fenced and now_ms - contact.last_heartbeat_ms < self._session_timeout_ms():
            raise KafkaError(
                errors.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently restarted this should "
                "self-resolve once the heartbeat manager expires the broker's session.",
            )

    def _registration_record(
        self, request: BrokerRegistrationRequest, epoch: int, fenced: bool, leaving: bool
    ) -> VersionedRecord:
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
            in_controlled_shutdown=leaving,
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
        # Nothing will be known of how it stopped, should it ever register again.
        self.leadership.forget_broker(request.broker_id, records)
        records.append((r.UnregisterBrokerRecord(request.broker_id, broker.broker_epoch), 0))
        return Result(records, UnregisterBrokerResponse(), is_atomic=False)

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
        contact.is_connection_lost = False
        self._note_offset(contact, request.current_metadata_offset, now_ms)
        registered_at = self.state.registration_offsets.get(broker.broker_id, broker.broker_epoch)
        caught_up = request.current_metadata_offset >= registered_at
        records: list[VersionedRecord] = []
        response = BrokerHeartbeatResponse(is_caught_up=caught_up)
        lost_directories = bool(request.offline_log_dirs) and self.leadership.directories_offline(
            broker.broker_id, list(request.offline_log_dirs), records
        )
        if lost_directories:
            # What follows has to be decided with these directories gone: by the next heartbeat.
            response.is_fenced = broker.fenced
        else:
            self._next_state(request, broker, contact, caught_up, records, response)
        self._note_cordoned(request, broker, records)
        return Result(records, response, is_atomic=False)

    def _note_offset(self, contact: BrokerContact, offset: int, now_ms: int) -> None:
        """A heartbeat keeps the session alive if its broker hears something: it has new metadata, or nobody had more
        when it was last seen to hear. One that is heard and hears nothing would keep leaderships it cannot use."""
        if offset > contact.metadata_offset or offset >= contact.known_offset:
            contact.last_heartbeat_ms = now_ms
            contact.metadata_offset = max(contact.metadata_offset, min(offset, self.state.next_offset))
            contact.known_offset = max(other.metadata_offset for other in self.state.contacts.values())

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
        broker_id = broker.broker_id
        response.is_fenced = broker.fenced
        if broker.fenced:
            if request.want_shut_down:
                response.should_shut_down = True
            elif not request.want_fence and caught_up and self._knows_its_end(request):
                self.leadership.unfence(broker_id, records)
                response.is_fenced = False
        elif request.want_fence and not request.want_shut_down:
            self.leadership.fence(broker_id, records)
            response.is_fenced = True
        elif broker.in_controlled_shutdown or request.want_shut_down:
            self._shut_down(request, broker, contact, records, response)
        if response.should_shut_down:
            logger.info("broker %d may complete its controlled shutdown: it leads no partition", broker_id)
            del self.state.contacts[broker_id]

    def _knows_its_end(self, request: BrokerHeartbeatRequest) -> bool:
        """A broker whose session ended has heard of it: it is let in again only if it hears."""
        return request.current_metadata_offset >= self._fenced_at.get(request.broker_id, -1)

    def _shut_down(
        self,
        request: BrokerHeartbeatRequest,
        broker: BrokerRegistration,
        contact: BrokerContact,
        records: list[VersionedRecord],
        response: BrokerHeartbeatResponse,
    ) -> None:
        """Leaderships go first, and it waits until the others know of it; one that leads nothing goes at once."""
        leads = self.leadership.has_leaderships(broker.broker_id)
        if leads and not request.want_fence:
            self.leadership.begin_controlled_shutdown(broker.broker_id, records)
            contact.controlled_shutdown_offset = self.state.next_offset + len(records) - 1
        elif request.want_fence or self._others_know(broker.broker_id, contact.controlled_shutdown_offset):
            self.leadership.fence(broker.broker_id, records)
            response.is_fenced = response.should_shut_down = True

    def _others_know(self, broker_id: int, offset: int) -> bool:
        """Whether every active broker has told that it has the metadata up to `offset`."""
        if offset < 0:
            return True
        for other_id, other in self.state.image.brokers.items():
            if other_id != broker_id and other.is_active:
                contact = self.state.contacts.get(other_id)
                if contact is None or contact.metadata_offset < offset:
                    return False
        return True

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
        first = min(
            (
                self._last_contact_ms(broker_id, now_ms)
                for broker_id, broker in self.state.image.brokers.items()
                if not broker.fenced
            ),
            default=None,
        )
        return None if first is None else first + self._session_timeout_ms()

    def _last_contact_ms(self, broker_id: int, now_ms: int) -> int:
        """Its last heartbeat, or when this controller began to wait for one."""
        contact = self.state.contacts.get(broker_id)
        if contact is not None:
            return max(contact.last_heartbeat_ms, self._unheard_since_ms.get(broker_id, 0))
        return self._unheard_since_ms.setdefault(broker_id, now_ms)

    def fence_stale(self, now_ms: int) -> Result:
        """Fences the broker that is silent longest, if it is so for longer than its session; one at a time."""
        records: list[VersionedRecord] = []
        heard_before_ms = now_ms - self._session_timeout_ms()
        stale = [
            (self._last_contact_ms(broker_id, now_ms), broker_id)
            for broker_id, broker in self.state.image.brokers.items()
            if not broker.fenced and self._last_contact_ms(broker_id, now_ms) <= heard_before_ms
        ]
        if not stale:
            return Result(records, [])
        broker_id = min(stale)[1]
        logger.info("fencing broker %d: session timed out", broker_id)
        self.state.counts.timed_out_sessions += 1
        self._end_session(broker_id, records)
        return Result(records, [broker_id], is_atomic=False)

    def fence(self, broker_id: int, broker_epoch: int) -> Result:
        """Fences a broker at whose address nobody is, unless its heartbeats go on; the response says whether it did."""
        broker = self.state.image.brokers.get(broker_id)
        if broker is None or broker.broker_epoch != broker_epoch or broker.fenced:
            return Result([], False)
        if not self.has_no_heartbeat(broker_id, broker_epoch):
            return Result([], False)
        records: list[VersionedRecord] = []
        logger.info("fencing broker %d early: its listener refuses connections", broker_id)
        self._end_session(broker_id, records)
        return Result(records, True, is_atomic=False)

    def _end_session(self, broker_id: int, records: list[VersionedRecord]) -> None:
        self.state.contacts.pop(broker_id, None)
        self._unheard_since_ms.pop(broker_id, None)
        self._fenced_at[broker_id] = self.state.next_offset
        self.leadership.fence(broker_id, records)

    # What failure detection asks and tells

    def connection_lost(self, broker_id: int, broker_epoch: int) -> None:
        contact = self.state.contacts.get(broker_id)
        if contact is not None and contact.broker_epoch == broker_epoch:
            contact.is_connection_lost = True

    def has_no_heartbeat(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether this controller has had no heartbeat of the broker, or none since its connection broke."""
        contact = self.state.contacts.get(broker_id)
        return contact is None or contact.broker_epoch != broker_epoch or contact.is_connection_lost
