"""A scripted cluster for the tests of group commands: one topic, and groups as a test lays them down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.client.admin import GroupDescription, GroupListing, Listing, MemberDescription
from moldau.client.connection.cluster import Broker, PartitionMetadata, TopicMetadata
from moldau.client.errors import error_for
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.results import OffsetAndMetadata, OffsetAndTimestamp, Outcome, TopicPartition
from moldau.protocol import errors as codes
from tests.unit.cli.kafka.fakes import FakeAdmin

BROKER = Broker(1, "127.0.0.1", 9092, None)
START, END = 10, 50
# Records of the scripted topic have these times, one by one.
FIRST_MS = 1_000_000


def orders(*partitions: int) -> list[TopicPartition]:
    return [TopicPartition("orders", index) for index in partitions]


def member(
    member_id: str,
    assignment: list[TopicPartition],
    client_id: str = "app",
    instance: str | None = None,
    target: list[TopicPartition] | None = None,
    epoch: int | None = None,
    upgraded: bool | None = None,
) -> MemberDescription:
    return MemberDescription(
        member_id, instance, None, client_id, "/10.0.0.1", assignment, target, epoch, is_upgraded=upgraded
    )


def group(
    group_id: str,
    state: str = "Stable",
    members: Iterable[MemberDescription] = (),
    type: str = "classic",
    assignor: str = "range",
    epoch: int | None = None,
) -> GroupDescription:
    return GroupDescription(
        group_id, type, state, BROKER, assignor, list(members), group_epoch=epoch, assignment_epoch=epoch
    )


def cluster(
    *groups: GroupDescription,
    committed: Mapping[TopicPartition, int] | None = None,
    leaderless: Iterable[int] = (),
    **more: object,
) -> FakeAdmin:
    """The topic orders has four partitions, from offset 10 to 50; `committed` holds for every group."""
    known = {each.group_id: each for each in groups}
    offsets = {each: Outcome(OffsetAndMetadata(offset, 3)) for each, offset in (committed or {}).items()}
    dead = set(leaderless)

    def describe_consumer_groups(group_ids: Iterable[str], **_: object) -> dict[str, Outcome[GroupDescription]]:
        return {
            name: Outcome(known[name])
            if name in known
            else Outcome(error=error_for(codes.GROUP_ID_NOT_FOUND, f"Group {name} not found."))
            for name in group_ids
        }

    def describe_topics(names: Iterable[str], *_: object) -> dict[str, Outcome[TopicMetadata]]:
        return {name: _topic(dead) if name == "orders" else _unknown_topic(name) for name in names}

    answers: dict[str, object] = {
        "describe_consumer_groups": describe_consumer_groups,
        "describe_topics": describe_topics,
        "list_offsets": _list_offsets,
        "list_consumer_group_offsets": lambda wanted, **_: {name: Outcome(offsets) for name in wanted},
        "list_consumer_groups": lambda *_: listing(*groups),
        "list_groups": lambda *_, **__: listing(*groups),
        "alter_consumer_group_offsets": lambda name, new, *_: {each: Outcome(None) for each in new},
        "delete_consumer_group_offsets": lambda name, wanted, *_: {each: Outcome(None) for each in wanted},
        "delete_consumer_groups": lambda names, *_: {name: _deletion(known, name) for name in names},
        **more,
    }
    return FakeAdmin(**answers)


def listing(*groups: GroupDescription) -> Listing[GroupListing]:
    return Listing([GroupListing(each.group_id, "consumer", each.state, each.type) for each in groups], {})


def _topic(leaderless: set[int]) -> Outcome[TopicMetadata]:
    partitions = {
        index: PartitionMetadata("orders", index, -1 if index in leaderless else 1, 0, [1], [1], [])
        for index in range(4)
    }
    return Outcome(TopicMetadata("orders", b"\1" * 16, False, partitions))


def _unknown_topic(name: str) -> Outcome[TopicMetadata]:
    return Outcome(error=error_for(codes.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} does not exist."))


def _list_offsets(
    wanted: Mapping[TopicPartition, int], **_: object
) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    found = {}
    for partition, when in wanted.items():
        offset = {EARLIEST: START, LATEST: END}.get(when, START + max(0, when - FIRST_MS))
        found[partition] = Outcome(OffsetAndTimestamp(offset if offset <= END else -1, when, 0))
    return found


def _deletion(known: Mapping[str, GroupDescription], name: str) -> Outcome[None]:
    if name not in known:
        return Outcome(error=error_for(codes.GROUP_ID_NOT_FOUND, f"Group {name} does not exist."))
    if known[name].members:
        return Outcome(error=error_for(codes.NON_EMPTY_GROUP, f"Group {name} has members."))
    return Outcome(None)
