"""One request on its way: who asked, in which version, and how to respond."""

from __future__ import annotations

import logging
from typing import Any, Final

from moldau.api.error_counts import count_encoded_errors, count_errors
from moldau.metrics.request_stats import RequestStats
from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.protocol import errors
from moldau.protocol.api_keys import response_class
from moldau.protocol.api_table import (
    ADD_RAFT_VOTER,
    ALTER_PARTITION,
    BEGIN_QUORUM_EPOCH,
    DESCRIBE_QUORUM,
    END_QUORUM_EPOCH,
    ENVELOPE,
    FETCH,
    FETCH_SNAPSHOT,
    PRODUCE,
    REMOVE_RAFT_VOTER,
    UPDATE_RAFT_VOTER,
    VOTE,
    WRITE_TXN_MARKERS,
)
from moldau.protocol.primitives import Message, Writer
from moldau.quota.client_quotas import ClientBudgets

log = logging.getLogger("moldau.api")

# Nobody waits because of the time that these take.
EXEMPT: Final = frozenset({WRITE_TXN_MARKERS, ALTER_PARTITION})
EXEMPT_ON_CONTROLLERS: Final = frozenset(
    {
        VOTE,
        BEGIN_QUORUM_EPOCH,
        END_QUORUM_EPOCH,
        FETCH,
        FETCH_SNAPSHOT,
        DESCRIBE_QUORUM,
        ADD_RAFT_VOTER,
        REMOVE_RAFT_VOTER,
        UPDATE_RAFT_VOTER,
    }
)
THROTTLE_FIELD: Final = "throttle_time_ms"


class Rest:
    """What a connection used and was not yet counted when it ended: counted then, and nobody waits for it."""

    def __init__(self, node: Node, context: ClientContext) -> None:
        self.node = node
        self.context = context

    def on_closed(self, now_ms: int) -> None:
        quotas, context = self.node.quotas, self.context
        known = context.budgets
        if context.unbilled_ns > 0 and quotas.request.is_on and known is not None:
            budgets = quotas.budgets_of(known, known.principal, known.client_id)
            quotas.record_request(budgets, context.unbilled_ns, quotas.turn_ms)
            context.unbilled_ns = 0


