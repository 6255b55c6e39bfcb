"""How large a result may be: rows, bytes, characters of one text; and what is said where something is left out.

Whatever is cut says so in the result, with what to ask for to get on: an agent must never take a part for the whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from moldau.actions.decoding import visible

ROWS_DEFAULT = 100
BYTES_DEFAULT = 64 * 1024
CHARS_DEFAULT = 2_000
# What lists behind the first one of a result may take of its bytes.
SIDE_SHARE = 4
# What stays of a row that is too large.
SHORT_BYTES = 200
NOTES = "truncated"


class Limits(NamedTuple):
    """Of one result: rows of a list, bytes of its JSON, characters of one text in it."""

    rows: int = ROWS_DEFAULT
    bytes: int = BYTES_DEFAULT
    chars: int = CHARS_DEFAULT


DEFAULT_LIMITS = Limits()


def limits_of(rows: int, size: int) -> Limits:
    """One text is a small part of a result, however small that may be."""
    return Limits(rows, size, min(CHARS_DEFAULT, size // 16))


class Part(NamedTuple):
    """A list in a result: its name, the argument that gets on in it, how many rows were passed over, how many there
    are in all."""

    name: str
    argument: str
    skipped: int
    total: int


def json_size(value: object) -> int:
    """Bytes of its JSON, as it is sent."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def tidy(value: Any, chars: int) -> Any:
    """The same with every text visible, and cut where it is longer than that."""
    if isinstance(value, str):
        text = visible(value)
        return text if len(text) <= chars else f"{text[:chars]}… (cut: {len(text):,} characters in all)"
    if isinstance(value, dict):
        return {visible(str(name)): tidy(inner, chars) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [tidy(inner, chars) for inner in value]
    return value


def rows_that_fit(rows: Sequence[object], limit_rows: int, limit_bytes: int) -> int:
    """How many of the first rows there is room for."""
    count, size = 0, 0
    for row in rows[:limit_rows]:
        size += json_size(row) + 1
        if size > limit_bytes:
            break
        count += 1
    return count


def shrunk(row: object) -> object:
    """A row that is too large by itself: what is short in it, and the names of the rest."""
    if not isinstance(row, dict):
        return {"left_out": "it is too large"}
    short = {name: inner for name, inner in row.items() if json_size(inner) <= SHORT_BYTES}
    return {**short, "left_out": [name for name in row if name not in short]}


def bounded(result: dict[str, Any], parts: Sequence[Part], limits: Limits) -> dict[str, Any]:
    """The result with its lists cut to what there is room for: the first one has what the others leave."""
    found: dict[str, Any] = tidy(result, limits.chars)
    notes: list[str] = list(found.pop(NOTES, []))
    # Room for what is to be said about each list.
    left = limits.bytes - 200 * len(parts) - json_size({**found, **{part.name: [] for part in parts}})
    for place, part in enumerate(reversed(parts)):
        is_first = place == len(parts) - 1
        room = left if is_first else min(left, limits.bytes // SIDE_SHARE)
        rows = found[part.name]
        count = rows_that_fit(rows, limits.rows, room)
        if count == 0 and rows:
            found[part.name], count = [shrunk(rows[0])], 1
        else:
            found[part.name] = rows[:count]
        left -= json_size(found[part.name])
        next_row = part.skipped + count
        if next_row < part.total:
            notes.append(
                f"{part.name}: {count:,} of {part.total:,} are here, from number {part.skipped:,} on."
                f" For the next ask again with {part.argument}={next_row}."
            )
    if notes:
        found[NOTES] = notes
    return found
