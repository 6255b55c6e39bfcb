"""Rules make principals of distinguished names as Kafka's do, odd cases included."""

from __future__ import annotations

import pytest

from moldau.config.definitions import ConfigError
from moldau.security.principal_rules import parse_principal_rules

USER = "CN=Anna,OU=ServiceUsers,O=Org,C=DE"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", USER, USER),
        ("", USER, None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", USER, "Anna"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", USER, "anna"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", USER, "ANNA"),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/,DEFAULT", USER, USER),
        ("RULE:^CN=(.*?),OU=Others.*$/$1/", USER, None),
        # The whole name must match, not a part of it.
        ("RULE:CN=Anna/x/", USER, None),
        # Blanks and empty rules.
        (" , RULE:^CN=([^,]+),.*$/$1/ ,, DEFAULT ", USER, "Anna"),
        ("RULE:^CN=([^,]+),.*$/$1/\nDEFAULT", USER, "Anna"),
        # Commas, slashes and backslashes inside.
        (r"RULE:^CN=([^,]+),OU=(\w+),.*$/$1@$2/", USER, "Anna@ServiceUsers"),
        (r"RULE:^CN=a\/b,(.*)$/x\/$1/", "CN=a/b,O=c", "x/O=c"),
        (r"RULE:^CN=a\\b$/\\/", "CN=a\\b", "\\"),
        # A group that is not there is text; digits behind one that is there are text too.
        ("RULE:^CN=([^,]+),.*$/$2/", USER, "$2"),
        ("RULE:^CN=([^,]+),.*$/$12/", USER, "Anna2"),
        (r"RULE:^CN=([^,]+),.*$/\$1/", USER, "$1"),
        ("RULE:^CN=(?<name>[^,]+),.*$/${name}/", USER, "Anna"),
        # Every match is replaced, and behind the first one is an empty one.
        ("RULE:.*/x/", USER, "xx"),
        # What decides is that all of it matches; what is replaced is what is found first.
        ("RULE:CN=(.*?)/$1/", "CN=Anna", "Anna"),
        (r"RULE:^CN=(\p{Alpha}+),.*$/$1/", USER, "Anna"),
        # A replacement that cannot be made ends the search.
        ("RULE:^CN=([^,]+),.*$/$x/,DEFAULT", USER, None),
        ("RULE:^CN=.*$/$1/,DEFAULT", USER, None),
        ("RULE:^CN=([^,]+),.*$/$2.$3/,DEFAULT", USER, None),
    ],
)
def test_a_rule_makes_this_of_the_name(rules: str, name: str, mapped: str | None) -> None:
    assert parse_principal_rules(rules).principal_name(name) == mapped


@pytest.mark.parametrize("rules", ["default", "RULE:^CN=(.*)$", "RULE:a/b", "nonsense,DEFAULT", "RULE:(/x/"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        parse_principal_rules(rules)


def test_a_construct_that_would_mean_something_else_is_refused() -> None:
    with pytest.raises(ConfigError, match="classes within classes"):
        parse_principal_rules("RULE:^CN=([a-z&&[^x]]+).*$/$1/")


def test_case_is_changed_behind_the_first_rule_that_matches_only() -> None:
    rules = parse_principal_rules("RULE:^CN=(A.*?),.*$/$1/U,RULE:^CN=(.*?),.*$/$1/L")
    assert rules.principal_name("CN=Anna,O=x") == "ANNA"
    assert rules.principal_name("CN=Bert,O=x") == "bert"
