"""`kafka-get-offsets`: offsets of partitions by time or by a special name."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import Connect, ask, connect, java_failure, java_text
from moldau.cli.kafka.options import (
    VALUE,
    JavaFailure,
    Option,
    OptionParser,
    Options,
    check_help_or_version,
    check_required,
)
from moldau.cli.kafka.topics import INTERNAL, topic_pattern

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.results import TopicPartition

TERSE = "org.apache.kafka.tools.TerseException"
# Special times by their numbers; the rows of the protocol.
TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
# topic:5, topic:0-2, topic:-3, topic:3- or nothing behind the colon; the upper end is not included.
TOPIC_PARTITIONS = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")

Filter = Callable[[str, int], bool]

PARSER = OptionParser(
    [
        Option("bootstrap-server", "REQUIRED: the brokers to connect to.", VALUE, described_as="HOST1:PORT1,..."),
        Option("command-config", "A file with settings for the admin client.", VALUE, described_as="config file"),
        Option("topic", "A regular expression of topics.", VALUE, described_as="topic"),
        Option("partitions", "The partitions, separated by commas.", VALUE, described_as="partition ids"),
        Option(
            "topic-partitions",
            "Topics with partitions, as in t1:0,t2:0-2,t3:5-; the upper end is not included.",
            VALUE,
            described_as="topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        ),
        Option(
            "time",
            f"A timestamp, or one of {', '.join(TIMES)} (-1 to -6).",
            VALUE,
            described_as="<timestamp> / -1 or latest / ...",
            default="latest",
        ),
        Option("exclude-internal-topics", "Leave out internal topics."),
    ]
)


def main(arguments: list[str], connect: Connect = connect) -> int:
    try:
        options = PARSER.parse(arguments)
        _check(options)
        where = options.text("bootstrap-server")
        time = _read_time(options.text("time") or "")
        wanted = _read_filter(options)
        with ask("", lambda: connect(where, options.text("command-config"), client_id="GetOffsetShell")) as admin:
            partitions = _find_partitions(admin, options, wanted)
            for line in _offset_lines(admin, partitions, time):
                print(line)
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(f"Error occurred: {failure.message}\n")
        if failure.class_name == "java.lang.RuntimeException":
            sys.stderr.write(f"{java_text(failure)}\nCaused by: {failure.message}\n\n")
        return 1
    return 0


def _check(options: Options) -> None:
    check_help_or_version(options, "Show the offsets of partitions.")
    check_required(options, "bootstrap-server")
    if options.has("topic-partitions") and (options.has("topic") or options.has("partitions")):
        raise JavaFailure(TERSE, "--topic-partitions cannot be used with --topic or --partitions")


def _read_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    if not re.fullmatch(r"[+-]?\d+", text) or not -(2**63) <= int(text) < 2**63:
        names = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        raise JavaFailure(
            TERSE,
            f"Malformed time argument {text}. Please use {names}, or a specified long format timestamp",
        )
    return int(text)


def _read_filter(options: Options) -> Filter:
    excluded = options.has("exclude-internal-topics")
    given = options.text("topic-partitions")
    if given is not None:
        rows = [_read_topic_partitions(part) for part in given.split(",")]
    else:
        pattern = topic_pattern(options.text("topic") or ".*")
        text = options.text("partitions")
        numbers = None if not text else {_read_partition(part, text) for part in text.split(",")}
        rows = [(pattern, numbers, 0, None)]

    def matches(topic: str, partition: int) -> bool:
        if excluded and topic in INTERNAL:
            return False
        return any(
            pattern.fullmatch(topic)
            and (numbers is None or partition in numbers)
            and (low <= partition and (high is None or partition < high))
            for pattern, numbers, low, high in rows
        )

    return matches


Row = tuple[re.Pattern[str], "set[int] | None", int, "int | None"]


def _read_topic_partitions(text: str) -> Row:
    match = TOPIC_PARTITIONS.fullmatch(text)
    if match is None:
        raise JavaFailure("java.lang.RuntimeException", f"{TERSE}: Invalid rule specification: {text}")
    topic, one, low, high = match.groups()
    pattern = topic_pattern(topic or ".*")
    if one:
        return (pattern, {int(one)}, 0, None)
    return (pattern, None, int(low or 0), int(high) if high else None)


def _read_partition(text: str, given: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise JavaFailure(
            TERSE,
            f"--partitions expects a comma separated list of numeric partition ids, but received: {given}",
        )
    return int(text)


def _find_partitions(admin: Admin, options: Options, wanted: Filter) -> list[TopicPartition]:
    from moldau.client.results import TopicPartition

    # Metadata has the partitions along with the names: one request where the real tool needs two.
    found = [
        TopicPartition(topic.name, index)
        for topic in ask("listTopics", admin.list_topics)
        for index in topic.partitions
        if wanted(topic.name, index)
    ]
    if not found:
        raise JavaFailure(
            TERSE,
            "Could not match any topic-partitions with the specified filters",
        )
    return sorted(found, key=lambda item: (item.topic, str(item.partition)))


def _offset_lines(admin: Admin, partitions: list[TopicPartition], time: int) -> list[str]:
    """One line for each partition that has such an offset; what a leader cannot say is told on the error output."""
    lines = []
    outcomes = ask("listOffsets", lambda: admin.list_offsets(dict.fromkeys(partitions, time)))
    for partition in partitions:
        outcome = outcomes[partition]
        if outcome.error is None:
            if outcome.get().offset >= 0:
                lines.append(f"{partition.topic}:{partition.partition}:{outcome.get().offset}")
            continue
        failure = java_failure(outcome.error, "listOffsets")
        sys.stdout.flush()
        sys.stderr.write(f"Skip getting offsets for topic-partition {partition} due to error: {failure.message}\n")
    return lines
