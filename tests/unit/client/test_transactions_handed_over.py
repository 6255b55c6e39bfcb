"""Transactions that somebody else ends: handed over with and without two-phase commit, and going on afterwards."""

from __future__ import annotations

import pytest

from moldau.client.errors import TransactionCallError
from moldau.client.produce.transaction_states import State
from moldau.client.results import PreparedTransaction
from tests.unit.client.test_transactions import FIRST, World


def test_without_two_phase_commit_only_a_hand_over_prepares() -> None:
    """prepare() is KIP-939's; until the timeout, a transaction can be left open everywhere."""
    world = World().ready().begun()
    world.manager.add_partitions([FIRST])
    with pytest.raises(TransactionCallError, match=r"two\.phase"):
        world.manager.prepare()
    assert world.manager.prepare(until_timeout=True) == PreparedTransaction(7, 0)
    assert world.manager.state is State.PREPARED
    assert world.idle()


def test_after_the_end_elsewhere_the_next_transaction_has_the_epoch_that_was_told() -> None:
    """No request is needed, and sequence numbers begin anew."""
    world = World().ready().begun()
    world.manager.add_partitions([FIRST])
    world.manager.prepare(until_timeout=True)
    incarnation = world.manager.incarnation
    world.manager.ended_elsewhere(PreparedTransaction(7, 1))
    assert world.manager.state is State.READY
    assert (world.manager.producer_id, world.manager.producer_epoch) == (7, 1)
    assert world.manager.incarnation == incarnation + 1
    world.begun()
    assert world.manager.is_new_partition(FIRST)
    assert world.idle()


def test_only_what_was_handed_over_can_have_ended_elsewhere() -> None:
    """Whoever still writes cannot be told that his transaction is over."""
    world = World().ready().begun()
    with pytest.raises(TransactionCallError):
        world.manager.ended_elsewhere(PreparedTransaction(7, 1))
