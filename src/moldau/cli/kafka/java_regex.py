"""Regular expressions as users of Kafka's tools write them; what is wrong with one is said in Java's words."""

from __future__ import annotations

import re

from moldau.cli.kafka.options import JavaFailure


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern; JavaFailure where it is none."""
    try:
        return re.compile(pattern)
    except re.error as error:
        reason, index = _reason(error, pattern)
        sentence = f"{reason} near index {index}\n{pattern}"
        if index < len(pattern):
            sentence += "\n" + " " * index + "^"
        raise JavaFailure("java.util.regex.PatternSyntaxException", sentence) from None


def _reason(error: re.error, pattern: str) -> tuple[str, int]:
    """What Java says, and the place that it points to."""
    place = error.pos or 0
    if error.msg.startswith("missing )"):
        return "Unclosed group", len(pattern)
    if error.msg.startswith("unterminated character set"):
        return "Unclosed character class", len(pattern) - 1
    if error.msg.startswith("nothing to repeat"):
        return f"Dangling meta character '{pattern[place]}'", place
    if error.msg.startswith("unbalanced parenthesis"):
        return "Unmatched closing ')'", max(place - 1, 0)
    return error.msg[:1].upper() + error.msg[1:], place
