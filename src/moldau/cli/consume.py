"""`moldau consume`: prints the records of a topic, by partition and offset."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import BinaryIO

import click

from moldau.cli.options import connection_of, connection_options
from moldau.cli.record_text import BadFormat, compile_format, to_json_line
from moldau.client.consumer import Consumer, ConsumerRecord
from moldau.client.results import TopicPartition

POLL_MS = 1_000
POLL_RECORDS = 5_000


@click.command()
@click.argument("topic")
@click.option(
    "-o",
    "--offset",
    default="beginning",
    show_default=True,
    metavar="OFFSET",
    help="Where to start in each partition: beginning, end, a number, -N for the last N, or @TIME"
    " (milliseconds, or as in @2026-01-31T12:00:00).",
)
@click.option("--from-beginning", "offset", flag_value="beginning", help="The same as -o beginning.")
@click.option("-p", "--partitions", metavar="N[,N...]", help="Only these partitions. Default: all.")
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Stop after N records.")
@click.option("-F", "--follow", is_flag=True, help="Wait for more at the end. Default: stop there.")
@click.option(
    "-f",
    "--format",
    "text_format",
    default="%s\\n",
    show_default=True,
    metavar="FORMAT",
    help="json, or a format string as kcat has them: %s value, %k key, %h headers, %t topic, %p partition, %o offset,"
    " %T timestamp, %S and %K sizes, \\n \\t \\xHH.",
)
@click.option("--null-marker", default="", metavar="TEXT", help="What to print for a null key or value.")
@click.option("--read-committed", is_flag=True, help="Leave out records of open and aborted transactions.")
@connection_options
def consume(
    topic: str,
    offset: str,
    partitions: str | None,
    count: int | None,
    follow: bool,
    text_format: str,
    null_marker: str,
    read_committed: bool,
    bootstrap_server: str,
    timeout_s: float,
    settings: tuple[str, ...],
) -> None:
    """Print the records of TOPIC.

    \b
    Examples:
      moldau consume orders
      moldau consume orders -o -10 -f '%p:%o %k=%s\\n'
      moldau consume orders -o end --follow -f json
    """
    connection = connection_of(bootstrap_server, timeout_s, settings)
    try:
        render = to_json_line if text_format == "json" else compile_format(text_format, null_marker.encode())
    except BadFormat as error:
        raise click.UsageError(str(error)) from None
    wanted = None if partitions is None else parse_partitions(partitions)
    start = parse_offset(offset)
    config = connection.config(
        allow_auto_create_topics="false",
        auto_offset_reset="earliest",
        isolation_level="read_committed" if read_committed else "read_uncommitted",
        default_api_timeout_ms=connection.timeout_ms,
    )
    with Consumer(config=config, first_contact_ms=0) as consumer:
        chosen = choose_partitions(topic, consumer.partitions_for(topic), wanted)
        ends = _place(consumer, chosen, start)
        _print_records(consumer, None if follow else ends, count, render, timeout_s)


Start = tuple[str, int]


def parse_offset(text: str) -> Start:
    """('at', offset), ('last', n), ('time', ms), ('beginning', 0) or ('end', 0)."""
    if text in ("beginning", "earliest", "start"):
        return ("beginning", 0)
    if text in ("end", "latest"):
        return ("end", 0)
    if text.startswith("@"):
        return ("time", _parse_time(text[1:]))
    try:
        number = int(text)
    except ValueError:
        raise click.UsageError(f"--offset wants beginning, end, a number, -N or @TIME, not {text!r}.") from None
    return ("last", -number) if text.startswith("-") else ("at", number)


def _parse_time(text: str) -> int:
    if text.isdigit():
        return int(text)
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.UsageError(f"@TIME wants milliseconds or a time as 2026-01-31T12:00:00, not {text!r}.") from None


def parse_partitions(text: str) -> list[int]:
    """'0,2,5-7' as a list."""
    numbers: list[int] = []
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise click.UsageError(f"--partitions wants numbers as in 0,2 or 0-3, not {text!r}.")
        numbers.extend(range(int(first), int(last if dash else first) + 1))
    return numbers


def choose_partitions(topic: str, found: list[TopicPartition], wanted: list[int] | None) -> list[TopicPartition]:
    if wanted is None:
        return found
    missing = [number for number in wanted if TopicPartition(topic, number) not in found]
    if missing:
        numbers = ", ".join(str(number) for number in missing)
        raise click.ClickException(
            f"Topic {topic} has partitions 0 to {len(found) - 1}; there is no partition {numbers}."
        )
    return [TopicPartition(topic, number) for number in dict.fromkeys(wanted)]


def _place(consumer: Consumer, chosen: list[TopicPartition], start: Start) -> dict[TopicPartition, int]:
    """Assigns the partitions, seeks, and returns where each ends now."""
    begins = consumer.beginning_offsets(chosen)
    ends = consumer.end_offsets(chosen)
    kind, number = start
    consumer.assign(chosen)
    if kind == "at" and all(not begins[item] <= number <= ends[item] for item in chosen):
        have = "; ".join(f"{item} has {begins[item]} to {ends[item]}" for item in chosen[:3])
        raise click.ClickException(f"Offset {number} is not there: {have}.")
    times = consumer.offsets_for_times(dict.fromkeys(chosen, number)) if kind == "time" else {}
    for item in chosen:
        found = times.get(item)
        if kind == "time":
            position = ends[item] if found is None else found.offset
        else:
            position = {
                "beginning": begins[item],
                "end": ends[item],
                "last": ends[item] - number,
                "at": number,
            }[kind]
        consumer.seek(item, min(max(position, begins[item]), ends[item]))
    return ends


def _print_records(
    consumer: Consumer,
    ends: dict[TopicPartition, int] | None,
    count: int | None,
    render: Callable[[ConsumerRecord], bytes],
    timeout_s: float,
) -> None:
    """Prints until the ends (None: for ever) or the count are reached."""
    out = sys.stdout.buffer
    remaining = count
    progress = time.monotonic()
    while remaining is None or remaining > 0:
        if ends is not None and _pause_finished(consumer, ends):
            return
        limit = POLL_RECORDS if remaining is None else min(POLL_RECORDS, remaining)
        records = consumer.poll(POLL_MS, limit)
        if ends is not None:
            records = [
                record for record in records if record.offset < ends[TopicPartition(record.topic, record.partition)]
            ]
        if records:
            progress = time.monotonic()
            _write(out, records, render)
        elif ends is not None and time.monotonic() - progress > timeout_s:
            raise click.ClickException(
                f"Nothing arrived for {timeout_s:g} seconds although the end is not reached. Is the broker still there?"
            )
        if remaining is not None:
            remaining -= len(records)


def _write(out: BinaryIO, records: list[ConsumerRecord], render: Callable[[ConsumerRecord], bytes]) -> None:
    out.write(b"".join([render(record) for record in records]))
    out.flush()


def _pause_finished(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    """Partitions that are read to their end are left alone; True when all are."""
    open_partitions = [item for item in consumer.assignment() if consumer.position(item) < ends[item]]
    finished = [item for item in consumer.assignment() if item not in open_partitions]
    consumer.pause(finished)
    return not open_partitions
