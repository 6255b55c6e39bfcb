"""The calls that `kafka-share-groups` makes, each with the words of Java's client when it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.admin_tools import java_failure
from moldau.cli.kafka.consumer_groups_calls import JAVA_TEXTS
from moldau.cli.kafka.java_failures import executed, list_all
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.java_order import LOAD, hash_map_order
from moldau.cli.kafka.options import JavaFailure
from moldau.client.errors import ClientError
from moldau.protocol.errors import default_text

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription, GroupListing, SharePartitionOffset
    from moldau.client.results import Outcome, TopicPartition

T = TypeVar("T")

SHARE = "share"
DESCRIBE = "describeShareGroups(api=FIND_COORDINATOR)"
LIST_OFFSETS = "listShareGroupOffsets(api=FIND_COORDINATOR)"

_NO_GROUP = (
    "[AdminClient clientId=adminclient-1] `DescribeShareGroups` request for group id {} failed due to unexpected error"
    " INVALID_GROUP_ID"
)
_HANDLER = "org.apache.kafka.clients.admin.internals.DescribeShareGroupsHandler"

StartOffsets = dict["TopicPartition", "SharePartitionOffset | None"]


def in_java(error: ClientError) -> ClientError:
    """The error with the words of Java's client where the broker sent a code alone."""
    if error.message == default_text(error.code):
        error.message = JAVA_TEXTS.get(error.name, error.message)
    return error


def failure_of(error: ClientError, call: str = "") -> JavaFailure:
    return java_failure(in_java(error), call)


def spoken(work: Callable[[], T]) -> Callable[[], T]:
    def run() -> T:
        try:
            return work()
        except ClientError as error:
            raise in_java(error) from None

    return run


def list_groups(admin: Admin, timeout_ms: int, states: Iterable[str] = ()) -> list[GroupListing]:
    """The share groups, in the order in which a map of Java's has them."""
    found = list_all(lambda: admin.list_groups(states, [SHARE], timeout_ms=timeout_ms).get())
    by_id = {group.group_id: group for group in found if group.type.lower() == SHARE}
    return [by_id[group_id] for group_id in hash_map_order(by_id)]


def describe_groups(admin: Admin, group_ids: list[str], timeout_ms: int) -> dict[str, GroupDescription]:
    """All groups, or the failure of the first one that cannot be described."""
    found = executed(DESCRIBE, lambda: admin.describe_share_groups(group_ids, timeout_ms=timeout_ms))
    in_order = hash_map_order(hash_map_order(found), int(len(found) / LOAD + 1))
    return {group_id: executed("", lambda each=found[group_id]: described(each)) for group_id in in_order}  # type: ignore[misc]


def described(found: Outcome[GroupDescription]) -> GroupDescription:
    if found.error is not None and found.error.name == "INVALID_GROUP_ID":
        sys.stderr.write(log_line("ERROR", _NO_GROUP.format(""), _HANDLER))
    return spoken(found.get)()


def start_offsets(admin: Admin, group_ids: Iterable[str], timeout_ms: int) -> dict[str, StartOffsets]:
    """Where each group starts in its partitions, or the failure of the first one that this is not known of.

    A partition that cannot be asked for is left out, as Java's client does.
    """
    wanted: dict[str, None] = dict.fromkeys(group_ids)

    def work() -> dict[str, StartOffsets]:
        found = admin.list_share_group_offsets(wanted, timeout_ms) if wanted else {}
        return {
            group_id: {each: row.get() for each, row in offsets.get().items() if row.error is None}
            for group_id, offsets in found.items()
        }

    return executed(LIST_OFFSETS, spoken(work))
