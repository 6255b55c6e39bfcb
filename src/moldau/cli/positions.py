"""Places in a partition as people write them: beginning, end, an offset, the last N, a time; and partition numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import click

BEGINNING = "beginning"
END = "end"
AT = "at"
LAST = "last"
TIME = "time"

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

HELP = (
    "beginning, end, an offset, -N for the last N, or @TIME: milliseconds, 2026-01-31T12:00:00, or @-15m for a"
    " quarter of an hour ago"
)


class Position(NamedTuple):
    """A place in every partition: a kind of this module, and the offset, count or time in milliseconds."""

    kind: str
    number: int = 0


def parse_position(option: str, text: str) -> Position:
    """The place that a text names."""
    if text in ("beginning", "earliest", "start"):
        return Position(BEGINNING)
    if text in ("end", "latest"):
        return Position(END)
    if text.startswith("@"):
        return Position(TIME, parse_time(option, text[1:]))
    try:
        number = int(text)
    except ValueError:
        raise click.UsageError(f"{option} wants {HELP}; not {text!r}.") from None
    return Position(LAST, -number) if text.startswith("-") else Position(AT, number)


def parse_time(option: str, text: str) -> int:
    """Milliseconds since the epoch: as a number, as an ISO 8601 time, or as a duration before now (-1h30m)."""
    if text.isdigit():
        return int(text)
    if text.startswith("-"):
        duration_ms = parse_duration(text[1:])
        if duration_ms is not None:
            import time

            return time.time_ns() // 1_000_000 - duration_ms
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"{option}: a time is written @1767225600000, @2026-01-31T12:00:00 or @-15m; not {'@' + text!r}."
        ) from None


def parse_duration(text: str) -> int | None:
    """'1h30m' in milliseconds; None if it is not a duration."""
    if not _DURATION.fullmatch(text):
        return None
    return int(sum(float(number) * _UNITS_MS[unit] for number, unit in _DURATION_PART.findall(text)))


if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:
    _ParamType = click.ParamType  # not generic in every release of click


class DurationType(_ParamType):
    """An option's value such as 10s, 1m30s or 250ms; a number alone is seconds. Converts to seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value)
        duration_ms = parse_duration(text)
        if duration_ms is not None:
            return duration_ms / 1000
        try:
            seconds = float(text)
        except ValueError:
            self.fail(f"{text!r} is not a duration such as 10s, 1m30s or 250ms.", param, ctx)
        if not 0 <= seconds < float("inf"):
            self.fail(f"{text!r} is not a duration such as 10s, 1m30s or 250ms.", param, ctx)
        return seconds


def parse_partitions(text: str) -> list[int]:
    """'0,2,5-7' as a list."""
    numbers: list[int] = []
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or int(last or 0) > 1_000_000:
            raise click.UsageError(f"--partitions wants numbers as in 0,2 or 0-3, not {text!r}.")
        numbers.extend(range(int(first), int(last if dash else first) + 1))
    return list(dict.fromkeys(numbers))


def check_partitions(topic: str, there: list[int], wanted: list[int]) -> None:
    """Refuses partitions that the topic does not have."""
    missing = [number for number in wanted if number not in there]
    if missing:
        numbers = ", ".join(str(number) for number in missing)
        raise click.ClickException(
            f"Topic {topic} has partitions 0 to {len(there) - 1}; there is no partition {numbers}."
        )
