"""What a leader makes of its followers' fetches: when they had everything, who may join, what is committed."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.replication.in_sync import InSyncReplicas
from moldau.replication.leader import FetchClock, FollowerPosition, LeaderState, OtherBrokers
from moldau.replication.replica_selector import NO_PREFERENCE, select_in_rack

LAG_MS = 30_000
LATE_MS = 10 * LAG_MS


def leader(*isr: int) -> LeaderState:
    """Broker 1 leads, 2 and 3 follow."""
    state = LeaderState(1, InSyncReplicas(list(isr), 0))
    state.assign([1, 2, 3], 0)
    return state


def brokers(**epochs: int) -> OtherBrokers:
    known = OtherBrokers()
    known.active_epochs = {1: 11, 2: 12, 3: 13}
    known.alive = {1, 2, 3}
    known.lag_max_ms = LAG_MS
    return known


def follower(state: LeaderState, number: int) -> FollowerPosition:
    found = state.find(number)
    assert found is not None
    return found


# When a follower had everything


def test_a_follower_that_fetches_at_the_end_has_everything_now() -> None:
    position = FollowerPosition(2, 0)
    position.update(10, 0, 10, 12, 5000)
    assert position.last_caught_up_ms == 5000


def test_one_that_reached_the_end_of_its_last_fetch_had_everything_then() -> None:
    """Under a steady load a follower never fetches at the very end, and is in sync all the same."""
    position = FollowerPosition(2, 0)
    position.update(10, 0, 20, 12, 5000)
    assert position.last_caught_up_ms == 0
    position.update(20, 0, 30, 12, 6000)
    assert position.last_caught_up_ms == 5000
    position.update(25, 0, 40, 12, 7000)
    assert position.last_caught_up_ms == 5000


def test_without_new_records_nobody_lags_however_long_ago_it_fetched() -> None:
    position = FollowerPosition(2, 0)
    position.update(10, 0, 10, 12, 5000)
    assert position.is_caught_up(10, 10_000_000, LAG_MS)
    assert position.is_caught_up(11, 35_000, LAG_MS)
    assert not position.is_caught_up(11, 35_001, LAG_MS)


def test_an_earlier_life_is_refused_and_unknown_epochs_pass() -> None:
    position = FollowerPosition(2, 0)
    position.update(10, 0, 10, 12, 5000)
    with pytest.raises(KafkaError) as raised:
        position.check_broker_epoch(11)
    assert raised.value.code == errors.NOT_LEADER_OR_FOLLOWER
    position.check_broker_epoch(-1)
    position.check_broker_epoch(13)


# What is committed


def test_what_is_committed_is_what_the_whole_isr_has() -> None:
    state = leader(1, 2, 3)
    assert state.committed_end(10, 10, 0, brokers()) == -1, "nothing is known of the followers yet"
    follower(state, 2).update(7, 0, 10, 12, 0)
    follower(state, 3).update(4, 0, 10, 13, 0)
    assert state.committed_end(10, 10, 0, brokers()) == 4
    assert state.committed_end(10, 3, 0, brokers()) == 3, "the leader's own log counts as far as it is safe"


def test_who_is_not_in_sync_and_lags_does_not_count() -> None:
    state = leader(1, 2)
    follower(state, 2).update(7, 0, 10, 12, LAG_MS)
    follower(state, 3).update(4, 0, 10, 13, LAG_MS)
    assert state.committed_end(10, 10, LAG_MS + 1, brokers()) == 7


def test_who_keeps_up_and_may_join_counts_before_it_does() -> None:
    """Else the high watermark would run away from it under load, and it would never join."""
    state = leader(1, 2)
    follower(state, 2).update(10, 0, 10, 12, 1000)
    follower(state, 3).update(8, 0, 8, 13, 1000)
    known = brokers()
    assert state.committed_end(10, 10, 2000, known) == 8
    assert state.committed_end(10, 10, 1001 + LAG_MS, known) == 10
    known.active_epochs.pop(3)
    assert state.committed_end(10, 10, 2000, known) == 10, "whoever is fenced is not waited for"


def test_who_was_taken_out_of_the_isr_counts_again_when_it_keeps_up() -> None:
    """It was in sync a moment ago, but why the controller dropped it may be why it does not fetch any more."""
    state = leader(1, 2, 3)
    follower(state, 2).update(10, 0, 10, 12, 1000 + LATE_MS)
    follower(state, 3).update(8, 0, 8, 13, 1000 + LATE_MS)
    assert state.committed_end(10, 10, 1500 + LATE_MS, brokers()) == 8
    state.in_sync.commit([1, 2], 1)
    state.drop([1, 2, 3], 1500 + LATE_MS)
    assert state.committed_end(10, 10, 1500 + LATE_MS, brokers()) == 10
    follower(state, 3).update(8, 0, 12, 13, 1600 + LATE_MS)
    assert state.committed_end(12, 12, 1600 + LATE_MS, brokers()) == 10, "it may have begun anew, with an empty log"
    follower(state, 2).update(14, 0, 14, 12, 1700 + LATE_MS)
    follower(state, 3).update(12, 0, 14, 13, 1700 + LATE_MS)
    assert state.committed_end(14, 14, 1700 + LATE_MS, brokers()) == 12, "it keeps up and is about to join again"


def test_what_a_session_said_before_the_replica_was_dropped_does_not_make_it_caught_up() -> None:
    state = leader(1, 2, 3)
    follower(state, 2).update(10, 0, 10, 12, 1000 + LATE_MS)
    follower(state, 3).update(8, 0, 8, 13, 1000 + LATE_MS)
    state.in_sync.commit([1, 2], 1)
    state.drop([1, 2, 3], 1500 + LATE_MS)
    follower(state, 3).caught_up_at(1400 + LATE_MS)
    follower(state, 3).update(0, 0, 10, 13, 1600 + LATE_MS)
    assert state.committed_end(10, 10, 1600 + LATE_MS, brokers()) == 10


def test_who_stopped_fetching_a_partition_is_not_waited_for_unless_it_is_in_sync() -> None:
    state = leader(1, 2)
    follower(state, 2).update(10, 0, 10, 12, 1000)
    clock = FetchClock(1000)
    joining = follower(state, 3)
    joining.update(8, 0, 8, 13, 1000)
    joining.clock = clock
    assert state.committed_end(10, 10, 2000, brokers()) == 8
    joining.on_left(clock)
    assert state.committed_end(10, 10, 2000, brokers()) == 10
    state.in_sync.propose_adding(3)
    assert state.committed_end(10, 10, 2000, brokers()) == 8, "the controller was asked, and may elect it"


def test_replicas_being_added_and_removed_count_until_it_is_decided() -> None:
    state = leader(1, 2)
    follower(state, 2).update(10, 0, 10, 12, 0)
    follower(state, 3).update(6, 0, 10, 13, 0)
    late = 10 * LAG_MS
    state.in_sync.propose_adding(3)
    assert state.committed_end(10, 10, late, brokers()) == 6
    state.in_sync.withdraw()
    assert state.committed_end(10, 10, late, brokers()) == 10
    follower(state, 2).log_end_offset = 5
    state.in_sync.propose_removing([2])
    assert state.committed_end(10, 10, late, brokers()) == 5
    state.in_sync.commit([1], 1)
    assert state.committed_end(10, 10, late, brokers()) == 10


# Who may join


@pytest.mark.parametrize(
    ("end", "high_watermark", "epoch_start", "may"), [(5, 5, 5, True), (4, 5, 0, False), (5, 5, 6, False)]
)
def test_who_joins_has_what_is_committed_and_the_start_of_the_epoch(
    end: int, high_watermark: int, epoch_start: int, may: bool
) -> None:
    state = leader(1, 2)
    follower(state, 3).update(end, 0, 10, 13, 0)
    assert state.may_join(follower(state, 3), high_watermark, epoch_start, brokers()) is may


def test_who_is_fenced_leaving_or_another_process_does_not_join() -> None:
    state = leader(1, 2)
    third = follower(state, 3)
    third.update(5, 0, 5, 13, 0)
    known = brokers()
    assert state.may_join(third, 5, 0, known)
    known.active_epochs[3] = 14
    assert not state.may_join(third, 5, 0, known), "it has registered again since"
    third.broker_epoch = -1
    assert state.may_join(third, 5, 0, known), "an old follower does not say"
    known.active_epochs.pop(3)
    assert not state.may_join(third, 5, 0, known)


def test_who_was_not_heard_for_long_is_not_proposed_without_a_fetch() -> None:
    state = leader(1, 2)
    third = follower(state, 3)
    third.update(5, 0, 5, 13, 1000)
    later = 1001 + LAG_MS
    assert state.find_joinable(5, 0, later, brokers()) is None
    third.clock = FetchClock(later - 500)
    assert state.find_joinable(5, 0, later, brokers()) is third


def test_what_is_known_of_a_follower_survives_a_reassignment_that_keeps_it() -> None:
    state = leader(1, 2, 3)
    follower(state, 2).update(7, 0, 10, 12, 0)
    state.assign([1, 2, 4], 100)
    assert [(f.replica_id, f.log_end_offset) for f in state.followers] == [(2, 7), (4, -1)]
    assert state.lagging(10, 100, LAG_MS) == [3], "in sync, but no replica any more"


def test_the_low_watermark_waits_for_brokers_that_live() -> None:
    state = leader(1, 2, 3)
    for number, start in ((2, 3), (3, 1)):
        follower(state, number).update(9, start, 9, -1, 0)
    assert state.low_watermark(5, {1, 2, 3}) == 1
    assert state.low_watermark(5, {1, 2}) == 3
    assert state.low_watermark(2, {1}) == 2


# The ISR's own rules


def test_older_and_equal_partition_epochs_change_nothing() -> None:
    isr = InSyncReplicas([1, 2], 5)
    isr.propose_adding(3)
    assert not isr.commit([1], 4)
    assert not isr.commit([1, 2], 5)
    assert isr.is_changing and isr.maximal == [1, 2, 3] and isr.committed == [1, 2]
    assert isr.commit([1, 2, 3], 6)
    assert not isr.is_changing and isr.committed == isr.maximal == [1, 2, 3] and isr.expands_total == 1


# The nearest replica


def test_the_furthest_in_sync_replica_of_the_rack_is_chosen() -> None:
    state = leader(1, 2, 3)
    racks = {1: "a", 2: "b", 3: "b"}
    for number in (2, 3):
        follower(state, number).update(10, 2, 10, -1, 100)
    assert select_in_rack(state, "b", racks, "a", 5) == 3, "the larger id, all else equal"
    follower(state, 2).caught_up_at(200)
    assert select_in_rack(state, "b", racks, "a", 5) == 2
    follower(state, 3).log_end_offset = 11
    assert select_in_rack(state, "b", racks, "a", 5) == 3
    assert select_in_rack(state, "b", racks, "a", 1) == NO_PREFERENCE, "nobody there has it any more"
    assert select_in_rack(state, "b", racks, "b", 5) == NO_PREFERENCE, "the leader is there too"
    assert select_in_rack(state, "", racks, "a", 5) == NO_PREFERENCE
