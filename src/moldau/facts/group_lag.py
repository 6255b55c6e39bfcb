"""How far a group of consumers is behind: its committed offsets beside the ends of the partitions and their readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.errors import ClientError
from moldau.client.offsets import LATEST
from moldau.client.results import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin, GroupDescription, MemberDescription
    from moldau.client.results import OffsetAndTimestamp, Outcome

Committed = dict[TopicPartition, OffsetAndMetadata | None]


class LagRow(NamedTuple):
    """One partition of a group; None: not known. member is None where nobody reads the partition."""

    partition: TopicPartition
    committed: OffsetAndMetadata | None
    end_offset: int | None
    member: MemberDescription | None

    @property
    def offset(self) -> int | None:
        return None if self.committed is None else self.committed.offset

    @property
    def leader_epoch(self) -> int | None:
        return None if self.committed is None or self.committed.leader_epoch < 0 else self.committed.leader_epoch

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end_offset is None:
            return None
        return self.end_offset - self.committed.offset


def partitions_of_group(group: GroupDescription, committed: Committed) -> list[TopicPartition]:
    """Every partition that a member has or that an offset was committed for."""
    assigned = [partition for member in group.members for partition in member.assignment]
    return list(dict.fromkeys([*assigned, *committed]))


def lag_rows(
    group: GroupDescription,
    committed: Committed,
    end_offsets: Mapping[TopicPartition, int | None],
) -> list[LagRow]:
    """Members with many partitions first, as Kafka orders them; partitions that nobody reads last."""
    rows = []
    assigned: set[TopicPartition] = set()
    for member in sorted(group.members, key=lambda member: -len(member.assignment)):
        assigned.update(member.assignment)
        rows += [
            LagRow(partition, committed.get(partition), end_offsets.get(partition), member)
            for partition in sorted(member.assignment)
        ]
    rest = sorted(partition for partition in committed if partition not in assigned)
    rows += [LagRow(partition, committed[partition], end_offsets.get(partition), None) for partition in rest]
    return rows


def total_lag(rows: Iterable[LagRow]) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [row.lag for row in rows if row.lag is not None]
    return sum(known) if known else None


def fetch_committed(
    admin: Admin, group_ids: Iterable[str], timeout_ms: int | None = None
) -> dict[str, Committed | ClientError]:
    """All committed offsets of each group, or what the coordinator says against one of them."""
    wanted: dict[str, None] = dict.fromkeys(group_ids)
    found = admin.list_consumer_group_offsets(wanted, timeout_ms=timeout_ms) if wanted else {}
    committed: dict[str, Committed | ClientError] = {}
    for group_id in wanted:
        try:
            committed[group_id] = {each: outcome.get() for each, outcome in found[group_id].get().items()}
        except ClientError as error:
            committed[group_id] = error
    return committed


def committed_of(admin: Admin, group_id: str, timeout_ms: int | None = None) -> Committed:
    """Those of one group; raises."""
    found = fetch_committed(admin, [group_id], timeout_ms)[group_id]
    if isinstance(found, ClientError):
        raise found
    return found


def fetch_end_offsets(
    admin: Admin, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
) -> dict[TopicPartition, int | None]:
    """The end of each partition; None for one that cannot be asked for now, or that is gone."""
    wanted = list(partitions)
    topics = admin.describe_topics({partition.topic for partition in wanted}, timeout_ms) if wanted else {}
    asked = []
    for partition in wanted:
        topic = topics[partition.topic]
        found = None if topic.error is not None else topic.get().partitions.get(partition.partition)
        if found is not None and found.leader >= 0:
            asked.append(partition)
    ends = fetch_offsets(admin, asked, LATEST, timeout_ms)
    return {partition: _offset_or_none(ends.get(partition)) for partition in wanted}


def fetch_offsets(
    admin: Admin, partitions: Iterable[TopicPartition], when: int, timeout_ms: int | None = None
) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    """when: a time or a special value of moldau.client.offsets. Nobody is asked about no partitions."""
    wanted = dict.fromkeys(partitions, when)
    return admin.list_offsets(wanted, timeout_ms=timeout_ms) if wanted else {}


def _offset_or_none(found: Outcome[OffsetAndTimestamp] | None) -> int | None:
    return None if found is None or found.error is not None else found.get().offset
