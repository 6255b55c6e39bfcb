"""The authorizer decides as the rules say, whatever the ACLs are and in whatever order they came and went."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.stored.metadata_records import AccessControlEntryRecord
from moldau.security import authorizer as authorizer_module
from moldau.security.authorizer import Authorizer, Decision, SessionRights, super_users_of
from moldau.security.rights import (
    ALL,
    ALLOW,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_NAME,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
)
from tests.unit.security.naive import Asked, Entry, is_allowed, is_allowed_somewhere

ANNA, BOB = "User:anna", "User:bob"
HERE, THERE = "10.0.0.1", "10.0.0.2"


def record(entry: Entry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(b"", *entry)


class World:
    """An authorizer and the entries that it has, by id."""

    def __init__(self, *entries: Entry, super_users: str = "", by_default: bool = False) -> None:
        self.authorizer = Authorizer(super_users_of(super_users), by_default)
        self.authorizer.complete_load()
        self.entries: dict[bytes, Entry] = {}
        self.count = 0
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> bytes:
        self.count += 1
        acl_id = self.count.to_bytes(16, "big")
        self.entries[acl_id] = entry
        self.authorizer.apply({acl_id: record(entry)})
        return acl_id

    def remove(self, acl_id: bytes) -> None:
        del self.entries[acl_id]
        self.authorizer.apply({acl_id: None})

    def decide(self, principal: str, operation: int, name: str) -> Decision:
        return SessionRights(self.authorizer, principal, HERE).decide(operation, TOPIC, name)

    def may(self, principal: str, operation: int, name: str, host: str = HERE, resource_type: int = TOPIC) -> bool:
        return SessionRights(self.authorizer, principal, host).decide(operation, resource_type, name).is_allowed


def allow(name: str, operation: int, principal: str = ANNA, pattern: int = LITERAL, host: str = "*") -> Entry:
    return Entry(TOPIC, name, pattern, principal, host, operation, ALLOW)


def deny(name: str, operation: int, principal: str = ANNA, pattern: int = LITERAL, host: str = "*") -> Entry:
    return Entry(TOPIC, name, pattern, principal, host, operation, DENY)


def test_what_nobody_allowed_is_forbidden() -> None:
    world = World(allow("orders", READ))
    assert world.may(ANNA, READ, "orders")
    assert not world.may(ANNA, WRITE, "orders")
    assert not world.may(ANNA, READ, "others")
    assert not world.may(BOB, READ, "orders")
    assert not world.may(ANNA, READ, "orders", resource_type=GROUP)


def test_literal_prefixed_and_wildcard_patterns() -> None:
    world = World(allow("a", READ), allow("pre", READ, pattern=PREFIXED), allow("*", WRITE))
    assert [name for name in ("a", "ab", "pre", "prefix", "pr", "xpre") if world.may(ANNA, READ, name)] == [
        "a",
        "pre",
        "prefix",
    ]
    assert world.may(ANNA, WRITE, "anything")


def test_a_prefixed_star_is_no_wildcard() -> None:
    world = World(allow("*", READ, pattern=PREFIXED))
    assert not world.may(ANNA, READ, "orders")
    assert world.may(ANNA, READ, "*orders")


def test_a_deny_goes_before_an_allow_wherever_it_stands() -> None:
    world = World(allow("orders", ALL), deny("ord", READ, pattern=PREFIXED), allow("*", ALL))
    assert not world.may(ANNA, READ, "orders")
    assert world.may(ANNA, WRITE, "orders")
    world.add(deny("*", WRITE, principal="User:*"))
    assert not world.may(ANNA, WRITE, "orders")


def test_implied_operations_are_implied_by_an_allow_alone() -> None:
    for operation in (READ, WRITE, DELETE, 7):
        assert World(allow("t", operation)).may(ANNA, DESCRIBE, "t")
        assert World(allow("t", ALL), deny("t", operation)).may(ANNA, DESCRIBE, "t")
    assert World(allow("t", ALTER_CONFIGS)).may(ANNA, DESCRIBE_CONFIGS, "t")
    assert not World(allow("t", DESCRIBE)).may(ANNA, READ, "t")
    assert not World(allow("t", WRITE)).may(ANNA, IDEMPOTENT_WRITE, CLUSTER_NAME, resource_type=CLUSTER)
    assert not World(allow("t", ALL), deny("t", ALL)).may(ANNA, DESCRIBE, "t")


def test_hosts_are_addresses_or_all() -> None:
    world = World(allow("t", READ, host=HERE), allow("u", READ), deny("u", READ, host=THERE))
    assert world.may(ANNA, READ, "t", HERE) and not world.may(ANNA, READ, "t", THERE)
    assert world.may(ANNA, READ, "u", HERE) and not world.may(ANNA, READ, "u", THERE)


def test_everybody_is_the_text_with_a_star_and_no_other() -> None:
    world = World(allow("t", READ, principal="User:*"), allow("u", READ, principal="Group:*"))
    assert world.may(BOB, READ, "t") and world.may("Robot:r2", READ, "t")
    assert not world.may("Group:admins", READ, "u")


def test_a_super_user_may_everything_and_is_named_exactly() -> None:
    world = World(deny("*", ALL, principal="User:*"), super_users=" User:CN=x,O=y ;User:root;")
    assert world.may("User:root", WRITE, "t") and world.may("User:CN=x,O=y", WRITE, "t")
    for other in ("User:roo", "User:root ", "root", "Group:root", ""):
        assert not world.may(other, WRITE, "t")


def test_without_any_acl_about_the_resource_the_setting_decides() -> None:
    world = World(by_default=True)
    assert world.may(ANNA, READ, "orders")
    acl_id = world.add(allow("ord", READ, principal=BOB, pattern=PREFIXED))
    assert not world.may(ANNA, READ, "orders"), "an ACL of somebody else is one about the resource"
    assert world.may(ANNA, READ, "other")
    world.remove(acl_id)
    assert world.may(ANNA, READ, "orders")


def test_removing_one_entry_leaves_the_others_of_the_resource() -> None:
    """CVE-2024-27309."""
    world = World(allow("t", READ), deny("t", WRITE), allow("t", WRITE, principal=BOB))
    first = world.add(allow("t", DELETE))
    for _ in range(2):
        assert world.may(ANNA, READ, "t") and not world.may(ANNA, WRITE, "t") and world.may(BOB, WRITE, "t")
        if first in world.entries:
            assert world.may(ANNA, DELETE, "t")
            world.remove(first)
    assert not world.may(ANNA, DELETE, "t")


def test_the_entry_that_decides_is_told() -> None:
    world = World(allow("orders", READ), super_users="User:root")
    assert world.decide("User:root", READ, "x").reason() == "SuperUser"
    assert world.decide(BOB, READ, "orders").reason() == "DefaultDeny"
    assert World(by_default=True).decide(BOB, READ, "x").reason() == "DefaultAllow"
    assert world.decide(ANNA, DESCRIBE, "orders").reason() == (
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, "
        "principal=User:anna, host=*, operation=READ, permissionType=ALLOW])"
    )


def test_until_the_acls_are_loaded_only_super_users_are_served() -> None:
    authorizer = Authorizer(frozenset({"User:root"}), True)
    assert SessionRights(authorizer, "User:root", HERE).decide(READ, TOPIC, "t").is_allowed
    anna = SessionRights(authorizer, ANNA, HERE)
    with pytest.raises(KafkaError) as failure:
        anna.decide(READ, TOPIC, "t")
    assert failure.value.code == errors.UNKNOWN_SERVER_ERROR
    with pytest.raises(KafkaError) as failure:
        anna.decide_for_any(READ, TOPIC)
    assert failure.value.code == errors.UNKNOWN_SERVER_ERROR
    authorizer.complete_load()
    assert anna.decide(READ, TOPIC, "t").is_allowed


# At random, beside the naive model

PRINCIPALS = (ANNA, BOB, "User:*", "Robot:anna", "User:root")
NAMES = ("a", "ab", "abc", "b", "*", "hard", "hardcode", "abd")
HOSTS = (HERE, THERE, "*")


def random_entry(rng: random.Random) -> Entry:
    return Entry(
        rng.choice((TOPIC, TOPIC, GROUP)),
        rng.choice(NAMES),
        rng.choice((LITERAL, PREFIXED)),
        rng.choice(PRINCIPALS),
        rng.choice(HOSTS),
        rng.choice((ALL, *range(3, 12))),
        rng.choice((DENY, ALLOW, ALLOW)),
    )


def random_question(rng: random.Random) -> Asked:
    return Asked(
        rng.choice(PRINCIPALS[:2] + PRINCIPALS[3:]),
        rng.choice(HOSTS[:2]),
        rng.choice(range(3, 13)),
        rng.choice((TOPIC, GROUP)),
        rng.choice((*NAMES, "x", "")),
    )


@pytest.mark.parametrize("seed", range(10))
def test_thousands_of_random_questions_are_decided_as_by_the_naive_model(seed: int) -> None:
    """Entries come and go between the questions; a connection's memory must not outlive them."""
    rng = random.Random(seed)
    by_default = seed % 2 == 0
    super_users = {"User:root"}
    world = World(super_users="User:root", by_default=by_default)
    sessions: dict[tuple[str, str], SessionRights] = {}
    answers = set()
    for _ in range(1500):
        if rng.random() < 0.3:
            if len(world.entries) > rng.randrange(1, 14):
                world.remove(rng.choice(list(world.entries)))
            else:
                world.add(random_entry(rng))
        asked = random_question(rng)
        entries = list(world.entries.values())
        expected = is_allowed(asked, entries, super_users, by_default)
        session = sessions.get(asked[:2])
        if session is None:
            session = sessions[asked[:2]] = SessionRights(world.authorizer, *asked[:2])
        decided = session.decide(asked.operation, asked.resource_type, asked.name)
        assert decided.is_allowed == expected, (asked, entries)
        anywhere = session.decide_for_any(asked.operation, asked.resource_type)
        assert anywhere.is_allowed == is_allowed_somewhere(asked, entries, super_users, by_default), (asked, entries)
        answers.add((decided.is_allowed, anywhere.is_allowed, decided.rule))
    assert len(answers) >= 6, "the questions were too easy"
    assert world.authorizer.acl_count == len(world.entries)


