"""The states of a transaction: which may follow which, and that nothing else is ever written."""

from __future__ import annotations

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.timers import Timers
from moldau.coordinator.txn.settings import TransactionSettings
from moldau.coordinator.txn.state import TransactionListener, TransactionShardState
from moldau.coordinator.txn.transaction import (
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ONGOING,
    PREDECESSORS,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Transaction,
)
from moldau.records.clocks import WallClock


def transaction(state: int, epoch: int = 3, producer_id: int = 1) -> Transaction:
    made = Transaction("t", producer_id, 60_000, 0)
    made.state = state
    made.epoch = epoch
    return made


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        (ONGOING, PREPARE_COMMIT, True),
        (EMPTY, PREPARE_COMMIT, False),
        (EMPTY, PREPARE_ABORT, True),
        (PREPARE_ABORT, COMPLETE_COMMIT, False),
        (PREPARE_COMMIT, ONGOING, False),
        (PREPARE_COMMIT, COMPLETE_COMMIT, True),
        (COMPLETE_COMMIT, EMPTY, True),
        (DEAD, EMPTY, True),
    ],
)
def test_what_may_follow(before: int, after: int, is_allowed: bool) -> None:
    """A state that only another release writes is no reason to stop."""
    assert transaction(after).may_follow(transaction(before)) == is_allowed


def test_the_epoch_of_a_producer_never_falls() -> None:
    assert not transaction(ONGOING, 2).may_follow(transaction(EMPTY, 3))
    assert transaction(ONGOING, 0, producer_id=2).may_follow(transaction(EMPTY, 3))


def test_every_state_that_is_written_is_in_the_table() -> None:
    assert set(PREDECESSORS) == {state for before in PREDECESSORS.values() for state in before}


def test_what_may_not_follow_is_not_written() -> None:
    values = {"process.roles": "broker", "node.id": "1", "controller.listener.names": "CONTROLLER"}
    values["controller.quorum.bootstrap.servers"] = "localhost:9093"
    settings = TransactionSettings(BrokerConfig(values, warn=False))
    state = TransactionShardState(0, Timers(), settings, TransactionListener(), WallClock())
    state.transactions["t"] = transaction(EMPTY)
    with pytest.raises(AssertionError, match=r"PrepareCommit.*follows.*Empty"):
        state.write(transaction(PREPARE_COMMIT), None)
    state.write(transaction(ONGOING), None)
