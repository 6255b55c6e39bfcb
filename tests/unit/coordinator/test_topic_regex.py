"""Regular expressions that name topics: what they match, what is refused in which words, and that none takes long."""

from __future__ import annotations

import random
import re

import pytest

from moldau.coordinator.group.topic_regex import NODES_MAX, TopicRegex
from moldau.coordinator.group.topic_regex_syntax import LENGTH_MAX, InvalidRegex
from tests.pace import costs

NAMES = ["orders", "orders-1", "orders.eu", "payments", "A-B", "_x", "12", "a", "s", "k", "__consumer_offsets"]

# Expression and the names it matches: as re2j does, which Apache Kafka uses.
MATCHES = [
    ("orders", "orders"),
    ("order", ""),
    (".*", " ".join(NAMES)),
    ("orders.*", "orders orders-1 orders.eu"),
    ("orders[-.].+", "orders-1 orders.eu"),
    ("^orders$", "orders"),
    ("orders|payments", "orders payments"),
    ("(?:orders|payments)(-\\d)?", "orders orders-1 payments"),
    ("(?P<name>orders)", "orders"),
    ("(?<name>orders)", "orders"),
    ("(?i)ORDERS", "orders"),
    ("(?i:O)rders", "orders"),
    ("(?i)o(?-i)RDERS", ""),
    ("[[:alpha:]]+", "orders payments a s k"),
    ("[[:^alpha:]]+", "12"),
    ("[^a-z]+", "A-B 12"),
    ("\\w+", "orders payments _x 12 a s k __consumer_offsets"),
    ("\\pN+", "12"),
    ("\\p{Lu}-\\p{Lu}", "A-B"),
    ("\\p{Latin}+", "orders payments a s k"),
    ("\\p{^Latin}+", "12"),
    ("\\P{Greek}+", " ".join(NAMES)),
    ("\\x6frders", "orders"),
    ("\\x{6f}rders", "orders"),
    ("\\157rders", "orders"),
    ("\\Qorders.eu\\E", "orders.eu"),
    ("\\Qorders.eu", "orders.eu"),
    ("orders\\b.*", "orders orders-1 orders.eu"),
    ("orders\\B.*", ""),
    ("o{1}r{1,2}ders", "orders"),
    ("1{0}2{0}[12]{2}", "12"),
    ("o{,2}rders", ""),
    ("(?s).", "a s k"),
    ("(?i)[ſ]", "s"),
    ("(?i)\u212a", "k"),
    ("", ""),
    ("(a*)*", "a"),
    ("(|a)+", "a"),
]


@pytest.mark.parametrize(("text", "expected"), MATCHES, ids=[text for text, _ in MATCHES])
def test_what_is_matched(text: str, expected: str) -> None:
    """Always the whole name."""
    regex = TopicRegex(text)
    assert [name for name in NAMES if regex.matches(name)] == [name for name in NAMES if name in expected.split()]


INVALID = [
    ("(", "missing closing )"),
    (")", "regexp/syntax: internal error"),
    ("[a", "missing closing ]"),
    ("[]", "missing closing ]"),
    ("[z-a]", "invalid character class range"),
    ("[[:foo:]]", "invalid character class range"),
    ("[[:]", "invalid character class range"),
    ("\\p{Foo}", "invalid character class range"),
    ("*", "missing argument to repetition operator"),
    ("a|*", "missing argument to repetition operator"),
    ("a**", "invalid nested repetition operator"),
    ("a{2}{3}", "invalid nested repetition operator"),
    ("a{1001}", "invalid repeat count"),
    ("a{2,1}", "invalid repeat count"),
    ("a{99999999999}", "invalid repeat count"),
    ("\\1", "invalid escape sequence"),
    ("(a)\\1", "invalid escape sequence"),
    ("\\C", "invalid escape sequence"),
    ("\\x{110000}", "invalid escape sequence"),
    ("\\y", "invalid escape sequence"),
    ("a\\", "trailing backslash at end of expression"),
    ("(?=a)", "invalid or unsupported Perl syntax"),
    ("(?!a)", "invalid or unsupported Perl syntax"),
    ("(?<=a)", "invalid named capture"),
    ("(?x)a", "invalid or unsupported Perl syntax"),
    ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ("(?P<a-b>a)", "invalid named capture"),
]


@pytest.mark.parametrize(("text", "message"), INVALID, ids=[text for text, _ in INVALID])
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRegex) as raised:
        TopicRegex(text)
    assert str(raised.value) == message


HOSTILE = [
    "(a|a)*b",
    "(a*)*b",
    "(a|aa)+$b",
    "(.*)*(.*)*(.*)*x",
    "([a-z]+)*[0-9]",
    "(a?){500}a{500}",
    "(.?){300}x",
    "[ab]*a[ab]{200}",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_expressions_take_linear_time(text: str) -> None:
    """The work is bounded by the nodes of the automaton for each character; nothing is tried twice."""
    regex = TopicRegex(text)
    names = ["a" * 249, "ab" * 124, "a" * 248 + "!"]
    for name in names:
        regex.matches(name)
    nodes = len(regex._kinds)
    assert regex.work <= sum(len(name) + 1 for name in names) * (nodes + 1)


@pytest.mark.parametrize(
    "text",
    ["(a{1000}){1000}", "((((){1000}){1000}){1000}){1000}", "(" * 300 + "a" + ")" * 300, "a" * (LENGTH_MAX + 1)],
    ids=["nodes", "nothing", "depth", "length"],
)
def test_what_is_too_large_is_refused_at_once(text: str) -> None:
    """Long before it is as large as it says: the cost is that of a large one which is taken, or a few times that."""

    def refuse() -> None:
        with pytest.raises(InvalidRegex):
            TopicRegex(text)

    refused, taken = costs(refuse, lambda: TopicRegex("(a{100}){150}"), times=3)
    assert refused < 50 * taken


def test_a_long_list_of_topics_is_not_too_large() -> None:
    """As people write them who have no pattern."""
    names = [f"department-{number:03}.events" for number in range(700)]
    regex = TopicRegex("|".join(re.escape(name) for name in names))
    assert len(regex._kinds) < NODES_MAX
    assert all(regex.matches(name) for name in names)
    assert not regex.matches("department-700.events")


def test_random_expressions_match_as_another_engine_says() -> None:
    """Python's engine agrees on the syntax that both have."""
    dice = random.Random(5)
    atoms = [
        "a",
        "b",
        "1",
        ".",
        "\\.",
        "[ab]",
        "[^a]",
        "\\d",
        "\\w",
        "(?:a|b)",
        "(ab|a)",
        "(?:)",
        "(?:^)",
        "(?:$)",
        "(?:\\b)",
    ]
    names = ["".join(dice.choices("ab1._-", k=dice.randrange(6))) for _ in range(60)]
    for _ in range(400):
        text = "".join(
            dice.choice(atoms) + dice.choice(["", "", "*", "+", "?", "{0,2}", "|"]) for _ in range(dice.randint(1, 5))
        )
        regex, other = TopicRegex(text), re.compile(text, re.ASCII)
        for name in names:
            assert regex.matches(name) == (other.fullmatch(name) is not None), (text, name)
