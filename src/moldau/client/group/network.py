"""A network that drives the group whenever it is polled, so that no wait of the consumer holds up its heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from moldau.client.connection.transport import Address, Network
from moldau.client.connection.wire import Call
from moldau.client.metrics.meters import NetworkMeter
from moldau.protocol.primitives import Message

Response = TypeVar("Response", bound=Message)


class DrivenNetwork(Network):
    """Another network with one thing added: before and after each poll the group has its turn."""

    def __init__(self, inner: Network, drive: Callable[[], None], until_due_ms: Callable[[], int]) -> None:
        """until_due_ms: how long nothing of the group is due."""
        self.inner = inner
        self._drive = drive
        self._until_due_ms = until_due_ms

    def now_ms(self) -> int:
        return self.inner.now_ms()

    def submit(self, address: Address, call: Call[Response]) -> None:
        self.inner.submit(address, call)

    def poll(self, timeout_ms: int) -> None:
        self._drive()
        self.inner.poll(max(0, min(timeout_ms, self._until_due_ms())))
        self._drive()

    def in_flight_count(self, address: Address) -> int:
        return self.inner.in_flight_count(address)

    def is_ready(self, address: Address) -> bool:
        return self.inner.is_ready(address)

    def throttled_ms(self, address: Address) -> int:
        return self.inner.throttled_ms(address)

    def meter(self) -> NetworkMeter | None:
        return self.inner.meter()

    def wake(self) -> None:
        self.inner.wake()

    def close(self) -> None:
        self.inner.close()
