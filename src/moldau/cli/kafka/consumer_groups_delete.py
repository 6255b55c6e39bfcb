"""`kafka-consumer-groups --delete` and `--delete-offsets`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from moldau.cli.kafka.admin_tools import ask
from moldau.cli.kafka.consumer_groups_calls import failure_of, read_topic
from moldau.cli.kafka.consumer_groups_text import pad, print_error, width_of
from moldau.cli.kafka.java_failures import TIMEOUT, own_line
from moldau.cli.kafka.java_order import hash_map_order, hash_order, partition_hash
from moldau.cli.kafka.options import JavaFailure
from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.results import Outcome

K = TypeVar("K")

TOPIC_WIDTH = 15
ABOUT_THE_GROUP = ("INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED", "NON_EMPTY_GROUP")
ABOUT_PARTITIONS = ("GROUP_SUBSCRIBED_TO_TOPIC", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PARTITION")


class Refused(NamedTuple):
    """An error by its name in the protocol, and as Java shows it."""

    name: str
    failure: JavaFailure


def _refusal(error: ClientError | None) -> Refused | None:
    return None if error is None else Refused(error.name, failure_of(error))


def _each(call: str, items: list[K], work: Callable[[], dict[K, Outcome[None]]]) -> dict[K, Refused | None]:
    """What became of each item; that nobody can be asked is an outcome of each as well."""
    try:
        return {item: _refusal(outcome.error) for item, outcome in ask(call, work).items()}
    except JavaFailure as failure:
        if failure.class_name != TIMEOUT:
            raise
        return dict.fromkeys(items, Refused("REQUEST_TIMED_OUT", failure))


def delete_groups(admin: Admin, group_ids: list[str], timeout_ms: int) -> None:
    outcomes = _each(
        "deleteConsumerGroups(api=FIND_COORDINATOR)",
        group_ids,
        lambda: admin.delete_consumer_groups(group_ids, timeout_ms),
    )
    failed = {group_id: refused for group_id, refused in outcomes.items() if refused is not None}
    deleted = ", ".join(f"'{name}'" for name in hash_map_order(name for name in outcomes if name not in failed))
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for group_id in hash_map_order(failed):
        print(f"* Group '{group_id}' could not be deleted due to: {own_line(failed[group_id].failure)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


def delete_offsets(admin: Admin, group_id: str, topics: list[str], timeout_ms: int) -> None:
    partitions, results = _find_partitions(admin, topics, timeout_ms)
    found = _each(
        "offsetDelete(api=FIND_COORDINATOR)",
        partitions,
        lambda: admin.delete_consumer_group_offsets(group_id, partitions, timeout_ms),
    )
    if partitions:
        first = next((found[each] for each in partitions if found[each] is not None), None)
    else:
        # Nothing was asked; whether the group exists is said all the same.
        described = ask("", lambda: admin.describe_consumer_groups([group_id], timeout_ms=timeout_ms))
        first = _refusal(described[group_id].error)
    _print_verdict(group_id, first)
    results.update(found)
    width = max([TOPIC_WIDTH, *(width_of(partition.topic) for partition in results)])
    print(f"\n{pad('TOPIC', width)} {pad('PARTITION', 10)} {pad('STATUS', 15)}")
    # Kafka sorts by the topic with the number behind it, as text.
    for partition in sorted(results, key=lambda each: f"{each.topic}{each.partition}"):
        refused = results[partition]
        status = "Successful" if refused is None else f"Error: {own_line(refused.failure)}"
        number = "-" if partition.partition < 0 else str(partition.partition)
        print(f"{pad(partition.topic, width)} {pad(number, 10)} {pad(status, 15)}")


def _find_partitions(
    admin: Admin, topics: list[str], timeout_ms: int
) -> tuple[list[TopicPartition], dict[TopicPartition, Refused | None]]:
    """The partitions that are meant; a topic that cannot be described is a result already."""
    partitions = [partition for text in dict.fromkeys(topics) if ":" in text for partition in read_topic(text)]
    results: dict[TopicPartition, Refused | None] = {}
    whole = [text for text in dict.fromkeys(topics) if ":" not in text]
    if whole:
        for topic, found in ask("describeTopics", lambda: admin.describe_topics(whole, timeout_ms)).items():
            if found.error is not None:
                results[TopicPartition(topic, -1)] = _refusal(found.error)
            else:
                partitions += [TopicPartition(topic, index) for index in found.get().partitions]
    return hash_order(partitions, partition_hash), results


def _print_verdict(group_id: str, refused: Refused | None) -> None:
    if refused is None:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    elif refused.name in ABOUT_THE_GROUP:
        print_error(refused.failure.message or "")
    elif refused.name in ABOUT_PARTITIONS:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {refused.name}")
