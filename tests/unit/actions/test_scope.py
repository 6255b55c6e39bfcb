"""Which topics and groups are there: patterns, the cluster's own topics, and what one hears of the others."""

from __future__ import annotations

import pytest

from moldau.actions.refusals import Refused
from moldau.actions.scope import EVERYTHING, Scope
from moldau.client.errors import ClientError, error_for
from moldau.client.results import TopicPartition
from moldau.protocol.errors import GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("patterns", "name", "there"),
    [
        (("*",), "orders", True),
        (("*",), "__consumer_offsets", False),
        (("*", "__*"), "__consumer_offsets", True),
        (("__consumer_offsets",), "__consumer_offsets", True),
        (("__*",), "orders", False),
        (("orders.*", "payments"), "orders.eu", True),
        (("orders.*", "payments"), "orders", False),
        (("orders.*", "payments"), "payments", True),
        (("orders.*", "payments"), "payments2", False),
        (("Orders",), "orders", False),
        (("order?",), "orders", True),
        (("[ab]*",), "beta", True),
        ((), "orders", False),
    ],
)
def test_patterns(patterns: tuple[str, ...], name: str, there: bool) -> None:
    assert Scope(patterns).has_topic(name) is there


def test_without_patterns_everything_is_there() -> None:
    assert EVERYTHING.has_topic("__consumer_offsets") and EVERYTHING.has_group("g") and EVERYTHING.has_all_topics
    assert Scope(("*",)).has_all_named_topics and not Scope(("*",)).has_all_topics
    assert not Scope(("a*",)).has_all_named_topics
    assert Scope(None, ("a*",)).has_group("ab") and not Scope(None, ("a*",)).has_group("b")


def test_what_is_not_there_looks_unknown() -> None:
    scope = Scope(("orders*",), ("billing",))
    scope.check_topic("orders")
    scope.check_group("billing")
    with pytest.raises(ClientError, match="There is no topic secret"):
        scope.check_topic("secret")
    with pytest.raises(ClientError, match="There is no group other"):
        scope.check_group("other")
    with pytest.raises(Refused, match="whose names match orders\\*; secret does not"):
        scope.check_new_topic("secret")


def test_places_of_groups_lose_what_is_not_there() -> None:
    failed = error_for(GROUP_AUTHORIZATION_FAILED)
    places = {"g": {TopicPartition("orders", 0): 1, TopicPartition("secret", 0): 2}, "h": failed}
    assert Scope(("orders",)).places_among(places) == {"g": {TopicPartition("orders", 0): 1}, "h": failed}
