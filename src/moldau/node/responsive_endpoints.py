"""Which endpoints of the brokers have responded to this controller before: a refusal says something only there.

"Connection refused" says that a process is gone where the same way led to it before. Where it never did, it says that
the way does not lead there: a listener for others behind a translated address, a firewall that rejects, a service
without anybody behind it. So every controller, active or not, asks each endpoint of each broker that was let in, once
for each registration, before there is a reason to; where nobody responds it asks again, more and more seldom.

Asked is the listener that brokers use among themselves. A registration does not say which one that is; a node that
is a broker too knows, and so does a controller that was given `inter.broker.listener.name`. Others ask all listeners,
and a broker is gone when all refuse that responded. An address that two brokers claim is nobody's. What is
encrypted cannot be asked and counts for nothing. A node that is broker and controller is one process: its controller's
endpoint is asked as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BrokerRegistration, EndPoint
from moldau.node.outbox import Channel, NoResponse, Outbox
from moldau.protocol.api_table import API_VERSIONS
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS

RESPONSE_TIMEOUT_MS: Final = 2000
RETRY_MIN_MS: Final = 200
RETRY_MAX_MS: Final = 60_000
ASKED_AT_ONCE_MAX: Final = 16
UNENCRYPTED: Final = frozenset({0, 2})
"""PLAINTEXT and SASL_PLAINTEXT: both respond to anybody's ApiVersions."""

Address = tuple[str, int]


class BrokerEndpoint:
    """One endpoint of one registration."""

    __slots__ = ("address", "backoff_ms", "channel", "has_responded", "is_controllers", "next_ms")

    def __init__(self, address: Address, is_controllers: bool, now_ms: int) -> None:
        self.address = address
        self.is_controllers = is_controllers
        self.has_responded = False
        self.channel: Channel | None = None
        self.next_ms = now_ms
        self.backoff_ms = RETRY_MIN_MS


class Registered:
    """A broker as it registered, and its endpoints by address."""

    __slots__ = ("broker_epoch", "endpoints", "is_fenced")

    def __init__(self, broker_epoch: int) -> None:
        self.broker_epoch = broker_epoch
        self.is_fenced = True
        self.endpoints: dict[tuple[Address, bool], BrokerEndpoint] = {}


class ResponsiveEndpoints:
    """`listener` is the name of the inter-broker listener where it is known."""

    def __init__(self, outbox: Outbox, listener: str | None, node_id: int) -> None:
        self._outbox = outbox
        self._listener = listener
        self._node_id = node_id
        self._registered: dict[int, Registered] = {}
        self.on_deadline: Callable[[int], None] | None = None
        """Told when `poll` has to be called earlier than it said."""

    # What the metadata says

    def apply_image(self, image: MetadataImage, now_ms: int) -> None:
        """The brokers, or the controllers, are others than before."""
        shared = self._shared_addresses(image)
        for broker_id in [known for known in self._registered if known not in image.brokers]:
            self._forget(self._registered.pop(broker_id))
        for broker_id, broker in image.brokers.items():
            if broker_id != self._node_id:
                self._update(broker, self._wanted(broker, image, shared), now_ms)

    def _shared_addresses(self, image: MetadataImage) -> set[Address]:
        seen: set[Address] = set()
        shared: set[Address] = set()
        for broker in image.brokers.values():
            own = {(end_point.host, end_point.port) for end_point in broker.end_points.values()}
            shared |= seen & own
            seen |= own
        return shared

    def _wanted(
        self, broker: BrokerRegistration, image: MetadataImage, shared: set[Address]
    ) -> list[tuple[Address, bool]]:
        end_points = list(broker.end_points.values())
        if self._listener is not None and self._listener in broker.end_points:
            end_points = [broker.end_points[self._listener]]
        wanted = [(address, False) for address in unencrypted(end_points) if address not in shared]
        controller = image.controllers.get(broker.broker_id)
        if controller is not None:
            wanted += [(address, True) for address in unencrypted(list(controller.end_points.values()))]
        return wanted

    def _update(self, broker: BrokerRegistration, wanted: list[tuple[Address, bool]], now_ms: int) -> None:
        known = self._registered.get(broker.broker_id)
        if known is None or known.broker_epoch != broker.broker_epoch:
            if known is not None:
                self._forget(known)
            known = self._registered[broker.broker_id] = Registered(broker.broker_epoch)
        let_in = known.is_fenced and not broker.fenced
        known.is_fenced = broker.fenced
        before, known.endpoints = known.endpoints, {}
        for key in wanted:
            endpoint = before.pop(key, None)
            if endpoint is None:
                endpoint = BrokerEndpoint(*key, now_ms)
            elif let_in:
                endpoint.next_ms, endpoint.backoff_ms = now_ms, RETRY_MIN_MS
            known.endpoints[key] = endpoint
        for endpoint in before.values():
            self._stop_asking(endpoint)

    # Who responded

    def responsive(self, broker_id: int, broker_epoch: int) -> list[BrokerEndpoint]:
        """The endpoints of this registration that have responded to this controller."""
        known = self._registered.get(broker_id)
        if known is None or known.broker_epoch != broker_epoch:
            return []
        return [endpoint for endpoint in known.endpoints.values() if endpoint.has_responded]

    def poll(self, now_ms: int) -> int:
        """Asks who is to be asked; returns when to call it again."""
        asked = sum(endpoint.channel is not None for endpoint in self._all())
        next_ms = NEVER_MS
        for registered in self._registered.values():
            if registered.is_fenced:
                continue
            for endpoint in registered.endpoints.values():
                if endpoint.has_responded or endpoint.channel is not None:
                    continue
                if endpoint.next_ms <= now_ms and asked < ASKED_AT_ONCE_MAX:
                    asked += 1
                    self._ask(endpoint)
                elif endpoint.next_ms > now_ms:
                    next_ms = min(next_ms, endpoint.next_ms)
        return next_ms

    def _all(self) -> list[BrokerEndpoint]:
        return [endpoint for registered in self._registered.values() for endpoint in registered.endpoints.values()]

    def _ask(self, endpoint: BrokerEndpoint) -> None:
        endpoint.channel = self._outbox.open("probe", *endpoint.address)
        endpoint.channel.send(
            API_VERSIONS,
            0,
            ApiVersionsRequest(),
            RESPONSE_TIMEOUT_MS,
            lambda response, now_ms: self._take(endpoint, response, now_ms),
        )

    def _take(self, endpoint: BrokerEndpoint, response: Message | NoResponse, now_ms: int) -> None:
        self._stop_asking(endpoint)
        endpoint.has_responded = not isinstance(response, NoResponse)
        endpoint.next_ms = now_ms + endpoint.backoff_ms
        endpoint.backoff_ms = min(2 * endpoint.backoff_ms, RETRY_MAX_MS)
        if self.on_deadline is not None:
            self.on_deadline(now_ms)  # those that had no place until now

    def _stop_asking(self, endpoint: BrokerEndpoint) -> None:
        channel, endpoint.channel = endpoint.channel, None
        if channel is not None:
            channel.close()

    def _forget(self, registered: Registered) -> None:
        for endpoint in registered.endpoints.values():
            self._stop_asking(endpoint)

    def close(self) -> None:
        """The node ends."""
        for registered in self._registered.values():
            self._forget(registered)
        self._registered.clear()


def unencrypted(end_points: list[EndPoint]) -> list[Address]:
    return [(each.host, each.port) for each in end_points if each.security_protocol in UNENCRYPTED]
