"""Transactions on one node, through the requests of both transaction versions: all or nothing, and nobody else's."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from tests.unit.api.transaction_client import (
    Producer,
    end_offsets,
    group_offset,
    read,
    transactional_world,
)

BOTH = pytest.mark.parametrize("version", [1, 2])


@BOTH
def test_what_is_committed_is_read_and_not_before(version: int) -> None:
    world = transactional_world()
    producer = Producer(world, version=version)
    assert producer.init() == 0
    assert producer.produce(0, b"a", b"b") == 0
    assert producer.produce(1, b"c") == 0
    assert producer.write(0, b"d") == 0
    assert (read(world, 0), read(world, 1)) == ([], [])
    assert read(world, 0, committed=False) == [b"a", b"b", b"d"]
    assert end_offsets(world, 0) == (0, 3)
    producer.commit()
    assert (read(world, 0), read(world, 1)) == ([b"a", b"b", b"d"], [b"c"])
    assert end_offsets(world, 0) == (4, 4)
    assert producer.state == "CompleteCommit"
    assert producer.epoch == (0 if version < 2 else 1)


@BOTH
def test_what_is_aborted_is_never_read(version: int) -> None:
    world = transactional_world()
    producer = Producer(world, version=version)
    producer.init()
    producer.produce(0, b"kept")
    producer.commit()
    producer.produce(0, b"lost")
    producer.abort()
    producer.produce(0, b"kept, too")
    producer.commit()
    assert read(world, 0) == [b"kept", b"kept, too"]
    assert read(world, 0, committed=False) == [b"kept", b"lost", b"kept, too"]
    assert producer.state == "CompleteCommit"


@BOTH
def test_offsets_count_with_the_commit(version: int) -> None:
    world = transactional_world()
    producer = Producer(world, version=version)
    producer.init()
    assert producer.commit_offset("g", 7) == 0
    assert producer.produce(0, b"a") == 0
    assert group_offset(world, "g") == (errors.UNSTABLE_OFFSET_COMMIT, -1)
    assert group_offset(world, "g", stable=False) == (0, -1)
    producer.commit()
    assert group_offset(world, "g") == (0, 7)
    assert producer.commit_offset("g", 9) == 0
    producer.abort()
    assert group_offset(world, "g") == (0, 7)
