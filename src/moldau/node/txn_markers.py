"""Brings the markers of decided transactions to the leaders of all their partitions, until every partition has its own.

What this broker leads is written directly; to every other broker one WriteTxnMarkers is on its way at a time, with all
that has gathered. Then the coordinator writes down that the transaction is complete. Kafka:
TransactionMarkerChannelManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import ACTIVE
from moldau.coordinator.txn.end import complete
from moldau.coordinator.txn.machine import TransactionMachine
from moldau.coordinator.txn.transaction import PREPARE_COMMIT, TopicPartition, Transaction
from moldau.metadata.image import MetadataImage
from moldau.node.broker_channels import BrokerChannels
from moldau.node.marker_writer import Marker, MarkerWriter, Results
from moldau.node.outbox import CLOSED, NoResponse
from moldau.protocol import errors
from moldau.protocol.api_table import WRITE_TXN_MARKERS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.protocol.messages.write_txn_markers_response import WriteTxnMarkersResponse
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS

log = logging.getLogger("moldau.node")

RETRY_MS: Final = 100
REQUEST_VERSION: Final = 2

NOT_WANTED: Final = frozenset(
    {errors.INVALID_PRODUCER_EPOCH, errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, errors.UNSUPPORTED_VERSION}
)
"""The partition will never take this marker: a later epoch of the same producer has been there already."""


class Undelivered:
    """A decided transaction of which some partitions have no marker yet."""

    def __init__(self, index: int, transaction: Transaction) -> None:
        self.index = index
        self.transaction = transaction
        self.remaining: set[TopicPartition] = set(transaction.partitions)
        # Of those, the ones that no request is on its way for.
        self.unsent: set[TopicPartition] = set(transaction.partitions)
        self.cancelled = False


class Addressed:
    """The part of a transaction's markers that one broker gets."""

    def __init__(self, undelivered: Undelivered, partitions: list[TopicPartition]) -> None:
        self.undelivered = undelivered
        self.partitions = partitions


class Completion:
    """Writes that a transaction is complete, and tries again where that cannot be written."""

    def __init__(self, owner: TxnMarkers, undelivered: Undelivered, delivered_ms: int) -> None:
        self._owner = owner
        self._undelivered = undelivered
        self._delivered_ms = delivered_ms

    def decide(self, machine: CoordinatorMachine) -> Outcome:
        assert isinstance(machine, TransactionMachine)
        return complete(machine.state, self._undelivered.transaction, self._delivered_ms)

    def done(self, result: Message | KafkaError) -> None:
        if isinstance(result, KafkaError) and not self._undelivered.cancelled:
            self._owner.look_again(self._undelivered, self._delivered_ms)


