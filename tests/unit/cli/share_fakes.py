"""A scripted cluster for the tests of share group commands, beside that of group_fakes.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.client.admin import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    GroupListing,
    Listing,
    SharePartitionOffset,
)
from moldau.client.errors import ClientError, error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors as codes
from tests.unit.cli.group_fakes import BROKER, cluster, group, member
from tests.unit.cli.kafka.fakes import FakeAdmin

Starts = Mapping[TopicPartition, SharePartitionOffset | None]


def share(group_id: str, state: str = "Empty", *assignments: list[TopicPartition]) -> GroupDescription:
    members = [member(f"m{index}", assigned, epoch=4) for index, assigned in enumerate(assignments)]
    return group(group_id, state, members, "share", "simple", 5)


def share_cluster(*groups: GroupDescription, starts: Starts | None = None, **more: object) -> FakeAdmin:
    """The topic orders has four partitions, from offset 10 to 50; `starts` holds for every group that is there."""
    known = {each.group_id: each for each in groups}
    offsets = {each: Outcome(start) for each, start in (starts or {}).items()}

    def missing(name: str) -> ClientError:
        return error_for(codes.GROUP_ID_NOT_FOUND, f"Group {name} not found.")

    def describe(names: Iterable[str], **_: object) -> dict[str, Outcome[GroupDescription]]:
        return {name: Outcome(known[name]) if name in known else Outcome(error=missing(name)) for name in names}

    def forget(name: str, topics: Iterable[str], *_: object) -> dict[str, Outcome[None]]:
        unknown = error_for(codes.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete.")
        if name not in known:
            return {topic: Outcome(error=missing(name)) for topic in topics}
        return {topic: Outcome(None) if topic == "orders" else Outcome(error=unknown) for topic in topics}

    def list_groups(states: Iterable[str] = (), types: Iterable[str] = (), **_: object) -> Listing[GroupListing]:
        wanted, kinds = list(states), list(types)
        rows = [
            GroupListing(each.group_id, "share" if each.type == "share" else "consumer", each.state, each.type)
            for each in groups
            if (not wanted or each.state in wanted) and (not kinds or each.type in kinds)
        ]
        return Listing(rows, {})

    def configs(resources: Iterable[ConfigResource], **_: object) -> dict[ConfigResource, Outcome[list[ConfigEntry]]]:
        return {each: Outcome([]) for each in resources}

    answers: dict[str, object] = {
        "describe_share_groups": describe,
        "list_share_group_offsets": lambda names, *_: {
            name: Outcome(offsets if name in known else {}) for name in names
        },
        "alter_share_group_offsets": lambda name, new, *_: {each: Outcome(None) for each in new},
        "delete_share_group_offsets": forget,
        "delete_share_groups": lambda names, *_: {
            name: Outcome(None) if name in known else Outcome(error=missing(name)) for name in names
        },
        "list_groups": list_groups,
        "describe_cluster": lambda *_: ClusterDescription("c", 1, [BROKER], set()),
        "describe_configs": configs,
        **more,
    }
    return cluster(**answers)
