"""The calls that `kafka-consumer-groups` makes, each with the words of Java's client when it fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.group_plan import BadTopic, parse_topic_partitions
from moldau.cli.kafka.admin_tools import java_failure
from moldau.cli.kafka.java_failures import ILLEGAL_ARGUMENT, unchecked
from moldau.cli.kafka.java_log import log_line
from moldau.cli.kafka.java_order import LOAD, hash_map_order
from moldau.cli.kafka.options import JavaFailure
from moldau.client.errors import ClientError
from moldau.facts.group_lag import Committed, fetch_committed, fetch_offsets

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription
    from moldau.client.connection.cluster import TopicMetadata
    from moldau.client.results import Outcome, TopicPartition

T = TypeVar("T")

DESCRIBE = "describeConsumerGroups(api=FIND_COORDINATOR)"

# Where the protocol has a code alone Java's client says this. Ours says more, and names the group.
JAVA_TEXTS = {
    "GROUP_AUTHORIZATION_FAILED": "Group authorization failed.",
    "GROUP_ID_NOT_FOUND": "The group id does not exist.",
    "GROUP_SUBSCRIBED_TO_TOPIC": (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
    "INVALID_GROUP_ID": "The group id is invalid.",
    "NON_EMPTY_GROUP": "The group is not empty.",
    "TOPIC_AUTHORIZATION_FAILED": "Topic authorization failed.",
    "UNKNOWN_MEMBER_ID": "The coordinator is not aware of this member.",
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
}

_NO_GROUP = (
    "[AdminClient clientId=adminclient-1] `ConsumerGroupDescribe` request for group id  failed due to unexpected error"
    " INVALID_GROUP_ID."
)
_HANDLER = "org.apache.kafka.clients.admin.internals.DescribeConsumerGroupsHandler"


def failure_of(error: ClientError) -> JavaFailure:
    """The failure of a response that has codes without words."""
    failure = java_failure(error)
    return JavaFailure(failure.class_name, JAVA_TEXTS.get(error.name, failure.message))


def spoken(work: Callable[[], T]) -> Callable[[], T]:
    """The call, with Java's words for errors that came as codes."""

    def run() -> T:
        try:
            return work()
        except ClientError as error:
            if error.name in JAVA_TEXTS:
                error.message = JAVA_TEXTS[error.name]
            raise

    return run


def describe_groups(admin: Admin, group_ids: list[str], timeout_ms: int) -> dict[str, Outcome[GroupDescription]]:
    """In the order of a copy of a map, which is made as small as it can be."""
    found = admin.describe_consumer_groups(group_ids, timeout_ms=timeout_ms)
    return {group_id: found[group_id] for group_id in hash_map_order(hash_map_order(found), int(len(found) / LOAD + 1))}


def described(group_id: str, found: Outcome[GroupDescription]) -> GroupDescription:
    """The description, or the failure in the words of Java's client."""
    if found.error is not None:
        if found.error.name == "GROUP_AUTHORIZATION_FAILED":
            # Who may not describe a group may not ask for its coordinator either, and that is asked first.
            key = f"CoordinatorKey(idValue='{group_id}', type=GROUP)"
            sentence = f"FindCoordinator request for groupId `{key}` failed due to authorization failure"
            raise JavaFailure(failure_of(found.error).class_name, sentence)
        other = re.fullmatch(r"Group (.*) is not of consumers but of the protocol (.*)\.", found.error.message)
        if other is not None:
            sentence = f"GroupId {other[1]} is not a consumer group ({other[2]})."
            raise JavaFailure(ILLEGAL_ARGUMENT, sentence)
        if found.error.name == "INVALID_GROUP_ID":
            sys.stderr.write(log_line("ERROR", _NO_GROUP, _HANDLER))
            raise failure_of(found.error)
    return found.get()


def committed_offsets(admin: Admin, group_ids: Iterable[str], timeout_ms: int) -> dict[str, Committed]:
    """The committed offsets of all groups, or the failure of the first one that they are not known of."""

    def work() -> dict[str, Committed]:
        found: dict[str, Committed] = {}
        for group_id, committed in fetch_committed(admin, group_ids, timeout_ms).items():
            if isinstance(committed, ClientError):
                raise committed
            found[group_id] = committed
        return found

    return unchecked("listConsumerGroupOffsets(api=FIND_COORDINATOR)", spoken(work))


def describe_topics(
    admin: Admin, topics: Iterable[str], timeout_ms: int, call: Callable[..., dict[str, TopicMetadata]] = unchecked
) -> dict[str, TopicMetadata]:
    """The topics, or the failure of the first one that cannot be described; call: how that arrives."""
    names = sorted(set(topics))
    if not names:
        return {}

    def work() -> dict[str, TopicMetadata]:
        return {name: outcome.get() for name, outcome in admin.describe_topics(names, timeout_ms).items()}

    return call("describeTopics", spoken(work))


def list_offsets(
    admin: Admin, partitions: Iterable[TopicPartition], when: int, timeout_ms: int
) -> dict[TopicPartition, int]:
    """The offset of each partition at a time or special value; -1: no record is that young."""

    def work() -> dict[TopicPartition, int]:
        found = fetch_offsets(admin, partitions, when, timeout_ms)
        return {partition: outcome.get().offset for partition, outcome in found.items()}

    return unchecked("listOffsets(api=METADATA)", spoken(work))


def read_topic(text: str) -> list[TopicPartition]:
    """Partitions that a value of --topic names."""
    try:
        return parse_topic_partitions(text)
    except BadTopic as error:
        sentence = f"Invalid topic arg '{text}', expected topic name and partitions"
        if error.number is not None:
            sentence = f"Invalid partition '{error.number}' specified in topic arg '{text}''"
        raise JavaFailure(ILLEGAL_ARGUMENT, sentence) from None
