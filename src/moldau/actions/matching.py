"""Which records a search wants: text in key, value or headers, an exact key, a field of a JSON value.

There are no regular expressions here: one that backtracks would hold up everybody who uses the console.
"""

from __future__ import annotations

import json
from typing import Any

from moldau.actions.refusals import Refused
from moldau.client.record import ConsumerRecord

ANYWHERE = "anywhere"
PLACES = (ANYWHERE, "key", "value", "headers")


class Matcher:
    """All conditions of one search; one without any takes everything."""

    def __init__(
        self, text: str = "", place: str = ANYWHERE, key: bytes | None = None, field: str = "", any_case: bool = True
    ) -> None:
        if place not in PLACES:
            raise Refused(f"Text can be looked for in {', '.join(PLACES)}; not in {place!r}.")
        self._any_case = any_case
        self._text = self._folded(text.encode())
        self._place = place
        self._key = key
        self._path, self._wanted = _read_field(field)

    def _folded(self, data: bytes) -> bytes:
        # Of bytes only ASCII has upper and lower case; others are decoded, where there are any.
        if not self._any_case:
            return data
        if data.isascii():
            return data.lower()
        return data.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")

    def matches(self, record: ConsumerRecord, shown: str = "") -> bool:
        """shown: the value as decoded text, for formats whose bytes do not contain what people read."""
        if self._key is not None and record.key != self._key:
            return False
        if self._path and not self._has_field(record.value if not shown else shown.encode()):
            return False
        return not self._text or self._has_text(record, shown)

    def _has_text(self, record: ConsumerRecord, shown: str) -> bool:
        sides: list[bytes] = []
        if self._place in (ANYWHERE, "key"):
            sides.append(record.key or b"")
        if self._place in (ANYWHERE, "value"):
            sides += [record.value or b"", shown.encode()]
        if self._place in (ANYWHERE, "headers"):
            sides += [part for name, value in record.headers for part in (name.encode(), value or b"")]
        return any(self._text in self._folded(side) for side in sides if side)

    def _has_field(self, value: bytes | None) -> bool:
        if value is None:
            return False
        try:
            found: Any = json.loads(value)
        except (ValueError, RecursionError):
            return False
        for name in self._path:
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
                found = found[int(name)]
            else:
                return False
        text = found if isinstance(found, str) else json.dumps(found)
        return self._wanted is None or text == self._wanted


def _read_field(text: str) -> tuple[list[str], str | None]:
    """`customer.id=42`: the path of a field and its value; without `=` any value will do."""
    text = text.strip()
    if not text:
        return [], None
    path, equals, wanted = text.partition("=")
    names = [name.strip() for name in path.split(".")]
    if not all(names):
        raise Refused("A field is written as customer.id=42.")
    return names, wanted.strip() if equals else None