def test_what_all_entries_leave_behind_is_nothing() -> None:
    rng = random.Random(7)
    world = World(by_default=True)
    for _ in range(300):
        world.add(random_entry(rng))
    for acl_id in list(world.entries):
        world.remove(acl_id)
    assert world.authorizer.acl_count == 0
    for left in world.authorizer.types:
        patterns = left.patterns
        assert patterns is not None and not left.allows and not left.denies
        assert not patterns._literal and not patterns._prefixed and not patterns._lengths.ascending


def test_an_entry_is_for_the_pair_of_principal_and_host_that_it_names() -> None:
    """However the two are written, they are not taken for another pair."""
    odd = [("User:a b", "c"), ("User:a", "b c"), ("User:a c", "b"), ("b User:a", "c"), ("User:a", "1 c User:a")]
    for principal, host in odd:
        world = World(allow("t", READ, principal=principal, host=host))
        assert [pair for pair in odd if world.may(pair[0], READ, "t", pair[1])] == [(principal, host)]


# What it costs


class Counted(dict[str, Any]):
    """Counts what is asked of it."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.asked += 1
        return super().get(key, default)


@pytest.mark.skipif(
    not authorizer_module.__file__.endswith(".py"), reason="compiled code has no dictionaries but its own"
)
@pytest.mark.parametrize("others", [0, 10, 5000])
def test_a_decision_costs_what_the_entries_of_who_asks_cost(others: int) -> None:
    """However many ACLs others have of the same patterns, and however many prefixes."""
    world = World(allow("orders", READ), deny("*", WRITE))
    for number in range(others):
        world.add(allow("*", READ, principal=f"User:{number}"))
        world.add(allow("orders", READ, principal=f"User:{number}", pattern=PREFIXED))
        world.add(deny("o" * (number % 200), READ, principal=f"User:{number}", pattern=PREFIXED))
    session = SessionRights(world.authorizer, ANNA, HERE)
    assert session.decide(READ, TOPIC, "orders").is_allowed
    for entries in [*world.authorizer.types[TOPIC].allows.values(), *world.authorizer.types[TOPIC].denies.values()]:
        entries.literal, entries.prefixed = Counted(entries.literal), Counted(entries.prefixed)
    Counted.asked = 0
    assert session.decide(READ, TOPIC, "orders").is_allowed
    assert not session.decide(DELETE, TOPIC, "orders").is_allowed
    assert Counted.asked == 7


def test_what_one_change_touches_is_the_place_of_its_entry() -> None:
    world = World()
    for number in range(1000):
        world.add(allow(f"t{number % 100}", READ, principal=f"User:{number}", pattern=LITERAL + number % 2))
    topics = world.authorizer.types[TOPIC]
    before = {key: (entries, dict(entries.literal)) for key, entries in topics.allows.items()}
    acl_id = world.add(allow("t7", WRITE, principal="User:7"))
    changed = [key for key, (entries, literal) in before.items() if entries.literal != literal]
    assert changed == ["1 * User:7"] and len(topics.allows) == 1000
    assert all(topics.allows[key] is entries for key, (entries, _) in before.items())
    world.remove(acl_id)
    assert {key: (entries, entries.literal) for key, entries in topics.allows.items()} == before


# What a connection remembers


def test_a_connection_is_asked_about_again_when_an_acl_changed() -> None:
    world = World(allow("t", READ))
    session = SessionRights(world.authorizer, ANNA, HERE)
    for _ in range(2):
        assert session.decide(READ, TOPIC, "t").is_allowed and session.decide_for_any(READ, TOPIC).is_allowed
        assert not session.decide_for_any(WRITE, TOPIC).is_allowed
    (acl_id,) = world.entries
    world.add(allow("t", WRITE))
    world.remove(acl_id)
    assert not session.decide(READ, TOPIC, "t").is_allowed and not session.decide_for_any(READ, TOPIC).is_allowed
    assert session.decide_for_any(WRITE, TOPIC).is_allowed


def test_what_a_connection_remembers_is_bounded() -> None:
    """Its own entries are looked through once for each operation and type; no names are kept."""
    world = World(allow("*", ALL))
    session = SessionRights(world.authorizer, ANNA, HERE)
    for number in range(1000):
        assert session.decide(READ, TOPIC, f"t{number}").is_allowed
        assert not session.decide(READ, GROUP, f"g{number}").is_allowed
        for resource_type in (TOPIC, GROUP):
            assert session.decide_for_any(READ, resource_type) is session.decide_for_any(READ, resource_type)
    assert len(session._for_any) == 2
    assert [found is not None for found in session._found].count(True) == 2
