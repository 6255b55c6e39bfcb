"""The quota of a client is that of the first of eight levels which has a value for the key."""

from __future__ import annotations

import pytest

from moldau.quota.entities import (
    CONSUMER_BYTE_RATE,
    LEVELS,
    PRODUCER_BYTE_RATE,
    UNLIMITED,
    Entity,
    QuotaTable,
    Tags,
)

KEY = PRODUCER_BYTE_RATE
USER, CLIENT = "alice", "app"

# Level by level: the entity, and who shares its budget.
ROWS: list[tuple[int, Entity, Tags]] = [
    (1, (("client-id", CLIENT), ("user", USER)), (USER, CLIENT)),
    (2, (("client-id", None), ("user", USER)), (USER, CLIENT)),
    (3, (("user", USER),), (USER, "")),
    (4, (("client-id", CLIENT), ("user", None)), (USER, CLIENT)),
    (5, (("client-id", None), ("user", None)), (USER, CLIENT)),
    (6, (("user", None),), (USER, "")),
    (7, (("client-id", CLIENT),), ("", CLIENT)),
    (8, (("client-id", None),), ("", CLIENT)),
]


def table_of(*levels: int, key: str = KEY) -> QuotaTable:
    """The value of a level is a thousand times its number."""
    return QuotaTable({entity: {key: level * 1000.0} for level, entity, _ in ROWS if level in levels})


@pytest.mark.parametrize(("level", "entity", "tags"), ROWS)
def test_the_highest_level_that_has_a_value_wins(level: int, entity: Entity, tags: Tags) -> None:
    for others in range(level, 9):
        match = table_of(*range(level, others + 1)).resolve(KEY, USER, CLIENT)
        assert (match.level, match.entity, match.bound) == (level, entity, level * 1000.0)
        assert match.tags == tags
        assert match.level in LEVELS


@pytest.mark.parametrize(("level", "entity", "tags"), ROWS)
def test_removing_a_level_gives_way_to_the_next(level: int, entity: Entity, tags: Tags) -> None:
    table = table_of(*range(1, 9))
    for removed, gone, _ in ROWS[: level - 1]:
        assert table.resolve(KEY, USER, CLIENT).level == removed
        table.change(gone, None)
    assert table.resolve(KEY, USER, CLIENT).level == level


def test_the_search_is_by_key() -> None:
    table = QuotaTable({(("user", USER),): {KEY: 1.0}, (("client-id", None),): {KEY: 2.0, CONSUMER_BYTE_RATE: 3.0}})
    assert table.resolve(KEY, USER, CLIENT).level == 3
    assert table.resolve(CONSUMER_BYTE_RATE, USER, CLIENT).level == 8


def test_entities_of_others_do_not_count() -> None:
    match = table_of(1, 3, 7).resolve(KEY, "bob", "other")
    assert (match.level, match.bound, match.entity, match.tags) == (0, UNLIMITED, (), ("", "other"))
    assert QuotaTable({(("ip", "10.0.0.1"),): {KEY: 1.0}}).keys[KEY].is_empty


@pytest.mark.parametrize(
    ("levels", "tags"),
    [((1,), ("bob", "other")), ((3,), ("bob", "")), ((7,), ("", "other")), ((), ("", "other"))],
)
def test_who_matches_nothing_is_counted_as_the_only_group_counts(levels: tuple[int, ...], tags: Tags) -> None:
    assert table_of(*levels).resolve(KEY, "bob", "other").tags == tags


@pytest.mark.parametrize("client_id", ["", None])
def test_an_empty_client_id_is_only_limited_by_its_user(client_id: str | None) -> None:
    assert table_of(*range(1, 9)).resolve(KEY, USER, client_id).level == 3
    assert table_of(2, 4, 5, 6, 8).resolve(KEY, USER, client_id).level == 6
    for levels in ((2,), (4, 5), (8,), (2, 5, 8)):
        assert table_of(*levels).resolve(KEY, USER, client_id).level == 0


def test_changes_one_by_one_come_to_the_same_as_all_at_once() -> None:
    table = QuotaTable()
    for level, entity, _ in ROWS:
        table.change(entity, {KEY: level * 1000.0})
    whole = table_of(*range(1, 9))
    for user in (USER, "bob"):
        for client_id in (CLIENT, "other"):
            one, other = table.resolve(KEY, user, client_id), whole.resolve(KEY, user, client_id)
            assert (one.level, one.tags, one.bound) == (other.level, other.tags, other.bound)
    generation = table.generation
    table.change(ROWS[0][1], {CONSUMER_BYTE_RATE: 1.0})
    assert table.generation > generation
    assert table.resolve(KEY, USER, CLIENT).level == 2, "a key that the entity has no more is gone"
