"""The quorum's requests on their way: sent through the outbox; responses and failures come back.

Every peer has two channels: one for fetches, which are long polls, and one for everything else, so that a vote never
waits behind a fetch. Raft has at most one request per peer under way that it still wants a response to; one that it
gave up is abandoned together with its connection as soon as the next of its kind is sent.

A node wires it up so: `peers = QuorumPeers(outbox, raft.address_of, cluster_id, request_timeout_ms, on_raft_reply,
on_raft_failure)`, and hands it every `Outbound` of a `Ready`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.node.outbox import FAILURES, TIMED_OUT, UNREACHABLE, Channel, NoResponse, Outbox
from moldau.protocol.api_keys import BY_KEY
from moldau.protocol.api_table import FETCH, FETCH_SNAPSHOT
from moldau.protocol.primitives import Message
from moldau.raft.messages import FetchRequest, Reply
from moldau.raft.ready import Outbound
from moldau.raft.wire_client import api_key_of, reply_from_wire, request_to_wire

logger = logging.getLogger("moldau.raft")

Address = tuple[str, int]

FETCHING: Final = "raft-fetch"
ASKING: Final = "raft"


class Peer:
    """One channel to one peer, and what is under way on it."""

    __slots__ = ("address", "awaited", "channel")

    def __init__(self, address: Address, channel: Channel) -> None:
        self.address = address
        self.channel = channel
        self.awaited: Outbound | None = None


class QuorumPeers:
    def __init__(
        self,
        outbox: Outbox,
        address_of: Callable[[int], Address | None],
        cluster_id: str,
        timeout_ms: int,
        on_reply: Callable[[Outbound, Reply, int], None],
        on_failure: Callable[[Outbound, int, int], None],
    ) -> None:
        """`address_of` is `Raft.address_of`. `on_reply(outbound, reply, now_ms)` and `on_failure(outbound, now_ms,
        reason)` are called in a later turn, but for a peer without an address, which fails inside `send`."""
        self._outbox = outbox
        self._address_of = address_of
        self._cluster_id = cluster_id
        self._timeout_ms = timeout_ms
        self._on_reply = on_reply
        self._on_failure = on_failure
        self._peers: dict[tuple[str, int], Peer] = {}

    def send(self, outbound: Outbound, now_ms: int) -> None:
        api_key = api_key_of(outbound.request)
        purpose = FETCHING if api_key in (FETCH, FETCH_SNAPSHOT) else ASKING
        address = self._address_of(outbound.destination)
        if address is None:
            self._drop(purpose, outbound.destination)
            self._on_failure(outbound, now_ms, UNREACHABLE)
            return
        peer = self._peer(purpose, outbound.destination, address)
        peer.awaited = outbound
        timeout_ms = self._timeout_ms
        if isinstance(outbound.request, FetchRequest):
            timeout_ms += outbound.request.max_wait_ms
        version = BY_KEY[api_key].highest_stable_version
        request = request_to_wire(outbound.request, self._cluster_id)

        def on_response(response: Message | NoResponse, now_ms: int) -> None:
            if peer.awaited is outbound:
                peer.awaited = None
                self._take(outbound, response, now_ms)

        peer.channel.send(api_key, version, request, timeout_ms, on_response)

    def _take(self, outbound: Outbound, response: Message | NoResponse, now_ms: int) -> None:
        if isinstance(response, NoResponse):
            logger.debug(
                "node %d: %s %s", outbound.destination, type(outbound.request).__name__, FAILURES[response.reason]
            )
            self._on_failure(outbound, now_ms, response.reason)
            return
        reply = reply_from_wire(response)
        if reply is None:
            # An error as a whole, such as another cluster's id: it will not be better at once.
            logger.warning("unexpected response from node %d: %r", outbound.destination, response)
            self._on_failure(outbound, now_ms, TIMED_OUT)
        else:
            self._on_reply(outbound, reply, now_ms)

    def _peer(self, purpose: str, node_id: int, address: Address) -> Peer:
        peer = self._peers.get((purpose, node_id))
        if peer is not None and (peer.address != address or peer.awaited is not None):
            self._drop(purpose, node_id)
            peer = None
        if peer is None:
            peer = Peer(address, self._outbox.open(purpose, *address))
            self._peers[(purpose, node_id)] = peer
        return peer

    def _drop(self, purpose: str, node_id: int) -> None:
        peer = self._peers.pop((purpose, node_id), None)
        if peer is not None:
            peer.awaited = None
            peer.channel.close()

    def close(self) -> None:
        for purpose, node_id in list(self._peers):
            self._drop(purpose, node_id)
