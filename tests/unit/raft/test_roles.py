"""The roles of a replica: which may follow which."""

from __future__ import annotations

import pytest

from moldau.raft.roles import (
    SUCCESSORS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    check_succession,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Unattached(3), Prospective(3)),
        (Prospective(3), Candidate(4)),
        (Candidate(4), Leader(4)),
        (Leader(4), Resigned(4)),
        (Leader(4), Follower(5)),
        (Resigned(4), Unattached(5)),
    ],
)
def test_what_may_follow(before: Role, after: Role) -> None:
    check_succession(before, after)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (Follower(3), Leader(3), "a follower replica would be leader"),
        (Unattached(3), Unattached(2), "epoch 3 would go back to 2"),
        (Leader(4), Unattached(4), "epoch 4 would lose its leader"),
        (Candidate(4), Leader(5), "5 is not the epoch of the votes"),
        (Resigned(4), Leader(4), "a resigned replica would be leader"),
    ],
)
def test_what_may_not(before: Role, after: Role, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        check_succession(before, after)


def test_every_role_is_in_the_table() -> None:
    assert set(SUCCESSORS) == {role.name for role in Role.__subclasses__()}
