"""`kafka-consumer-groups --validate-regex`: is this a regular expression that groups can subscribe with?"""

from __future__ import annotations

from moldau.coordinator.group.topic_regex_syntax import InvalidRegex, parse


def validate(pattern: str) -> str:
    """The sentence that the tool prints; the coordinator would say the same."""
    try:
        parse(pattern)
    except InvalidRegex as error:
        return f"The regular expression `{pattern}` is invalid: {error}."
    return f"The regular expression `{pattern}` is valid."