class TxnMarkers:
    """See the module. `poll` sends; it is due at once when a transaction was decided."""

    def __init__(
        self,
        broker_id: int,
        runtime: CoordinatorRuntime,
        writer: MarkerWriter,
        channels: BrokerChannels,
        timeout_ms: int,
    ) -> None:
        self._broker_id = broker_id
        self._runtime = runtime
        self._writer = writer
        self._channels = channels
        self._timeout_ms = timeout_ms
        self._image = MetadataImage()
        self._undelivered: dict[int, dict[str, Undelivered]] = {}
        self._ready: list[Undelivered] = []
        self._later: list[Undelivered] = []
        self._later_ms = NEVER_MS
        self._queues: dict[int, list[Addressed]] = {}
        self._in_flight: dict[int, list[Addressed]] = {}
        self.on_deadline: Callable[[int], None] | None = None
        # Told the transactional id when the next transaction may begin.
        self.on_completed: Callable[[str, int], None] | None = None

    def begin(self, index: int, transaction: Transaction, now_ms: int) -> None:
        """The decision is committed."""
        undelivered = Undelivered(index, transaction)
        shard = self._undelivered.setdefault(index, {})
        known = shard.get(transaction.transactional_id)
        if known is not None:
            if known.transaction is transaction:
                return
            known.cancelled = True
        shard[transaction.transactional_id] = undelivered
        self._ready.append(undelivered)
        self._wake(now_ms)

    def forget(self, index: int) -> None:
        """Another broker, or the next load, finishes what this shard has decided."""
        for undelivered in self._undelivered.pop(index, {}).values():
            undelivered.cancelled = True

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """New leaders: who waited for one looks again."""
        self._image = image
        for broker_id in self._channels.drop_lost(image):
            in_flight = self._in_flight.get(broker_id)
            if in_flight is not None:
                self.on_remote(broker_id, in_flight, NoResponse(CLOSED), now_ms)
        if self._later:
            self._later_ms = now_ms
            self._wake(now_ms)

    def __len__(self) -> int:
        return sum(len(shard) for shard in self._undelivered.values())

    @property
    def without_destination(self) -> int:
        """Transactions of which a partition has no leader that can be reached, or whose leader refused the marker."""
        return len(self._later)

    def _wake(self, now_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(now_ms)

    def look_again(self, undelivered: Undelivered, now_ms: int) -> None:
        self._later.append(undelivered)
        if self._later_ms == NEVER_MS:
            self._later_ms = now_ms + RETRY_MS
            self._wake(self._later_ms)

    # Sending

    def poll(self, now_ms: int) -> int:
        if now_ms >= self._later_ms:
            self._ready += self._later
            self._later = []
            self._later_ms = NEVER_MS
        while self._ready:
            ready, self._ready = self._ready, []
            self._deliver(ready, now_ms)
        return self._later_ms

    def _deliver(self, ready: list[Undelivered], now_ms: int) -> None:
        local: list[Addressed] = []
        for undelivered in ready:
            if undelivered.cancelled:
                continue
            for broker_id, partitions in self._by_leader(undelivered, now_ms).items():
                addressed = Addressed(undelivered, partitions)
                if broker_id == self._broker_id:
                    local.append(addressed)
                else:
                    self._queues.setdefault(broker_id, []).append(addressed)
            if not undelivered.remaining:
                self._complete(undelivered, now_ms)
        if local:
            markers = [self._marker(one) for one in local]
            self._writer.write(markers, LocalResponse(self, local).done, now_ms)
        for broker_id in list(self._queues):
            self._send(broker_id, now_ms)

    def _by_leader(self, undelivered: Undelivered, now_ms: int) -> dict[int, list[TopicPartition]]:
        """Takes what can be sent out of `unsent`; partitions that no longer exist need no marker."""
        found: dict[int, list[TopicPartition]] = {}
        for place in sorted(undelivered.unsent):
            topic = self._image.topics_by_name.get(place[0])
            registration = None if topic is None else topic.partitions.get(place[1])
            if registration is None:
                undelivered.unsent.discard(place)
                undelivered.remaining.discard(place)
                continue
            leader = registration.leader
            if leader == self._broker_id or self._channels.find(leader, self._image) is not None:
                undelivered.unsent.discard(place)
                found.setdefault(leader, []).append(place)
        if undelivered.unsent:
            self.look_again(undelivered, now_ms)
        return found

    def _marker(self, addressed: Addressed) -> Marker:
        undelivered = addressed.undelivered
        transaction = undelivered.transaction
        shard = self._runtime.shards.get(undelivered.index)
        return Marker(
            transaction.producer_id,
            transaction.epoch,
            transaction.state == PREPARE_COMMIT,
            -1 if shard is None else shard.leader_epoch,
            transaction.client_version,
            addressed.partitions,
        )

    def _send(self, broker_id: int, now_ms: int) -> None:
        queue = [one for one in self._queues.get(broker_id, []) if not one.undelivered.cancelled]
        if broker_id in self._in_flight:
            return
        self._queues.pop(broker_id, None)
        if not queue:
            return
        channel = self._channels.find(broker_id, self._image)
        if channel is None:
            for one in queue:
                self._give_back(one.undelivered, one.partitions, now_ms)
            return
        self._in_flight[broker_id] = queue
        request = WriteTxnMarkersRequest([as_message(self._marker(one)) for one in queue])
        response = RemoteResponse(self, broker_id, queue)
        channel.send(WRITE_TXN_MARKERS, REQUEST_VERSION, request, self._timeout_ms, response.on_response)

    def on_remote(self, broker_id: int, queue: list[Addressed], response: Message | NoResponse, now_ms: int) -> None:
        self._in_flight.pop(broker_id, None)
        codes: dict[tuple[int, str, int], int] = {}
        if isinstance(response, WriteTxnMarkersResponse):
            for marker in response.markers:
                for topic in marker.topics:
                    for row in topic.partitions:
                        codes[(marker.producer_id, topic.name, row.partition_index)] = row.error_code
        for one in queue:
            producer_id = one.undelivered.transaction.producer_id
            results = {
                place: codes.get((producer_id, place[0], place[1]), errors.NETWORK_EXCEPTION)
                for place in one.partitions
            }
            self.take(one.undelivered, results, now_ms)
        self._send(broker_id, now_ms)

    # Responses

    def take(self, undelivered: Undelivered, results: dict[TopicPartition, int], now_ms: int) -> None:
        if undelivered.cancelled:
            return
        again: list[TopicPartition] = []
        for place, code in results.items():
            if code == errors.NONE or code in NOT_WANTED:
                if code != errors.NONE:
                    name = errors.error_name(code)
                    log.warning("cannot write a transaction marker to %s-%d: %s", place[0], place[1], name)
                undelivered.remaining.discard(place)
            elif code == errors.TRANSACTION_COORDINATOR_FENCED:
                self._drop(undelivered)
                return
            else:
                again.append(place)
        if again:
            self._give_back(undelivered, again, now_ms)
        elif not undelivered.remaining:
            self._complete(undelivered, now_ms)

    def _drop(self, undelivered: Undelivered) -> None:
        """There is a newer coordinator, which finishes this."""
        undelivered.cancelled = True
        self._undelivered.get(undelivered.index, {}).pop(undelivered.transaction.transactional_id, None)

    def _give_back(self, undelivered: Undelivered, partitions: list[TopicPartition], now_ms: int) -> None:
        undelivered.unsent.update(partitions)
        self.look_again(undelivered, now_ms)

    def _complete(self, undelivered: Undelivered, now_ms: int) -> None:
        shard = self._runtime.shards.get(undelivered.index)
        if shard is None or shard.state != ACTIVE:
            self._drop(undelivered)
            return
        completion = Completion(self, undelivered, now_ms)
        self._runtime.run(undelivered.index, completion.decide, completion.done, now_ms)
        machine = shard.machine
        assert isinstance(machine, TransactionMachine)
        transaction = undelivered.transaction
        if machine.state.transactions.get(transaction.transactional_id) is not transaction:
            self._drop(undelivered)  # written: nothing is left to do
            if self.on_completed is not None:
                self.on_completed(transaction.transactional_id, now_ms)

    def close(self) -> None:
        self._channels.close()


class LocalResponse:
    def __init__(self, owner: TxnMarkers, written: list[Addressed]) -> None:
        self._owner = owner
        self._written = written

    def done(self, results: Results, now_ms: int) -> None:
        for one, codes in zip(self._written, results, strict=True):
            self._owner.take(one.undelivered, codes, now_ms)


class RemoteResponse:
    def __init__(self, owner: TxnMarkers, broker_id: int, sent: list[Addressed]) -> None:
        self._owner = owner
        self._broker_id = broker_id
        self._sent = sent

    def on_response(self, response: Message | NoResponse, now_ms: int) -> None:
        self._owner.on_remote(self._broker_id, self._sent, response, now_ms)


def as_message(marker: Marker) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, index in marker.partitions:
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        marker.producer_id,
        marker.producer_epoch,
        marker.commit,
        [WritableTxnMarkerTopic(topic, indexes) for topic, indexes in topics.items()],
        marker.coordinator_epoch,
        marker.transaction_version,
    )
