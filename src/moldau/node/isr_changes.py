"""Takes proposals for new in-sync replicas to the controller, many in one AlterPartition, one request at a time.

A proposal ends with the response to it, or with metadata that is newer. What the controller has not looked at is asked
again; what it refuses because it knows more stays pending until the metadata says what it knows. Kafka:
AlterPartitionManager, Partition.handleAlterPartitionError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from moldau.metadata.model import RECOVERED
from moldau.protocol import api_table, errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_partition_request as request_messages
from moldau.protocol.messages import alter_partition_response as response_messages
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS
from moldau.replication.leader import ANY_BROKER_EPOCH
from moldau.replication.partition import Partition, ReplicationContext

log = logging.getLogger("moldau.node")

RETRY_MS: Final = 50

REFUSED: Final = frozenset({errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED})
"""Nothing was changed, and the controller knows nothing newer: the proposal is over."""
BEHIND: Final = frozenset(
    {
        errors.FENCED_LEADER_EPOCH,
        errors.INVALID_REQUEST,
        errors.INVALID_UPDATE_VERSION,
        errors.NEW_LEADER_ELECTED,
        errors.UNKNOWN_TOPIC_ID,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The controller knows more than this broker: the metadata will tell."""


class Controller(Protocol):
    """What is needed of `ControllerChannel`."""

    def ask(self, api_key: int, request: Message, done: Callable[[Any, int], None], now_ms: int) -> None: ...


class Proposal:
    """What one partition asks for, and the epochs under which it does."""

    def __init__(self, partition: Partition, isr: list[int], broker_epochs: dict[int, int]) -> None:
        """`broker_epochs`: those that the followers had when it was proposed."""
        self.partition = partition
        self.broker_epochs = broker_epochs
        self.leader_epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        self.isr = isr
        self.is_shrinking = len(isr) < len(partition.in_sync_replicas)

    def is_current(self) -> bool:
        """Whether the partition still waits for this: no newer epoch ended it, nor did another response."""
        partition, state = self.partition, self.partition.leader_state
        return (
            state is not None
            and state.in_sync.is_changing
            and partition.leader_epoch == self.leader_epoch
            and partition.partition_epoch == self.partition_epoch
        )


class IsrChanges:
    """See the module. `poll` sends what the partitions proposed since the last request."""

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        controller: Controller,
        context: ReplicationContext,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._context = context
        self._unsent: list[Proposal] = []
        self._in_flight: dict[tuple[bytes, int], Proposal] = {}
        self._not_before_ms = 0
        self.requests_total = 0
        self.on_deadline: Callable[[int], None] | None = None
        context.on_proposal = self._on_proposal

    def _on_proposal(self, now_ms: int) -> None:
        """Sent with the next poll, together with what else comes in this turn."""
        if self.on_deadline is not None:
            self.on_deadline(now_ms)

    def check(self, partitions: list[Partition], now_ms: int) -> None:
        """Looks for followers that lag too far; called every half of `replica.lag.time.max.ms`."""
        for partition in partitions:
            partition.advance_high_watermark(now_ms)  # somebody may have lagged for so long that nobody waits any more
            if partition.leader_state is not None and not partition.maybe_shrink_in_sync_replicas(now_ms):
                partition.maybe_expand_in_sync_replicas(now_ms)

    def poll(self, now_ms: int) -> int:
        """Sends what there is to send; returns when it wants to be called again."""
        for partition in self._context.proposals:
            state = partition.leader_state
            if state is not None and state.in_sync.is_changing:
                self._unsent.append(Proposal(partition, state.in_sync.proposed, state.proposed_epochs))
        self._context.proposals.clear()
        if self._in_flight or not self._unsent:
            return NEVER_MS
        if now_ms < self._not_before_ms:
            return self._not_before_ms
        if self._broker_epoch() < 0:
            return now_ms + RETRY_MS
        self._send(now_ms)
        return NEVER_MS

    def _send(self, now_ms: int) -> None:
        own_epoch = self._broker_epoch()
        unsent, self._unsent = self._unsent, []
        topics: dict[bytes, request_messages.TopicData] = {}
        for proposal in unsent:
            partition = proposal.partition
            key = (partition.topic_id, partition.index)
            if not proposal.is_current() or key in self._in_flight:
                continue
            self._in_flight[key] = proposal
            data = request_messages.PartitionData(
                partition.index,
                proposal.leader_epoch,
                leader_recovery_state=RECOVERED,
                partition_epoch=proposal.partition_epoch,
            )
            for replica in proposal.isr:
                epoch = (
                    own_epoch if replica == self._broker_id else proposal.broker_epochs.get(replica, ANY_BROKER_EPOCH)
                )
                data.new_isr_with_epochs.append(request_messages.BrokerState(replica, epoch))
            topics.setdefault(partition.topic_id, request_messages.TopicData(partition.topic_id)).partitions.append(
                data
            )
        if not self._in_flight:
            return
        self.requests_total += 1
        request = request_messages.AlterPartitionRequest(self._broker_id, own_epoch, list(topics.values()))
        self._controller.ask(api_table.ALTER_PARTITION, request, self._on_response, now_ms)

    def _on_response(self, response: response_messages.AlterPartitionResponse | KafkaError, now_ms: int) -> None:
        in_flight, self._in_flight = self._in_flight, {}
        if isinstance(response, KafkaError):
            log.info("AlterPartition failed, trying again: %s", response.message)
        else:
            for topic in response.topics:
                for row in topic.partitions:
                    proposal = in_flight.pop((topic.topic_id, row.partition_index), None)
                    if proposal is not None and not self._take(proposal, row, now_ms):
                        in_flight[(topic.topic_id, row.partition_index)] = proposal
        if in_flight:
            # No response, or not one of the active controller: whether it was done is not known.
            self._unsent = [*in_flight.values(), *self._unsent]
            self._not_before_ms = now_ms + RETRY_MS
        if (self._unsent or self._context.proposals) and self.on_deadline is not None:
            self.on_deadline(max(now_ms, self._not_before_ms))

    def _take(self, proposal: Proposal, row: response_messages.PartitionData, now_ms: int) -> bool:
        """Whether the response settles the proposal, for now."""
        partition = proposal.partition
        code = row.error_code
        counts = self._context.counts
        if code == errors.NONE:
            if row.partition_epoch > proposal.partition_epoch:
                if proposal.is_shrinking:
                    counts.isr_shrinks += 1
                else:
                    counts.isr_expands += 1
            partition.on_proposal_accepted(
                proposal.partition_epoch, row.leader_epoch, row.partition_epoch, row.isr, now_ms
            )
            log.info(
                "ISR of %s-%d updated to %s, partition epoch %d",
                partition.topic,
                partition.index,
                row.isr,
                row.partition_epoch,
            )
            return True
        counts.failed_isr_updates += 1
        if code in REFUSED:
            # The next fetch of the same follower proposes it again: not at once, the metadata may be on its way.
            self._not_before_ms = now_ms + RETRY_MS
            partition.on_proposal_refused(proposal.leader_epoch, proposal.partition_epoch, now_ms)
        log.info(
            "cannot update the ISR of %s-%d to %s: %s",
            partition.topic,
            partition.index,
            proposal.isr,
            errors.error_name(code),
        )
        return code in REFUSED or code in BEHIND
