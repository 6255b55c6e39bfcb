"""Hands out producer ids from blocks that the controller gives to this broker, a thousand at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.node.broker_lifecycle import BrokerLifecycle
from moldau.node.controller_channel import ControllerChannel
from moldau.protocol import errors
from moldau.protocol.api_table import ALLOCATE_PRODUCER_IDS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

log = logging.getLogger("moldau.node")

Done = Callable[[int, int], None]

PATIENCE_MS: Final = 2000


class ProducerIds:
    """`next` responds at once while the block lasts; requests that come meanwhile wait for the new block."""

    def __init__(self, node_id: int, channel: ControllerChannel, lifecycle: BrokerLifecycle) -> None:
        self._node_id = node_id
        self._channel = channel
        self._lifecycle = lifecycle
        self._next = 0
        self._end = 0
        self._waiting: list[Done] = []
        self._asking = False

    def next(self, now_ms: int, done: Done) -> None:
        """Calls `done(producer_id, 0)`, or `done(-1, error)`."""
        if self._next < self._end:
            self._next += 1
            done(self._next - 1, 0)
            return
        self._waiting.append(done)
        if not self._asking:
            self._asking = True
            request = AllocateProducerIdsRequest(self._node_id, self._lifecycle.broker_epoch)
            self._channel.ask_until(now_ms + PATIENCE_MS, ALLOCATE_PRODUCER_IDS, request, self._on_block, now_ms)

    def _on_block(self, response: AllocateProducerIdsResponse | KafkaError, now_ms: int) -> None:
        self._asking = False
        waiting, self._waiting = self._waiting, []
        error = errors.NONE
        if not isinstance(response, KafkaError):
            self._next, self._end = response.producer_id_start, response.producer_id_start + response.producer_id_len
        else:
            # Clients ask again for this one; what stands between this broker and the controller means nothing to them.
            log.warning("cannot allocate producer ids, trying again with the next request: %s", response.message)
            error = errors.COORDINATOR_LOAD_IN_PROGRESS
        for done in waiting:
            if error != 0:
                done(-1, error)
            else:
                # A block is far larger than the number of requests that can wait for one.
                self.next(now_ms, done)
