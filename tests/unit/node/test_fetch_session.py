"""Sessions are bounded, evicted oldest first, and give every partition its turn."""

from moldau.node.fetch_session import EVICTION_MS_MIN, FetchedPartition, FetchSessionCache, session_key
from moldau.protocol.uuids import ZERO_UUID


def test_there_are_never_more_sessions_than_slots() -> None:
    cache = FetchSessionCache(2)
    assert cache.maybe_create(1, False, False, 0) is not None
    assert cache.maybe_create(2, False, False, 0) is not None
    assert cache.maybe_create(3, False, False, 1000) is None
    assert len(cache) == 2


def test_a_session_unused_for_two_minutes_makes_room() -> None:
    cache = FetchSessionCache(2)
    first = cache.maybe_create(1, False, False, 0)
    cache.maybe_create(2, False, False, 0)
    assert first is not None
    cache.touch(first, EVICTION_MS_MIN)
    assert cache.maybe_create(3, False, False, EVICTION_MS_MIN + 1) is not None
    assert cache.get(1) is first
    assert cache.get(2) is None


def test_a_follower_takes_the_place_of_a_consumer() -> None:
    cache = FetchSessionCache(1)
    cache.maybe_create(1, False, False, 0)
    assert cache.maybe_create(2, True, True, 1) is not None
    assert cache.get(1) is None


def test_the_epoch_wraps_to_one() -> None:
    session = FetchSessionCache(1).maybe_create(1, False, False, 0)
    assert session is not None
    session.epoch = 2147483647
    session.bump_epoch()
    assert session.epoch == 1


def test_a_partition_that_had_its_turn_goes_to_the_end() -> None:
    session = FetchSessionCache(1).maybe_create(1, False, False, 0)
    assert session is not None
    partitions = [FetchedPartition("t", ZERO_UUID, index) for index in range(3)]
    for partition in partitions:
        session.partitions[session_key(partition)] = partition
    session.move_to_end(partitions[0])
    assert [partition.index for partition in session.partitions.values()] == [1, 2, 0]
