"""Finds a group's or a transaction's coordinator and carries requests to it, on its own connection; never waits.

The connection is its own because brokers respond in order: a fetch that waits for records would hold up heartbeats,
and a JoinGroup that waits for other members would hold up fetches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from moldau.client.connection.cluster import Cluster
from moldau.client.connection.transport import Address
from moldau.client.connection.wire import NO_FEATURES, Call
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError, UnsupportedVersionError, error_for
from moldau.client.group.membership import FOREVER_MS
from moldau.protocol.errors import NONE
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from moldau.protocol.primitives import Message

logger = logging.getLogger("moldau.client")

Response = TypeVar("Response", bound=Message)

GROUP = 0
TRANSACTION = 1
# Before this version one key is asked for, from it on many.
MANY_KEYS_VERSION = 4


class CoordinatorAddress(tuple[str, int]):
    """The address of a broker, but not equal to it: the network keeps another connection for it."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((type(self), self[0], self[1]))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


class AsideAddress(CoordinatorAddress):
    """Still another connection, for what must not wait behind a JoinGroup that has no response yet."""

    __slots__ = ()


class Coordinator:
    """Where the coordinator of one group, or of one transactional id, is, as far as known."""

    def __init__(self, cluster: Cluster, key: str, request_timeout_ms: int, key_type: int = GROUP) -> None:
        self._cluster = cluster
        self._key = key
        self._key_type = key_type
        self._request_timeout_ms = request_timeout_ms
        self._address: Address | None = None
        self._asking = False
        self._many_keys = True
        self._not_before_ms = 0
        # How often in a row it was not found, or lost.
        self.failures = 0
        # Calls on their way; whoever drives the group polls the network while there are some.
        self.in_flight = 0
        # Why the coordinator is not known, where asking again does not help.
        self.problem: ClientError | None = None
        self.last_error: ClientError | None = None
        # What the connection of the last response knew of the cluster's features.
        self.features = NO_FEATURES
        # Called when there was a response: there may be something new to do.
        self.on_response: Callable[[], None] = _nothing

    @property
    def known(self) -> bool:
        return self._address is not None

    def forget(self, reason: str) -> None:
        if self._address is not None:
            logger.info("The coordinator of %s is unavailable, finding it again: %s", self._key, reason)
        self._address = None

    def next_deadline_ms(self) -> int:
        """When find() has something to do."""
        return FOREVER_MS if self._asking or self.known else self._not_before_ms

    def find(self, now_ms: int) -> None:
        """Asks where the coordinator is unless that is known or being asked."""
        if self.known or self._asking or now_ms < self._not_before_ms:
            return
        self._asking = True
        request = FindCoordinatorRequest(key_type=self._key_type)
        highest: int | None = None
        if self._many_keys:
            request.coordinator_keys = [self._key]
        else:
            request.key = self._key
            highest = MANY_KEYS_VERSION - 1
        self.in_flight += 1
        self._cluster.start_call(
            request,
            FindCoordinatorResponse,
            self._request_timeout_ms,
            self._on_found,
            highest_version=highest,
            refuses=_cannot_now,
        )

    def _on_found(self, response: FindCoordinatorResponse | None, error: ClientError | None) -> None:
        self._asking = False
        self.in_flight -= 1
        self.on_response()
        if isinstance(error, UnsupportedVersionError) and self._many_keys:
            self._many_keys = False
            return
        host, port = "", -1
        if response is not None:
            code, message, host, port = _row(response)
            error = None if code == NONE else error_for(code, message)
        if error is None:
            self.failures = 0
            self._address = CoordinatorAddress((host, port))
            return
        self.last_error = error
        if not error.retriable:
            self.problem = error
        self.failures += 1
        self._not_before_ms = self._cluster.network.now_ms() + self._cluster.backoff.delay_ms(self.failures)

    def send(
        self,
        request: Message,
        response_class: type[Response],
        timeout_ms: int,
        when_done: Callable[[Response | None, ClientError | None], None],
        highest_version: int | None = None,
        aside: bool = False,
    ) -> None:
        """To be called while the coordinator is known: when_done(response, None) once, or (None, error)."""
        assert self._address is not None

        def on_done(call: Call[Response]) -> None:
            self.in_flight -= 1
            self.features = call.features
            self.on_response()
            if isinstance(call.error, NetworkError | RequestTimeoutError):
                self.last_error = call.error
                if not call.error.retriable:
                    self.problem = call.error
                self._lost(address, call.error)
            when_done(None if call.error is not None else call.response(), call.error)

        address = AsideAddress(self._address) if aside else self._address
        self.in_flight += 1
        call = Call(request, response_class, timeout_ms, highest_version, True, on_done)
        self._cluster.submit(address, call)

    def _lost(self, address: Address, error: ClientError) -> None:
        if self._address == address:
            self.forget(error.message)
            self.failures += 1
            self._not_before_ms = self._cluster.network.now_ms() + self._cluster.backoff.delay_ms(self.failures)


def _nothing() -> None:
    pass


def _cannot_now(response: FindCoordinatorResponse) -> bool:
    """Another broker may know more, one that is not cut off from the controller."""
    code = _row(response)[0]
    return code != NONE and error_for(code).retriable


def _row(response: FindCoordinatorResponse) -> tuple[int, str | None, str, int]:
    if response.coordinators:
        row = response.coordinators[0]
        return row.error_code, row.error_message, row.host, row.port
    return response.error_code, response.error_message, response.host, response.port
