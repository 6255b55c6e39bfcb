"""`kafka-consumer-groups --reset-offsets`: what the new offsets are, and setting them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.group_plan import Plan, parse_duration, parse_time, write_plan
from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, ask, java_failure
from moldau.cli.kafka.consumer_groups_calls import (
    DESCRIBE,
    committed_offsets,
    describe_groups,
    describe_topics,
    described,
    list_offsets,
    read_topic,
)
from moldau.cli.kafka.consumer_groups_csv import read_plan
from moldau.cli.kafka.consumer_groups_options import PARSER, SCENARIOS
from moldau.cli.kafka.consumer_groups_text import pad, print_error, width_of
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, NO_FILE, RUNTIME, unchecked, wrapped
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.java_order import hash_map_order, hash_order, partition_hash
from moldau.cli.kafka.options import Exit, JavaFailure, Options
from moldau.client.results import TopicPartition
from moldau.facts.group_lag import Committed
from moldau.facts.group_targets import NewOffsets, NotCommitted, Targets

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription
    from moldau.client.results import Outcome

LOGGER = "org.apache.kafka.tools.OffsetsUtils"
WIDTH = 15


class Reset(NamedTuple):
    """One run: what it is told, and whom it asks."""

    admin: Admin
    options: Options
    timeout_ms: int


def reset_offsets(admin: Admin, options: Options, group_ids: list[str], timeout_ms: int) -> None:
    reset = Reset(admin, options, timeout_ms)
    found = unchecked(DESCRIBE, lambda: describe_groups(admin, group_ids, timeout_ms))
    done = {group_id: _reset_group(reset, group_id, found[group_id]) for group_id in found}
    results = {group_id: done[group_id] for group_id in hash_map_order(done)}
    if options.has("export"):
        print(export(results, with_group=len(options.values("group")) != 1))
    else:
        print_plan(results)


def _reset_group(reset: Reset, group_id: str, found: Outcome[GroupDescription]) -> NewOffsets:
    missing = found.error is not None and found.error.name == "GROUP_ID_NOT_FOUND"
    state = "Dead" if missing else unchecked("", lambda: described(group_id, found)).state
    if state not in ("Empty", "Dead"):
        print_error(
            f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is {state}."
        )
        return {}
    offsets = _prepare(reset, group_id, _partitions(reset, group_id))
    if reset.options.has("execute") and not reset.options.has("dry-run"):
        _alter(reset, group_id, offsets)
    return offsets


def _partitions(reset: Reset, group_id: str) -> list[TopicPartition]:
    """The partitions to reset, in the order in which the real tool has them."""
    if reset.options.has("all-topics"):
        return hash_order(_committed(reset, group_id), partition_hash)
    if not reset.options.has("topic"):
        if not reset.options.has("from-file"):
            raise Exit(1, "One of the reset scopes should be defined: --all-topics, --topic.", PARSER)
        return []
    return named_partitions(reset)


def named_partitions(reset: Reset) -> list[TopicPartition]:
    """The partitions that --topic names."""
    texts = reset.options.values("topic")
    found = [each for text in texts if ":" in text for each in read_topic(text)]
    topics = describe_topics(reset.admin, (text for text in texts if ":" not in text), reset.timeout_ms, ask)
    for topic in hash_map_order(topics):
        found += [TopicPartition(topic, index) for index in topics[topic].partitions]
    return found


def _prepare(reset: Reset, group_id: str, partitions: list[TopicPartition]) -> NewOffsets:
    check_partitions(reset, partitions)
    targets = _targets(reset, group_id)
    if reset.options.has("from-file"):
        return ordered(_from_file(reset, group_id, targets))
    for scenario, prepare in _PREPARE.items():
        if reset.options.has(scenario):
            return ordered(prepare(reset, targets, partitions))
    names = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
    raise Exit(1, f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]", PARSER)


def check_partitions(reset: Reset, partitions: list[TopicPartition]) -> None:
    topics = describe_topics(reset.admin, (each.topic for each in partitions), reset.timeout_ms)
    missing = [str(each) for each in partitions if each.partition not in topics[each.topic].partitions]
    if missing:
        sentence = f'The partitions "{",".join(missing)}" do not exist'
        raise JavaFailure(ERRORS_PACKAGE + "UnknownTopicOrPartitionException", sentence)
    leaderless = [str(each) for each in partitions if topics[each.topic].partitions[each.partition].leader < 0]
    if leaderless:
        sentence = f'The partitions "{",".join(leaderless)}" have no leader'
        raise JavaFailure(ERRORS_PACKAGE + "LeaderNotAvailableException", sentence)


def ordered(offsets: NewOffsets) -> NewOffsets:
    return {partition: offsets[partition] for partition in hash_order(offsets, partition_hash)}


def _targets(reset: Reset, group_id: str) -> Targets:
    return targets_of(reset, lambda: _committed(reset, group_id))


def targets_of(reset: Reset, committed: Callable[[], Committed]) -> Targets:
    return Targets(
        lambda partitions, when: ordered(list_offsets(reset.admin, partitions, when, reset.timeout_ms)),
        committed,
        _warn_of_late,
        _log_move,
    )


def _committed(reset: Reset, group_id: str) -> Committed:
    return committed_offsets(reset.admin, [group_id], reset.timeout_ms)[group_id]


def _warn_of_late(partition: TopicPartition) -> None:
    print(
        f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty."
        " Falling back to latest known offset."
    )


def _log_move(partition: TopicPartition, wanted: int, found: int) -> None:
    side = "higher than latest" if found < wanted else "lower than earliest"
    sentence = f"New offset ({wanted}) is {side} offset for topic partition {partition}."
    sys.stdout.flush()
    sys.stderr.write(log_line("WARN", f"{sentence} Value will be set to {found}", LOGGER))


def _to_offset(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    return targets.nearest(ordered(dict.fromkeys(partitions, reset.options.longs("to-offset")[0])))


def _to_earliest(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    return targets.earliest(partitions)


def _to_latest(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    return targets.latest(partitions)


def _to_current(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    return targets.current(partitions)


def _shift_by(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    try:
        return targets.shifted(hash_order(partitions, partition_hash), reset.options.long("shift-by") or 0)
    except NotCommitted as error:
        sentence = f"Cannot shift offset for partition {error.partition} since there is no current committed offset"
        raise JavaFailure(ILLEGAL_ARGUMENT, sentence) from None


def to_datetime(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    try:
        moment_ms = parse_time(reset.options.values("to-datetime")[0])
    except ValueError as error:
        raise wrapped(RUNTIME, JavaFailure("java.text.ParseException", str(error))) from None
    return targets.at_time(partitions, moment_ms)


def _by_duration(reset: Reset, targets: Targets, partitions: list[TopicPartition]) -> NewOffsets:
    try:
        duration_ms = parse_duration(reset.options.text("by-duration") or "")
    except ValueError as error:
        raise JavaFailure("java.time.format.DateTimeParseException", str(error)) from None
    return targets.at_time(partitions, time.time_ns() // 1_000_000 - duration_ms)


def _from_file(reset: Reset, group_id: str, targets: Targets) -> NewOffsets:
    plan = _load_plan(reset.options.values("from-file")[0], reset.options.values("group"))
    if group_id not in plan:
        print_error(f"No reset plan for group {group_id} found")
        return {}
    return targets.nearest(ordered(plan[group_id]))


def _load_plan(path: str, group_ids: list[str]) -> Plan:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            return read_plan(file.read(), group_ids)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        cause = JavaFailure(NO_FILE, path) if missing else JavaFailure("java.io.IOException", error.strerror)
        unread = wrapped("java.io.IOException", cause, f"Unable to read file {path}")
        raise wrapped(RUNTIME, unread) from None
    except JavaFailure as failure:
        raise wrapped(RUNTIME, failure) from None


# In the order in which the real tool looks for them.
_PREPARE: dict[str, Callable[[Reset, Targets, list[TopicPartition]], NewOffsets]] = {
    "to-offset": _to_offset,
    "to-earliest": _to_earliest,
    "to-latest": _to_latest,
    "shift-by": _shift_by,
    "to-datetime": to_datetime,
    "by-duration": _by_duration,
    "to-current": _to_current,
}


def _alter(reset: Reset, group_id: str, offsets: NewOffsets) -> None:
    outcomes = ask(
        "offsetCommit(api=FIND_COORDINATOR)",
        lambda: reset.admin.alter_consumer_group_offsets(group_id, offsets, reset.timeout_ms),
    )
    failed = [each for each in hash_order(outcomes, partition_hash) if outcomes[each].error is not None]
    if failed:
        error = outcomes[failed[0]].error
        assert error is not None
        names = ", ".join(map(str, failed))
        sentence = f"Failed altering group offsets for the following partitions: [{names}]"
        raise JavaFailure(java_failure(error).class_name, sentence)


def print_plan(results: dict[str, NewOffsets]) -> None:
    width = max([WIDTH, *map(width_of, results)])
    topics: Iterable[str] = (partition.topic for offsets in results.values() for partition in offsets)
    topic_width = max([WIDTH, *map(width_of, topics)])
    if results:
        print(f"\n{pad('GROUP', width)} {pad('TOPIC', topic_width)} {pad('PARTITION', 10)} NEW-OFFSET")
    for group_id, offsets in results.items():
        for partition, offset in offsets.items():
            number = pad(str(partition.partition), 10)
            print(f"{pad(group_id, width)} {pad(partition.topic, topic_width)} {number} {offset}")
    if not results:
        print()


def export(results: dict[str, NewOffsets], with_group: bool) -> str:
    """The new offsets as lines of CSV."""
    return write_plan(
        (*((group_id,) if with_group else ()), partition.topic, str(partition.partition), str(offset))
        for group_id, offsets in results.items()
        for partition, offset in offsets.items()
    )
