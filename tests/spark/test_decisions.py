"""The rules of the exactly-once sink, as functions of what is written down."""

from __future__ import annotations

import pytest

from moldau.client.results import PreparedTransaction
from moldau.spark.decisions import (
    IDLE_BATCHES_MAX,
    Lease,
    SinkError,
    SinkState,
    SinkTransaction,
    batch_of,
    complete,
    decide,
    is_decided,
    leftovers,
    transaction_name,
)

ONE = SinkTransaction("4.0-aa", 11, 3)
TWO = SinkTransaction("2.1-bb", 12, 7)


def test_a_state_is_read_as_it_was_written() -> None:
    """What one driver writes down is what the next one knows."""
    state = SinkState(4, False, (ONE, TWO), (Lease("1.0-cc", 13, 0, 3),))
    assert SinkState.from_bytes(state.to_bytes()) == state


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"version":1,"batch":"x"}'])
def test_something_else_in_the_decision_topic_is_refused(data: bytes) -> None:
    """A record that is no decision is not taken for one, nor for none."""
    with pytest.raises(SinkError, match="is no decision"):
        SinkState.from_bytes(data)


def test_a_newer_format_is_refused() -> None:
    """An older Moldau does not guess what a newer one has decided."""
    with pytest.raises(SinkError, match="newer version"):
        SinkState.from_bytes(b'{"version":2}')


def test_names_tell_their_batch() -> None:
    """The batch can be read from a name, and from nothing else."""
    assert batch_of(transaction_name(17, "9f2c", 3, "0a")) == 17
    assert batch_of("decider") is None
    assert batch_of("17") is None


def test_a_batch_is_written_until_it_is_decided() -> None:
    """Without a decision it is written, with one it is not, and behind a later one it is an error."""
    state = SinkState(4, False)
    assert not is_decided(None, 0)
    assert not is_decided(state, 5)
    assert is_decided(state, 4)
    with pytest.raises(SinkError, match="Batch 3 is to be written, but batch 4 was committed"):
        is_decided(state, 3)


def test_ids_are_leased_out_with_their_next_epochs() -> None:
    """After a decision is carried out its ids may be used again, where brokers told how."""
    done = complete(SinkState(4, False, (ONE, TWO)), {ONE.name: PreparedTransaction(11, 4), TWO.name: None})
    assert done.is_done
    assert done.transactions == ()
    assert done.leases == (Lease(ONE.name, 11, 4, 4),)


def test_idle_leases_stay_unless_they_are_used_open_or_old() -> None:
    """What a batch did not use is leased out again; what may be in use, or belongs to nobody, is not."""
    old = Lease("1.3-dd", 14, 0, 5 - IDLE_BATCHES_MAX - 1)
    leases = (Lease(ONE.name, 11, 3, 4), Lease("3.1-ee", 15, 2, 4), Lease("3.2-ff", 16, 2, 4), old)
    decided = decide(SinkState(4, True, (), leases), 5, [ONE], {ONE.name, "3.2-ff"})
    assert decided == SinkState(5, False, (ONE,), (Lease("3.1-ee", 15, 2, 4),))


def test_only_what_no_decision_can_name_is_left_over() -> None:
    """Open transactions of this batch or earlier ones are aborted, except for those that are decided or leased out."""
    decided = SinkState(4, False, (ONE,), (Lease("3.1-ee", 15, 2, 3),))
    open_names = {ONE.name, "3.1-ee", "4.0-gg", "2.5-hh", "5.0-ii", "decider"}
    assert leftovers(decided, open_names) == ["2.5-hh", "4.0-gg"]
