"""`kafka-share-groups --reset-offsets`: what the new start offsets are, and setting them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, ask
from moldau.cli.kafka.consumer_groups_reset import (
    Reset,
    check_partitions,
    named_partitions,
    ordered,
    print_plan,
    targets_of,
    to_datetime,
)
from moldau.cli.kafka.java_failures import RUNTIME, wrapped
from moldau.cli.kafka.java_order import hash_order, partition_hash
from moldau.cli.kafka.options import Exit, JavaFailure, Options
from moldau.cli.kafka.share_groups_calls import DESCRIBE, described, failure_of, start_offsets
from moldau.facts.group_targets import NewOffsets

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.results import TopicPartition

INACTIVE = ("Empty", "Dead")


def reset_offsets(admin: Admin, options: Options, timeout_ms: int) -> None:
    reset = Reset(admin, options, timeout_ms)
    group_id = options.text("group") or ""
    if _state(reset, group_id) not in INACTIVE:
        raise Exit(1, f"Share group '{group_id}' is not empty.")
    new = _prepare(reset, _partitions(reset, group_id))
    if options.has("execute") and new:
        _alter(reset, group_id, new)
    print_plan({group_id: new})


def _state(reset: Reset, group_id: str) -> str:
    """That it cannot be told ends the tool with one line; a group that is not there can be given offsets."""
    try:
        found = ask(DESCRIBE, lambda: reset.admin.describe_share_groups([group_id], timeout_ms=reset.timeout_ms))
        if (error := found[group_id].error) is not None and error.name == "GROUP_ID_NOT_FOUND":
            return "Dead"
        return ask("", lambda: described(found[group_id])).state
    except JavaFailure as failure:
        raise Exit(1, failure.message or "") from None


def _partitions(reset: Reset, group_id: str) -> list[TopicPartition]:
    """The partitions to reset, in the order in which the real tool has them."""
    if "" in reset.options.values("topic"):
        sentence = "The given topic name '' cannot be represented in a request."
        raise JavaFailure(ERRORS_PACKAGE + "InvalidTopicException", sentence)
    if reset.options.has("topic"):
        return named_partitions(reset)
    try:
        found = start_offsets(reset.admin, [group_id], reset.timeout_ms)[group_id]
    except JavaFailure as failure:
        raise wrapped(RUNTIME, failure) from None
    return hash_order(found, partition_hash)


def _prepare(reset: Reset, partitions: list[TopicPartition]) -> NewOffsets:
    check_partitions(reset, partitions)
    targets = targets_of(reset, dict)
    if reset.options.has("to-earliest"):
        found = targets.earliest(partitions)
    elif reset.options.has("to-latest"):
        found = targets.latest(partitions)
    else:
        found = to_datetime(reset, targets, partitions)
    # Keys that meet in one place of a map stay in the order in which they were named.
    return ordered({each: found[each] for each in partitions})


def _alter(reset: Reset, group_id: str, new: NewOffsets) -> None:
    outcomes = ask(
        "alterShareGroupOffsets(api=FIND_COORDINATOR)",
        lambda: reset.admin.alter_share_group_offsets(group_id, new, reset.timeout_ms),
    )
    failed = [each for each in hash_order(outcomes, partition_hash) if outcomes[each].error is not None]
    if failed:
        error = outcomes[failed[0]].error
        assert error is not None
        sentence = f"Failed altering group offsets for the following partitions: [{', '.join(map(str, failed))}]"
        raise JavaFailure(failure_of(error).class_name, sentence)