class Call:
    """Handed to a handler together with the decoded request."""

    def __init__(
        self,
        node: Node,
        context: ClientContext,
        *,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        flexible_response_header: bool,
        now_ms: int,
    ) -> None:
        self.node = node
        self.quotas = node.quotas
        self.context = context
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.flexible_response_header = flexible_response_header
        self.now_ms = now_ms
        self.reply = Reply()
        self.frame: bytes | None = None
        """The request as it came, header included, where it may be passed on to the active controller."""
        self.stats: RequestStats | None = None
        """Where it is counted."""
        self.size = 0
        """Of the request in bytes, header included."""
        self.is_exempt = False
        """From the quota of request time."""
        self.is_charged = False
        """What it used is recorded already; `throttle_ms` is what came of it."""
        self.throttle_ms = 0
        self.controller_throttle_ms = 0
        """What the active controller says to a request that was passed on to it."""

    def respond(self, response: Message) -> None:
        """Encodes the response in the version of the request and completes the reply."""
        self.respond_in_version(response, self.version)

    def respond_in_version(self, response: Message, version: int) -> None:
        if self.quotas.is_on or self.controller_throttle_ms > 0:
            throttle_ms = self.charge(response)
            if throttle_ms > 0:
                self._slow_down(response, throttle_ms)
        if self.stats is not None:
            count_errors(self.stats, response, self.api_key, self.version)
        writer = Writer()
        writer.int32(0)
        writer.int32(self.correlation_id)
        if self.flexible_response_header:
            writer.uvarint(0)
        try:
            response.encode(writer, version)
        except Exception:
            # Often called in someone else's turn (a commit, an append), which must not fail because of this.
            log.exception("cannot encode %s; closing the connection", type(response).__name__)
            self.close_connection()
            return
        writer.set_int32(0, writer.size - 4)
        self.reply.complete(writer.finish())

    def respond_as_received(self, response: bytes) -> None:
        """Passes on a response that another node encoded for the same request, header included."""
        if self.stats is not None:
            count_encoded_errors(self.stats, response, self.api_key, self.version, self.flexible_response_header)
        self.controller_throttle_ms = max(0, read_throttle(response, self.api_key, self.flexible_response_header))
        if self.quotas.is_on or self.controller_throttle_ms > 0:
            throttle_ms = self.charge(None)
            if throttle_ms > self.controller_throttle_ms:
                response = with_throttle(response, self.api_key, self.flexible_response_header, throttle_ms)
            self.reply.mute_ms = throttle_ms
        self.reply.complete([len(response).to_bytes(4, "big") + response])

    def respond_nothing(self) -> None:
        """For requests that want no response. Whoever sent too much is slowed down all the same."""
        if self.quotas.is_on:
            self.is_exempt = True
            self.reply.mute_ms = self.charge(None)
        self.reply.complete(None)

    def close_connection(self) -> None:
        """Closes the connection after what was answered before."""
        if self.api_key == PRODUCE and self.quotas.is_on:
            self.is_exempt = True
            self.charge(None)  # what was sent counts, whatever became of it
        self.reply.close_connection = True
        if not self.reply.done:
            self.reply.complete(None)

    def count_as(self, part: str) -> None:
        """The request is one of a kind that is counted a second time."""
        stats = self.stats
        if stats is None:
            return
        kind = stats.parts.get(part)
        if kind is not None:
            kind.by_version[self.version] += 1
            if self.reply.times is not None:
                self.reply.times.also = kind

    # Quotas

    def budgets(self) -> ClientBudgets:
        context = self.context
        found = self.quotas.budgets_of(context.budgets, context.principal, self.client_id)
        context.budgets = found
        return found

    def charge(self, response: Message | None) -> int:
        """Records what the request used, once; returns how long its connection is to be muted."""
        if not self.is_charged:
            self.is_charged = True
            if self.quotas.is_on:
                self.throttle_ms = self._charge(response)
            if self.controller_throttle_ms > self.throttle_ms:
                self.throttle_ms = self.controller_throttle_ms
                budget = self.budgets().request
                if budget is not None:
                    self.quotas.request.note_throttle(budget, self.throttle_ms, self.quotas.turn_ms)
        return self.throttle_ms

    def _charge(self, response: Message | None) -> int:
        quotas = self.quotas
        if self.api_key == ENVELOPE and not is_refused(response):
            return 0  # counted for the client whose request was inside
        turn_ms = quotas.turn_ms
        budgets = self.budgets()
        bandwidth_ms = quotas.record_produce(budgets, self.size, turn_ms) if self.api_key == PRODUCE else 0
        request_ms = 0
        if quotas.measures_time:
            nanoseconds = self._take_time()
            if self._is_exempt() and not is_refused(response):
                quotas.record_exempt(nanoseconds, turn_ms)
            else:
                request_ms = quotas.record_request(budgets, nanoseconds, turn_ms)
        return quotas.throttled(budgets, quotas.produce, bandwidth_ms, request_ms, turn_ms)

    def charge_fetch(self, size: int, takes_back: bool = True) -> int:
        """Records a response to a consumer before it is sent. If it has to wait, its bytes are taken back: the response
        then has to be an empty one, unless it is one that cannot be taken back."""
        quotas, turn_ms = self.quotas, self.quotas.turn_ms
        budgets = self.budgets()
        request_ms = quotas.record_request(budgets, self._take_time(), turn_ms)
        bandwidth_ms = quotas.record_fetch(budgets, size, turn_ms)
        self.is_charged = True
        self.throttle_ms = quotas.throttled(budgets, quotas.fetch, bandwidth_ms, request_ms, turn_ms)
        if self.throttle_ms > 0 and takes_back:
            quotas.record_fetch(budgets, -size, turn_ms)
        return self.throttle_ms

    def size_of(self, response: Message) -> int:
        """What counts of a response to a consumer: its size field and its body."""
        writer = Writer()
        response.encode(writer, self.version)
        return 4 + writer.size

    def limit_fetch(self, max_bytes: int) -> int:
        """What fits into the consumer's quota, if that is less."""
        limit = self.quotas.fetch_bytes_max(self.budgets())
        return max_bytes if limit < 0 else min(max_bytes, limit)

    def _take_time(self) -> int:
        context = self.context
        nanoseconds, context.unbilled_ns = context.unbilled_ns, 0
        if not context.bills_rest and self.quotas.measures_time and not context.is_forwarded:
            context.bills_rest = True
            context.when_closed(Rest(self.node, context).on_closed)
        return nanoseconds

    def _is_exempt(self) -> bool:
        if self.is_exempt or self.api_key in EXEMPT:
            return True
        return self.context.is_controller_listener and self.api_key in EXEMPT_ON_CONTROLLERS

    def _slow_down(self, response: Any, throttle_ms: int) -> None:
        self.reply.mute_ms = throttle_ms
        if THROTTLE_FIELD in response.FIELDS:
            response.throttle_time_ms = throttle_ms


def is_refused(response: Any) -> bool:
    """Who may not ask at all is not exempt either."""
    return response is not None and getattr(response, "error_code", 0) == errors.CLUSTER_AUTHORIZATION_FAILED


# The throttle time of a response that is passed on as bytes


def throttle_position(response: bytes, api_key: int, flexible: bool) -> int:
    """Where it is, -1 if it is not there: the first field, after a header whose tags are empty, or the last one, before
    tags that are."""
    fields = response_class(api_key).FIELDS
    if fields[0] == THROTTLE_FIELD:
        position = 5 if flexible else 4
        is_there = len(response) >= position + 4 and (not flexible or response[4] == 0)
    elif fields[-1] == THROTTLE_FIELD:
        position = len(response) - (5 if flexible else 4)
        is_there = position >= 4 and (not flexible or response[-1] == 0)
    else:
        return -1
    return position if is_there else -1


def read_throttle(response: bytes, api_key: int, flexible: bool) -> int:
    position = throttle_position(response, api_key, flexible)
    return 0 if position < 0 else int.from_bytes(response[position : position + 4], "big", signed=True)


def with_throttle(response: bytes, api_key: int, flexible: bool, throttle_ms: int) -> bytes:
    position = throttle_position(response, api_key, flexible)
    if position < 0:
        return response
    return response[:position] + throttle_ms.to_bytes(4, "big") + response[position + 4 :]
