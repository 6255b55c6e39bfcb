"""Bugs that transactions could have, each planted on its own: what the simulator is for is to find them.

Every one is a line or two that somebody might write, or leave out. They replace methods of interpreted classes, so
they cannot be planted into a compiled build.
"""

from __future__ import annotations

from typing import Any

import pytest

from moldau.api.transactional_produce import HeldAppend
from moldau.coordinator.group.offset_table import OffsetTable
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.shard import Shard, pass_on
from moldau.coordinator.txn import aging, end, init_producer, partitions
from moldau.coordinator.txn.machine import TransactionMachine
from moldau.coordinator.txn.transaction import ONGOING, Transaction
from moldau.node import txn_verification
from moldau.node.txn_markers import TxnMarkers, Undelivered
from moldau.node.txn_verification import TxnVerification
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.storage.log import Log
from moldau.storage.producer_state import ProducerEntry, ProducerState
from tests.sim.worlds import Plant


def late_produce_is_not_verified(patch: pytest.MonkeyPatch) -> None:
    """A leader appends the first write of a transaction whatever the coordinator says."""
    patch.setattr(HeldAppend, "check_verified", lambda self: None)


def late_produce_joins_the_next_transaction(patch: pytest.MonkeyPatch) -> None:
    """Neither the coordinator's word nor the producer's epoch is looked at when a record comes."""

    def check_data(self: ProducerEntry, header: Any, check_sequence: bool) -> None:
        if header.producer_epoch >= self.epoch and check_sequence:
            self.check_sequence(header)

    patch.setattr(HeldAppend, "check_verified", lambda self: None)
    patch.setattr(ProducerEntry, "check_data", check_data)


def later_write_is_judged_first(patch: pytest.MonkeyPatch) -> None:
    """A write does not wait for the verification of the one that it follows."""

    def ask(self: TxnVerification, question: txn_verification.Question, now_ms: int) -> None:
        question.give_up_ms = now_ms + self._backoff_max_ms
        for topic, index in question.partitions:
            self._last[(topic, index, question.producer_id)] = question
        self._ask(question, now_ms)

    def finish(self: TxnVerification, question: txn_verification.Question, codes: Any, now_ms: int) -> None:
        for topic, index in question.partitions:
            self._last.pop((topic, index, question.producer_id), None)
        question.done(codes, now_ms)

    patch.setattr(TxnVerification, "ask", ask)
    patch.setattr(TxnVerification, "_finish", finish)


def late_write_counts_as_one_that_waits(patch: pytest.MonkeyPatch) -> None:
    """Nothing is written before the lowest sequence that was ever verified in a transaction, and be it an old one."""
    original = ProducerState.check_guard

    def check_guard(self: ProducerState, guard: Any, producer_id: int, sequence: int, starts_at_zero: bool) -> None:
        original(self, guard, producer_id, sequence, starts_at_zero)
        entry = self.entries.get(producer_id)
        if entry is not None and entry.transaction_first_offset < 0 and sequence > guard.lowest_sequence:
            raise KafkaError(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)

    patch.setattr(ProducerState, "check_guard", check_guard)


def marker_is_lost(patch: pytest.MonkeyPatch) -> None:
    """A marker that a leader did not write is not sent again."""
    original = TxnMarkers.take

    def take(self: TxnMarkers, undelivered: Undelivered, results: dict[Any, int], now_ms: int) -> None:
        original(self, undelivered, dict.fromkeys(results, errors.NONE), now_ms)

    patch.setattr(TxnMarkers, "take", take)


def markers_are_forgotten_at_failover(patch: pytest.MonkeyPatch) -> None:
    """A new coordinator does not finish what its predecessor has decided."""

    def on_loaded(self: TransactionMachine, image: Any, now_ms: int) -> list[Any]:
        self._aging.start(now_ms)
        return []

    patch.setattr(TransactionMachine, "on_loaded", on_loaded)


def offsets_count_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Offsets of a transaction are visible at once."""

    def put_pending(
        self: OffsetTable, producer_id: int, group_id: str, topic: str, partition: int, committed: Any
    ) -> None:
        self.put(group_id, topic, partition, committed)

    patch.setattr(OffsetTable, "put_pending", put_pending)


def last_stable_offset_is_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records read on past an open transaction."""
    patch.setattr(Log, "last_stable_offset", lambda self, high_watermark: high_watermark)


def last_stable_offset_counts_markers_that_are_not_replicated(patch: pytest.MonkeyPatch) -> None:
    """A marker counts as soon as the leader has it."""
    original = ProducerState.on_high_watermark
    patch.setattr(ProducerState, "on_high_watermark", lambda self, high_watermark: original(self, 1 << 62))


def aborted_transactions_are_not_told(patch: pytest.MonkeyPatch) -> None:
    """A fetch does not say which of its records were aborted."""
    patch.setattr(Log, "collect_aborted", lambda self, *asked: [])


