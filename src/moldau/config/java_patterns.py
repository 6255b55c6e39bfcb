"""Regular expressions as Java reads them, for Python's `re`: the same matches, or a sentence about what is not served.

Java's classes are ASCII unless asked otherwise, and some constructs have another spelling. What Python has not (classes
that are intersected or nested) is refused rather than read as something else.
"""

from __future__ import annotations

import re
from typing import Final

from moldau.config.definitions import ConfigError

# Contents of a class in brackets, for \p{…} and its kind.
_PROPERTIES: Final = {
    "Alnum": "a-zA-Z0-9",
    "Alpha": "a-zA-Z",
    "ASCII": "\\x00-\\x7f",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "Digit": "0-9",
    "Graph": "!-~",
    "Lower": "a-z",
    "Print": " -~",
    "Punct": "!-/:-@\\[-`{-~",
    "Space": " \\t\\n\\x0b\\f\\r",
    "Upper": "A-Z",
    "XDigit": "0-9a-fA-F",
}
# Besides, contents of a class for escapes that Python has not.
_CLASSES: Final = {
    "h": " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000",
    "v": "\\n\\x0b\\f\\r\\x85\\u2028\\u2029",
}
_SAME: Final = frozenset("dDwWsSbBAnrtfaxu0123456789")
_CONTROLS: Final = {"e": "\\x1b", "z": "\\Z", "Z": "(?=\\n?\\Z)", "R": "(?:\\r\\n|[\\n\\x0b\\f\\r\\x85\\u2028\\u2029])"}
_LINE_ENDS: Final = "\\n\\r\\x85\\u2028\\u2029"


def compile_java_pattern(pattern: str) -> re.Pattern[str]:
    """ConfigError with a sentence where it is no pattern, or none that is served here."""
    try:
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"the regular expression {pattern} cannot be read: {error}") from None


class _Translation:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []

    def text(self) -> str:
        pattern = self._pattern
        while self._at < len(pattern):
            char = pattern[self._at]
            if char == "\\":
                self._out.append(self._escape(in_class=False))
            elif char == "[":
                self._class()
            elif pattern.startswith("(?<", self._at) and pattern[self._at + 3 : self._at + 4] not in ("=", "!"):
                self._out.append("(?P<")
                self._at += 3
            elif char == ".":
                self._out.append(f"[^{_LINE_ENDS}]")
                self._at += 1
            else:
                self._out.append(char)
                self._at += 1
        return "".join(self._out)

    def _refuse(self, what: str) -> ConfigError:
        return ConfigError(f"the regular expression {self._pattern} has {what}, which this broker does not serve")

    def _escape(self, in_class: bool) -> str:
        """What stands at a backslash, and behind it."""
        pattern, start = self._pattern, self._at
        if start + 1 >= len(pattern):
            raise ConfigError(f"the regular expression {pattern} ends with a backslash")
        char = pattern[start + 1]
        self._at += 2
        if char in "pP":
            return self._property(char == "P", in_class)
        if char in "hHvV":
            negated = char.isupper()
            if in_class and negated:
                raise self._refuse(f"\\{char} in a class")
            inner = _CLASSES[char.lower()]
            return inner if in_class else f"[{'^' if negated else ''}{inner}]"
        if char == "Q":
            end = pattern.find("\\E", self._at)
            quoted = pattern[self._at :] if end < 0 else pattern[self._at : end]
            self._at = len(pattern) if end < 0 else end + 2
            return re.escape(quoted)
        if char == "k":
            found = re.compile(r"<(\w+)>").match(pattern, self._at)
            if found is None:
                raise self._refuse("\\k without a name")
            self._at = found.end()
            return f"(?P={found[1]})"
        if char in _CONTROLS and not (in_class and char != "e"):
            return _CONTROLS[char]
        if char in _SAME or not char.isalnum():
            return "\\" + char if char.isascii() else char
        raise self._refuse(f"\\{char}")

    def _property(self, negated: bool, in_class: bool) -> str:
        found = re.compile(r"\{(?:Is)?(\w+)\}").match(self._pattern, self._at)
        inner = None if found is None else _PROPERTIES.get(found[1])
        if found is None or inner is None or (negated and in_class):
            raise self._refuse("\\p of a property")
        self._at = found.end()
        return inner if in_class else f"[{'^' if negated else ''}{inner}]"

    def _class(self) -> None:
        """Up to the bracket that closes it. In Java a bracket inside begins another class."""
        pattern = self._pattern
        self._out.append("[")
        self._at += 1
        if pattern[self._at : self._at + 1] == "^":
            self._out.append("^")
            self._at += 1
        first = True
        while self._at < len(pattern):
            char = pattern[self._at]
            if char == "]" and not first:
                self._out.append("]")
                self._at += 1
                return
            if char == "[" or pattern.startswith("&&", self._at):
                raise self._refuse("classes within classes")
            if char == "\\":
                self._out.append(self._escape(in_class=True))
            else:
                self._out.append("\\" + char if char in "]~|&" else char)
                self._at += 1
            first = False
        raise ConfigError(f"the regular expression {pattern} has a class that does not end")
