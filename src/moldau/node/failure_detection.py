"""Fences a broker whose process is gone at once, instead of when its session ends.

Suspicion comes from the connection that carried a broker's heartbeats, when it breaks, from a new active controller
that has not heard of a broker, and from whoever else loses touch (`suspect`). It is followed by a probe: ApiVersions on
the endpoints of the broker that have responded to this controller before (`ResponsiveEndpoints`). Refused by all of
them twice, a pause apart, says that nobody is there; any response, silence or an unreachable host says nothing, and
`broker.session.timeout.ms` decides as always, as it does where no endpoint has ever responded.

A new active controller has not been found by all brokers yet: it fences nobody before `broker.heartbeat.interval.ms` is
over. The exception is a node that is broker and controller and refuses at both endpoints: most often it was the active
controller, and its end is why there is a new one.

Fencing is safe whoever is right: it takes leaderships and places in the ISR away, never data, and a broker that lives
is unfenced by its next heartbeat. One that was fenced like this too often in a minute is left to its session.
docs/adr/0014-fencing-before-the-session-ends.md has the cases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.node.context import ClientContext
from moldau.node.outbox import CLOSED, REFUSED, Channel, NoResponse, Outbox
from moldau.node.responsive_endpoints import ResponsiveEndpoints
from moldau.protocol.api_table import API_VERSIONS
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS

logger = logging.getLogger("moldau.node")

PAUSE_MS: Final = 100
"""Between two probes of one broker."""
PROBE_TIMEOUT_MS: Final = 500
PROBES_MAX: Final = 5
"""Of one suspicion; connections that are closed at once prove nothing, but the next one may be refused."""
GRACE_MS: Final = 50
"""How long a new active controller waits for heartbeats before it looks where its predecessor was."""
FENCINGS_MAX: Final = 3
FENCINGS_PERIOD_MS: Final = 60_000

Submit = Callable[[Callable[[Controller], Result], Callable[[Any, int], None], int], None]


class Probe:
    """One suspicion being looked into, at all endpoints in rounds."""

    def __init__(self, broker_id: int, broker_epoch: int, channels: list[Channel]) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.channels = channels
        self.sent = 0
        self.outcomes: list[int] = []
        self.refused = 0
        self.next_ms = NEVER_MS


class FailureDetection:
    """`active_controller` is None while this node does not decide; `submit` runs a verb on it."""

    def __init__(
        self,
        active_controller: Callable[[], Controller | None],
        submit: Submit,
        outbox: Outbox,
        endpoints: ResponsiveEndpoints,
        node_id: int,
        heartbeat_interval_ms: int,
    ) -> None:
        self._active_controller = active_controller
        self._submit = submit
        self._outbox = outbox
        self._endpoints = endpoints
        self._node_id = node_id
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._connections: dict[int, ClientContext] = {}
        """The connection that brought a broker's last heartbeat."""
        self._watched: set[tuple[int, int]] = set()
        """Connections whose end this is told of, each with a broker; those that exist, so their ids are unique."""
        self._probes: dict[int, Probe] = {}
        self._fenced_ms: dict[int, list[int]] = {}
        self._settled_ms = NEVER_MS
        """When this controller has been active for so long that every broker can have sent it a heartbeat."""
        self._looks_ms: list[int] = []
        """When to look for brokers that have not been heard of."""
        self.on_deadline: Callable[[int], None] | None = None
        """Told when `poll` has to be called earlier than it said."""
        self.on_fenced: Callable[[int, int], None] | None = None
        """Told the id and the epoch of every broker that was fenced like this."""
        endpoints.on_deadline = self._wake

    def apply(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        """Follows the metadata, whether this node decides or may do so later."""
        if delta.changed_brokers or delta.changed_controllers:
            self._endpoints.apply_image(image, now_ms)
            self._wake(now_ms)

    # Where suspicion comes from

    def on_heartbeat(self, context: ClientContext, broker_id: int, now_ms: int) -> None:
        """A heartbeat came over this connection: from now on its end means something."""
        if self._connections.get(broker_id) is context:
            return
        controller = self._active_controller()
        if controller is None or broker_id not in controller.image.brokers:
            return
        self._connections[broker_id] = context
        if (id(context), broker_id) not in self._watched:
            self._watched.add((id(context), broker_id))
            context.when_closed(lambda closed_ms: self._on_connection_closed(context, broker_id, closed_ms))

    def _on_connection_closed(self, context: ClientContext, broker_id: int, now_ms: int) -> None:
        self._watched.discard((id(context), broker_id))
        if self._connections.get(broker_id) is not context:
            return
        del self._connections[broker_id]
        controller = self._active_controller()
        broker = None if controller is None else controller.image.brokers.get(broker_id)
        if broker is not None:
            self.on_heartbeat_connection_closed(broker_id, broker.broker_epoch, now_ms)

    def on_heartbeat_connection_closed(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        controller = self._active_controller()
        if controller is None:
            return
        controller.brokers.connection_lost(broker_id, broker_epoch)
        self.suspect(broker_id, now_ms)

    def on_channel_failed(self, broker_id: int, reason: int, now_ms: int) -> None:
        """Another request of this node to that broker failed."""
        if reason in (REFUSED, CLOSED):
            self.suspect(broker_id, now_ms)

    def on_leader_changed(self, now_ms: int) -> None:
        if self._active_controller() is not None:
            self.on_controller_active(now_ms)
        else:
            self._give_up_all()

    def on_controller_active(self, now_ms: int) -> None:
        """This node decides from now on. Living brokers find it and send a heartbeat; the others are looked for."""
        self._give_up_all()
        self._settled_ms = now_ms + self._heartbeat_interval_ms
        self._looks_ms = [now_ms + GRACE_MS, self._settled_ms]
        self._wake(self._looks_ms[0])

    def suspect(self, broker_id: int, now_ms: int) -> None:
        """Looks whether anybody listens where the broker was, unless that is known already."""
        controller = self._active_controller()
        broker = None if controller is None else controller.image.brokers.get(broker_id)
        if broker is None or broker.fenced or broker_id in self._probes or broker_id == self._node_id:
            return
        responsive = self._endpoints.responsive(broker_id, broker.broker_epoch)
        if all(endpoint.is_controllers for endpoint in responsive):
            return  # a refusal would not say that the broker is gone
        if now_ms < self._settled_ms and not any(endpoint.is_controllers for endpoint in responsive):
            return  # it may not have found this controller yet; if it stays silent there is another look
        if self._is_flapping(broker_id, now_ms):
            logger.warning(
                "broker %d was fenced early too often: only its session timeout fences it from now on", broker_id
            )
            return
        channels = [self._outbox.open("probe", *endpoint.address) for endpoint in responsive]
        probe = self._probes[broker_id] = Probe(broker_id, broker.broker_epoch, channels)
        self._ask(probe)

    def _is_flapping(self, broker_id: int, now_ms: int) -> bool:
        recent = [at for at in self._fenced_ms.get(broker_id, []) if now_ms - at < FENCINGS_PERIOD_MS]
        self._fenced_ms[broker_id] = recent
        return len(recent) >= FENCINGS_MAX

    # Probes

    def poll(self, now_ms: int) -> int:
        """Does what is due; returns when to call it again at the latest."""
        next_ms = self._endpoints.poll(now_ms)
        if self._probes or self._looks_ms:
            if self._active_controller() is None:
                self._give_up_all()
                return next_ms
            while self._looks_ms and now_ms >= self._looks_ms[0]:
                self._looks_ms.pop(0)
                self._look_around(now_ms)
            for probe in list(self._probes.values()):
                if now_ms >= probe.next_ms:
                    self._ask(probe)
        return min([next_ms, *self._looks_ms, *(probe.next_ms for probe in self._probes.values())])

    def _look_around(self, now_ms: int) -> None:
        controller = self._active_controller()
        assert controller is not None
        for broker_id, broker in controller.image.brokers.items():
            if not broker.fenced and controller.brokers.has_no_heartbeat(broker_id, broker.broker_epoch):
                self.suspect(broker_id, now_ms)

    def _ask(self, probe: Probe) -> None:
        probe.sent += 1
        probe.outcomes = []
        probe.next_ms = NEVER_MS
        for channel in probe.channels:
            channel.send(
                API_VERSIONS,
                0,
                ApiVersionsRequest(),
                PROBE_TIMEOUT_MS,
                lambda response, now_ms: self._take(probe, response, now_ms),
            )

    def _take(self, probe: Probe, response: Message | NoResponse, now_ms: int) -> None:
        if self._probes.get(probe.broker_id) is not probe:
            return
        reason = response.reason if isinstance(response, NoResponse) else 0
        if reason not in (REFUSED, CLOSED):
            self._end(probe)
            return
        probe.outcomes.append(reason)
        if len(probe.outcomes) < len(probe.channels):
            return
        probe.refused = probe.refused + 1 if CLOSED not in probe.outcomes else 0
        if probe.refused >= 2:
            self._end(probe)
            self._fence(probe, now_ms)
        elif probe.sent < PROBES_MAX:
            probe.next_ms = now_ms + PAUSE_MS
            self._wake(probe.next_ms)
        else:
            self._end(probe)

    def _fence(self, probe: Probe, now_ms: int) -> None:
        """The controller says no when a heartbeat has come meanwhile."""

        def done(response: Any, fenced_ms: int) -> None:
            if response is True:
                self._fenced_ms.setdefault(probe.broker_id, []).append(fenced_ms)
                if self.on_fenced is not None:
                    self.on_fenced(probe.broker_id, probe.broker_epoch)

        self._submit(lambda controller: controller.fence_broker(probe.broker_id, probe.broker_epoch), done, now_ms)

    def _end(self, probe: Probe) -> None:
        del self._probes[probe.broker_id]
        for channel in probe.channels:
            channel.close()

    def _give_up_all(self) -> None:
        self._looks_ms = []
        self._settled_ms = NEVER_MS
        for probe in list(self._probes.values()):
            self._end(probe)

    def _wake(self, at_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(at_ms)

    def close(self) -> None:
        """The node ends."""
        self._give_up_all()
        self._endpoints.close()
