"""`ssl.principal.mapping.rules`: turns the name in a certificate into the name of a principal.

Rules are tried in their order, and the first that matches the whole name decides. What a matching rule makes of the
name is what Java's `replaceAll` does: every match in the name is replaced, not only the one that covers all of it. A
replacement that cannot be made of a match ends the search, and there is no principal.
"""

from __future__ import annotations

import re
from typing import Final

from moldau.config.definitions import ConfigError
from moldau.config.java_patterns import compile_java_pattern

DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_ENDS: Final = ",\n"
_REFERENCE: Final = re.compile(r"\$([0-9]+)")


class Rule:
    """One of them; without a pattern it takes every name as it is."""

    def __init__(self, pattern: re.Pattern[str] | None = None, replacement: str = "", case: str = "") -> None:
        self._pattern = pattern
        self._replacement = replacement if pattern is None else escape_missing_groups(replacement, pattern.groups)
        self._case = case

    def apply(self, name: str) -> str | None:
        """None if it does not match; IndexError or ValueError if its replacement cannot be made."""
        if self._pattern is None:
            return name
        if self._pattern.fullmatch(name) is None:
            return None
        mapped = self._pattern.sub(self._expand, name)
        if self._case == "L":
            return mapped.lower()
        return mapped.upper() if self._case == "U" else mapped

    def _expand(self, match: re.Match[str]) -> str:
        """The replacement in Java's syntax: `$1`, `${name}`, and a backslash before what is meant as it is."""
        text, groups = self._replacement, match.re.groups
        made: list[str] = []
        at = 0
        while at < len(text):
            char = text[at]
            at += 1
            if char == "\\":
                made.append(text[at])
                at += 1
            elif char != "$":
                made.append(char)
            elif text[at : at + 1] == "{":
                end = text.index("}", at)
                made.append(match[text[at + 1 : end]] or "")
                at = end + 1
            else:
                at = self._expand_number(match, groups, at, made)
        return "".join(made)

    def _expand_number(self, match: re.Match[str], groups: int, at: int, made: list[str]) -> int:
        """As many digits as make a group that there is."""
        text = self._replacement
        if not (text[at : at + 1].isascii() and text[at : at + 1].isdigit()):
            raise ValueError("Illegal group reference")
        number = int(text[at])
        at += 1
        while at < len(text) and text[at] in "0123456789" and 10 * number + int(text[at]) <= groups:
            number = 10 * number + int(text[at])
            at += 1
        made.append(match[number] or "")
        return at


class PrincipalRules:
    """All rules of a listener."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules

    def principal_name(self, name: str) -> str | None:
        """What comes behind `User:`; None if no rule matches."""
        try:
            for rule in self._rules:
                mapped = rule.apply(name)
                if mapped is not None:
                    return mapped
        except (IndexError, ValueError):
            pass
        return None


def escape_missing_groups(replacement: str, groups: int) -> str:
    """A reference to a group that is not there is text, where the pattern has groups at all.

    As in Kafka this works for one such reference: the backslash of the next stands a place too early.
    """
    if groups == 0:
        return replacement
    escaped = replacement
    for found in _REFERENCE.finditer(replacement):
        number = int(found[1])
        while number > groups and number >= 10:
            number //= 10
        if number > groups and not found[1].startswith("0"):
            escaped = escaped[: found.start()] + "\\" + escaped[found.start() :]
    return escaped


def parse_principal_rules(text: str) -> PrincipalRules:
    """ConfigError with the rule that is none."""
    rules: list[Rule] = []
    at = 0
    while at < len(text):
        if text[at].isspace() or text[at] in _ENDS:
            at += 1
            continue
        found = _RULE.match(text, at)
        end = _end_of_rule(text, at if found is None else found.end())
        rule = text[at:end].strip()
        if found is not None:
            rules.append(Rule(_compile(found[1]), found[2], found[3]))
        elif rule == DEFAULT:
            rules.append(Rule())
        else:
            raise ConfigError(f"ssl.principal.mapping.rules: Invalid rule: {rule}")
        at = end + 1
    return PrincipalRules(rules)


def _end_of_rule(text: str, at: int) -> int:
    ends = [place for place in (text.find(end, at) for end in _ENDS) if place >= 0]
    return min(ends, default=len(text))


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return compile_java_pattern(pattern)
    except ConfigError as error:
        raise ConfigError(f"ssl.principal.mapping.rules: {error.message}") from None
