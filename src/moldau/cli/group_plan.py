"""Reads what a reset of offsets is told: partitions of a topic, a time, a duration, a plan in CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone

from moldau.client.results import TopicPartition
from moldau.protocol.integers import INT_MAX

_NUMBER = re.compile(r"[+-]?[0-9]+")
_TIME = re.compile(r"(\d{1,4})-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(Z|[+-]\d\d?(?::?\d\d)?)")
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)

Plan = dict[str, dict[TopicPartition, int]]


class BadTopic(ValueError):
    """Not a topic with partitions; number is the piece that is no number, None where the form is wrong."""

    def __init__(self, text: str, number: str | None = None) -> None:
        super().__init__(f"{text!r} does not name partitions as in orders:0,1.")
        self.text = text
        self.number = number


def parse_topic_partitions(text: str) -> list[TopicPartition]:
    """'orders:0,1' as partitions."""
    # Java's split drops empty pieces at the end.
    pieces = _split(text, ":")
    if len(pieces) != 2:
        raise BadTopic(text)
    found = []
    for number in _split(pieces[1], ","):
        if not _NUMBER.fullmatch(number) or not -INT_MAX - 1 <= int(number) <= INT_MAX:
            raise BadTopic(text, number)
        found.append(TopicPartition(pieces[0], int(number)))
    return found


def _split(text: str, separator: str) -> list[str]:
    pieces = text.split(separator)
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return pieces


def parse_time(text: str) -> int:
    """A time as Kafka's tools take it, in milliseconds: 2026-01-31T12:00:00.000, in UTC unless a zone follows."""
    parts = _split(text, "T")
    if len(parts) < 2:
        raise ValueError("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    zoned = text if any(sign in parts[1] for sign in "+-Z") else f"{text}Z"
    found = _TIME.match(zoned)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second, milli = map(int, found.groups()[:7])
        if milli > 999:
            raise ValueError
        moment = datetime(year, month, day, hour, minute, second, milli * 1000, tzinfo=_zone(found[8]))
    except ValueError:
        raise ValueError(f'Unparseable date: "{zoned}"') from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(offset if text[0] == "+" else -offset)


def parse_duration(text: str) -> int:
    """A duration of ISO 8601, as P1DT2H30M, in milliseconds."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found[index] for index in (2, 4, 5, 6)) or (found[3] or "").upper() == "T":
        raise ValueError("Text cannot be parsed to a Duration")
    days, hours, minutes, seconds = (int(found[index] or 0) for index in (2, 4, 5, 6))
    fraction = int((found[7] or "").ljust(9, "0")[:9])
    if (found[6] or "").startswith("-"):
        fraction = -fraction
    nanos = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction
    return (-nanos if found[1] == "-" else nanos) // 1_000_000


def read_plan(text: str, group_ids: list[str]) -> Plan:
    """Lines `topic,partition,offset` for the one group that was named, or `group,topic,partition,offset`."""
    lines = _split(text, "\n")
    plan: Plan = {}
    named = group_ids[0] if len(group_ids) == 1 and _fields_count(lines[0]) <= 3 else None
    for line in lines:
        fields = _fields(line)
        if named is not None:
            fields.insert(0, named)
        if len(fields) != 4:
            raise ValueError(f"The line {line.strip()!r} of the plan has {_fields_count(line)} fields.")
        group_id, topic, partition, offset = fields
        if not _NUMBER.fullmatch(partition.strip()) or not _NUMBER.fullmatch(offset.strip()):
            raise ValueError(f"The line {line.strip()!r} of the plan has a number that is none.")
        plan.setdefault(group_id, {})[TopicPartition(topic, int(partition))] = int(offset)
    return plan


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])


def _fields_count(line: str) -> int:
    return len(_fields(line))


def write_plan(rows: Iterable[tuple[str, ...]]) -> str:
    """Lines of CSV; a text is quoted where it is long or has a character that might mean something."""
    return "".join(",".join(_quoted(cell) for cell in row) + "\n" for row in rows)


def _quoted(text: str) -> str:
    if len(text) <= 24 and all(character > "," for character in text):
        return text
    return '"' + text.replace('"', '""') + '"'
