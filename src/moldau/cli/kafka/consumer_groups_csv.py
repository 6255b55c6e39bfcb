"""Plans of `--reset-offsets --from-file` as Kafka's CSV library reads them: what is missing in a line is 0."""

from __future__ import annotations

import csv
import re

from moldau.cli.group_plan import Plan
from moldau.cli.kafka.options import JavaFailure
from moldau.client.results import TopicPartition

_RECORDS = "org.apache.kafka.tools.consumer.group.CsvUtils$CsvRecord"
_WHERE = "\n at [Source: (StringReader); line: {}, column: {}]"
# The columns after the topic, with their types in Java and how many bits these have.
_NUMBERS = (("partition", "int", 32), ("offset", "long", 64))


def read_plan(text: str, group_ids: list[str]) -> Plan:
    """Lines `topic,partition,offset` where one group was named, otherwise `group,topic,partition,offset`."""
    lines = text.split("\n")
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    named = group_ids[0] if len(group_ids) == 1 and _is_readable(lines[0], False) else None
    plan: Plan = {}
    for line in lines:
        group_id, partition, offset = _read_line(line, named is None)
        plan.setdefault(named if named is not None else group_id, {})[partition] = offset
    return plan


def _is_readable(line: str, with_group: bool) -> bool:
    try:
        _read_line(line, with_group)
    except JavaFailure:
        return False
    return True


def _read_line(line: str, with_group: bool) -> tuple[str, TopicPartition, int]:
    cells = next(csv.reader([line.rstrip("\r")]), [])
    if not cells:
        raise JavaFailure(
            "com.fasterxml.jackson.databind.exc.MismatchedInputException",
            "No content to map due to end-of-input" + _WHERE.format("UNKNOWN", "UNKNOWN"),
        )
    names = 2 if with_group else 1
    most = names + len(_NUMBERS)
    numbers = []
    for index, (name, kind, bits) in enumerate(_NUMBERS, start=names):
        numbers.append(_read_number(cells, index, name, kind, bits, "WithGroup" if with_group else "NoGroup"))
    if len(cells) > most:
        extra = cells[most]
        raise JavaFailure(
            "com.fasterxml.jackson.dataformat.csv.CsvReadException",
            f'Too many entries: expected at most {most} (value #{most} ({len(extra)} chars) "{extra}")'
            + _WHERE.format(1, _column(cells, most)),
        )
    topic = cells[names - 1] if len(cells) >= names else ""
    return cells[0], TopicPartition(topic, numbers[0]), numbers[1]


def _read_number(cells: list[str], index: int, name: str, kind: str, bits: int, record: str) -> int:
    text = cells[index].strip() if index < len(cells) else ""
    if not text:
        return 0
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise JavaFailure(
            "com.fasterxml.jackson.databind.exc.InvalidFormatException",
            f'Cannot deserialize value of type `{kind}` from String "{cells[index]}": not a valid `{kind}` value'
            + _WHERE.format(1, _column(cells, index))
            + f' (through reference chain: {_RECORDS}{record}["{name}"])',
        )
    return int(text)


def _column(cells: list[str], index: int) -> int:
    return sum(len(cell) + 1 for cell in cells[:index]) + 1
