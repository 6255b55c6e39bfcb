"""Reads JAAS lines, the form in which Kafka's settings hold names and passwords.

No sentence of an error quotes the line: it holds secrets.
"""

from __future__ import annotations

import re
from typing import Final

CONTROL_FLAGS: Final = "required|requisite|sufficient|optional"
_LINE = re.compile(rf"\s*([\w.$]+)\s+(?:{CONTROL_FLAGS})((?:\s+.*)?);\s*", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r'\s*([^\s="\';]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s"\';]+))', re.DOTALL)


class JaasError(ValueError):
    """The line cannot be read."""


class JaasEntry:
    """One login module with its options. Shown without the options' values."""

    def __init__(self, module: str, options: dict[str, str]) -> None:
        self.module = module
        self.options = options

    def __repr__(self) -> str:
        return f"JaasEntry({self.module}, options hidden)"


def parse_jaas(text: str) -> JaasEntry:
    """`…PlainLoginModule required username="alice" password="secret";` with one module."""
    found = _LINE.fullmatch(text)
    if found is None:
        raise JaasError('write it as `ModuleName required username="…" password="…";`, with the semicolon')
    options: dict[str, str] = {}
    rest = found[2].strip()
    while rest:
        option = _OPTION.match(rest)
        if option is None:
            raise JaasError('its options are not all of the form name="value"')
        name, *values = option.groups()
        value = next(item for item in values if item is not None)
        options[name] = value if values[2] is not None else re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        rest = rest[option.end() :].strip()
    return JaasEntry(found[1], options)
