"""Patterns in Java's syntax match as they do there."""

from __future__ import annotations

import pytest

from moldau.config.definitions import ConfigError
from moldau.config.java_patterns import compile_java_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"\w+", "Ärger", False),
        (r"\d+", "٣", False),
        (r"\p{Upper}\p{Lower}+", "Anna", True),
        (r"[\p{Alnum}_]+", "a_1", True),
        (r"\P{Digit}+", "abc", True),
        (r"\Qa.b\E", "axb", False),
        (r"\Qa.b\E", "a.b", True),
        (r"a\h+b", "a \tb", True),
        (r".+", "a\rb", False),
        (r"(?<x>a)\k<x>", "aa", True),
        (r"a\z", "a", True),
        (r"(?<=a)b|ab", "ab", True),
        (r"[]a]+", "a]", True),
        (r"[^\]]+", "ab", True),
        (r"a++b", "aab", True),
    ],
)
def test_it_matches_like_this(pattern: str, text: str, matches: bool) -> None:
    assert (compile_java_pattern(pattern).fullmatch(text) is not None) == matches


@pytest.mark.parametrize("pattern", ["(", "a\\", "[a", r"\p{IsGreek}", "[a&&b]", r"\G", r"\k", "*"])
def test_what_is_none_or_not_served_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(ConfigError, match="the regular expression"):
        compile_java_pattern(pattern)