def coordinator_answers_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """A coordinator answers when it has appended, before the other replicas have it."""

    def release_or_wait(self: Shard, outcome: Any, done: Any, deadline_ms: int, now_ms: int) -> None:
        pass_on(outcome, done, None, now_ms)

    patch.setattr(Shard, "_release_or_wait", release_or_wait)


def marker_of_an_old_coordinator_is_taken(patch: pytest.MonkeyPatch) -> None:
    """The epoch of the coordinator in a marker is not looked at."""

    def check_marker(self: ProducerEntry, header: Any, marker: Any, transaction_version: int) -> None:
        marker.coordinator_epoch = max(marker.coordinator_epoch, self.coordinator_epoch)
        original(self, header, marker, transaction_version)

    original = ProducerEntry.check_marker
    patch.setattr(ProducerEntry, "check_marker", check_marker)


def zombie_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    """The coordinator does not compare epochs when a partition joins or a transaction ends."""

    def check_producer(known: Transaction, producer_id: int, producer_epoch: int) -> None:
        if known.is_preparing:
            raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
        if known.producer_id != producer_id:
            raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)

    patch.setattr(partitions, "check_producer", check_producer)


def successor_gets_the_same_epoch(patch: pytest.MonkeyPatch) -> None:
    """InitProducerId does not raise the epoch."""
    patch.setattr(init_producer, "next_epochs", lambda known, request: (max(0, known.epoch), max(0, known.epoch)))


def late_end_ends_the_next_transaction(patch: pytest.MonkeyPatch) -> None:
    """EndTxn of an older epoch ends whatever is open."""
    original = end.end_second_version

    def end_second_version(state: Any, known: Transaction, request: Any, new_producer_id: int, now_ms: int) -> Any:
        if known.state == ONGOING and request.producer_id == known.producer_id:
            request.producer_epoch = known.epoch
        return original(state, known, request, new_producer_id, now_ms)

    patch.setattr(end, "end_second_version", end_second_version)


def epoch_is_not_raised_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """Transactions of version 2 keep their epoch, as those of version 1 do."""
    original = end.decided

    def decided(known: Transaction, commit: bool, version: int, now_ms: int) -> Transaction:
        following = original(known, commit, version, now_ms)
        following.epoch = known.epoch
        following.client_version = min(version, 1)
        return following

    patch.setattr(end, "decided", decided)


def nothing_times_out(patch: pytest.MonkeyPatch) -> None:
    """A transaction whose producer is gone stays open."""
    patch.setattr(aging, "is_late", lambda transaction, now_ms: False)


def timeout_does_not_raise_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """A producer whose transaction was aborted for its age goes on as if nothing had happened."""
    original = end.fence_and_abort

    def fence_and_abort(state: Any, known: Transaction, response: Any, now_ms: int) -> Any:
        before = known.epoch
        known.epoch = before - 1
        try:
            return original(state, known, response, now_ms)
        finally:
            known.epoch = before

    patch.setattr(aging, "fence_and_abort", fence_and_abort)


def partition_is_not_noted(patch: pytest.MonkeyPatch) -> None:
    """The coordinator answers that a partition joined, and writes it down only with the first one."""
    original = partitions.add_partitions

    def add_partitions(state: Any, transactional_id: str, **arguments: Any) -> Any:
        known = state.find(transactional_id)
        if known.state == ONGOING:
            partitions.check_producer(known, arguments["producer_id"], arguments["producer_epoch"])
            return Outcome(response=arguments["response"])
        return original(state, transactional_id, **arguments)

    patch.setattr(partitions, "add_partitions", add_partitions)
    patch.setattr(txn_verification, "add_partitions", add_partitions)


PLANTED: list[tuple[Plant, int]] = [
    (late_produce_is_not_verified, 0),
    (late_produce_joins_the_next_transaction, 0),
    (marker_is_lost, 1),
    (markers_are_forgotten_at_failover, 0),
    (offsets_count_before_the_commit, 0),
    (last_stable_offset_is_the_high_watermark, 0),
    (last_stable_offset_counts_markers_that_are_not_replicated, 0),
    (aborted_transactions_are_not_told, 0),
    (coordinator_answers_before_the_commit, 0),
    (zombie_is_not_fenced, 0),
    (successor_gets_the_same_epoch, 0),
    (late_end_ends_the_next_transaction, 0),
    (epoch_is_not_raised_at_the_end, 0),
    (nothing_times_out, 0),
    (timeout_does_not_raise_the_epoch, 0),
    (partition_is_not_noted, 0),
]
"""Each with a seed that shows it; where somebody changes what seeds mean, another one does."""

HASTY: list[tuple[Plant, int]] = [
    (later_write_is_judged_first, 1),
    (late_write_counts_as_one_that_waits, 6),
]
"""These show where requests of one producer do not wait for each other."""

RARE: list[tuple[Plant, int]] = [
    (marker_of_an_old_coordinator_is_taken, 14),
]
"""These need a marker that comes again at just the right moment: they are looked for in long runs only."""
