"""Committed offsets: commit, fetch, delete, and their end: by age, with their topic, or with their group."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.group import CONSUMER, SHARE, STREAMS, Group
from moldau.coordinator.group.offset_records import (
    NO_EXPIRY,
    CommittedOffset,
    decode_offset_key,
    decode_offset_value,
    encode_offset_key,
    encode_offset_value,
)
from moldau.coordinator.group.offset_table import TopicOffsets
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.offset_commit_request import OffsetCommitRequest
from moldau.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from moldau.protocol.messages.offset_delete_request import OffsetDeleteRequest
from moldau.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup
from moldau.protocol.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from moldau.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from moldau.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.protocol.uuids import ZERO_UUID

EXPIRY_TIMER: Final = "offsets:expire"
DELETED_TOPICS_TIMER: Final = "offsets:deleted topics"
FIRST_VERSION_WITH_GROUP_NOT_FOUND: Final = 9
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
DEFAULT_RETENTION: Final = -1
LOOK_AGAIN_MS: Final = 500


class Offsets(GroupPart):
    """See the module. Verbs raise KafkaError for what concerns the whole request."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state
        self._table = state.offsets
        # Topics whose offsets are still to be removed, by id: the name, and the last offset there was for it. What
        # comes later is of a topic of the same name that was made since.
        self._deleted_topics: dict[bytes, tuple[str, int]] = {}

    # Replay

    def replay_commit(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        if value is not None and producer_id < 0:
            self._table.put_by_key(key, decode_offset_value(value, offset))
            return
        group_id, topic, partition = decode_offset_key(key)
        if value is None:
            self._table.remove(group_id, topic, partition)
        else:
            committed = decode_offset_value(value, offset)
            self._table.put_pending(producer_id, group_id, topic, partition, committed)

    # Commit

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> Outcome:
        """The topics of the request have names, and all of their partitions exist."""
        group = self._check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            version,
            now_ms,
        )
        wall_ms = self._state.wall.at(now_ms)
        expire_ms = NO_EXPIRY
        if request.retention_time_ms != DEFAULT_RETENTION:
            expire_ms = wall_ms + request.retention_time_ms
        longest = self._state.settings.offset_metadata_bytes_max
        group_id = request.group_id
        records: list[StoredRecord] = []
        response = OffsetCommitResponse()
        for topic in request.topics:
            name = topic.name
            rows: list[OffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                index = partition.partition_index
                metadata = "" if partition.committed_metadata is None else partition.committed_metadata
                if metadata and java_length(metadata) > longest:
                    rows.append(OffsetCommitResponsePartition(index, errors.OFFSET_METADATA_TOO_LARGE))
                    continue
                if group is not None:
                    group.check_partition_commit(
                        request.member_id, request.generation_id_or_member_epoch, name, topic.topic_id, index
                    )
                value = encode_offset_value(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    wall_ms,
                    expire_ms,
                    topic.topic_id,
                )
                records.append((encode_offset_key(group_id, name, index), value))
                rows.append(OffsetCommitResponsePartition(index, 0))
            response.topics.append(OffsetCommitResponseTopic(name, topic.topic_id, rows))
        self._state.settings.counts.offset_commits += len(records)
        return Outcome(records, response)

    def commit_in_transaction(self, request: TxnOffsetCommitRequest, version: int, now_ms: int) -> Outcome:
        """The same as part of a transaction: pending until its marker. All partitions of the request exist."""
        self._check_transactional_commit(request, version, now_ms)
        longest = self._state.settings.offset_metadata_bytes_max
        wall_ms = self._state.wall.at(now_ms)
        records: list[StoredRecord] = []
        response = TxnOffsetCommitResponse()
        for topic in request.topics:
            rows: list[TxnOffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                index = partition.partition_index
                metadata = "" if partition.committed_metadata is None else partition.committed_metadata
                if metadata and java_length(metadata) > longest:
                    rows.append(TxnOffsetCommitResponsePartition(index, errors.OFFSET_METADATA_TOO_LARGE))
                    continue
                value = encode_offset_value(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    metadata,
                    wall_ms,
                    NO_EXPIRY,
                    ZERO_UUID,
                )
                records.append((encode_offset_key(request.group_id, topic.name, index), value))
                rows.append(TxnOffsetCommitResponsePartition(index, 0))
            response.topics.append(TxnOffsetCommitResponseTopic(topic.name, rows))
        return Outcome(records, response, producer_id=request.producer_id, producer_epoch=request.producer_epoch)

    def _check_transactional_commit(self, request: TxnOffsetCommitRequest, version: int, now_ms: int) -> None:
        group = self._state.find_group(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise KafkaError(errors.ILLEGAL_GENERATION)
            return
        try:
            group.check_offset_commit(
                request.member_id, request.group_instance_id, request.generation_id, True, version, now_ms
            )
            if group.kind in (CONSUMER, STREAMS) and request.member_id:
                for topic in request.topics:
                    found = self._state.image.topics_by_name.get(topic.name)
                    topic_id = ZERO_UUID if found is None else found.topic_id
                    for partition in topic.partitions:
                        group.check_partition_commit(
                            request.member_id, request.generation_id, topic.name, topic_id, partition.partition_index
                        )
        except KafkaError as error:
            if error.code == errors.STALE_MEMBER_EPOCH:
                # Producers know the errors of classic groups only.
                raise KafkaError(errors.ILLEGAL_GENERATION) from error
            raise

    def _check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, version: int, now_ms: int
    ) -> Group | None:
        """Raises if this member may not commit; returns the group if it is to be asked about every partition."""
        group = self._state.find_group(group_id)
        if group is not None:
            group.check_offset_commit(member_id, instance_id, generation, False, version, now_ms)
            return group if group.kind in (CONSUMER, STREAMS) else None
        if generation >= 0:
            # Without a generation it is somebody who does not want to be a member: the first commit makes the group.
            if version >= FIRST_VERSION_WITH_GROUP_NOT_FOUND:
                raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
            raise KafkaError(errors.ILLEGAL_GENERATION)
        return None

    # Fetch

    def fetch(self, request: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        """The offsets of the named partitions; -1 where there is none. Topics that are None: all that there are."""
        group_id = request.group_id
        response = OffsetFetchResponseGroup(group_id=group_id)
        group = self._state.find_group(group_id)
        if group is not None and group.kind != SHARE:  # which has no offsets: they are all unknown
            group.check_offset_fetch(request.member_id, request.member_epoch)
        if request.topics is None:
            for name, known in self._table.of_group(group_id).items():
                response.topics.append(self._fetch_whole_topic(group_id, name, known, require_stable))
            return response
        offsets = self._table.of_group(group_id)
        nothing: TopicOffsets = {}
        for topic in request.topics:
            known = offsets.get(topic.name, nothing)
            rows: list[OffsetFetchResponsePartitions] = []
            for index in topic.partition_indexes:
                committed = known.get(index)
                if committed is not None and is_other_topic(committed.topic_id, topic.topic_id):
                    committed = None
                rows.append(self._fetched(group_id, topic.name, index, committed, require_stable))
            response.topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, rows))
        return response

    def _fetch_whole_topic(
        self, group_id: str, name: str, known: TopicOffsets, require_stable: bool
    ) -> OffsetFetchResponseTopics:
        rows: list[OffsetFetchResponsePartitions] = []
        topic_id = ZERO_UUID
        for index, committed in known.items():
            topic_id = committed.topic_id
            rows.append(self._fetched(group_id, name, index, committed, require_stable))
        return OffsetFetchResponseTopics(name, topic_id, rows)

    def _fetched(
        self, group_id: str, topic: str, index: int, committed: CommittedOffset | None, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        if require_stable and self._table.is_pending(group_id, topic, index):
            return OffsetFetchResponsePartitions(index, NO_OFFSET, NO_EPOCH, "", errors.UNSTABLE_OFFSET_COMMIT)
        if committed is None:
            return OffsetFetchResponsePartitions(index, NO_OFFSET, NO_EPOCH, "", 0)
        return OffsetFetchResponsePartitions(
            index, int(committed.offset), int(committed.leader_epoch), committed.metadata, 0
        )

    # Delete

    def delete(self, request: OffsetDeleteRequest) -> Outcome:
        """All partitions of the request exist. Those of topics that members are subscribed to are kept."""
        group_id = request.group_id
        group = self._state.get_group(group_id)
        group.check_offset_delete()
        records: list[StoredRecord] = []
        response = OffsetDeleteResponse()
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            rows: list[OffsetDeleteResponsePartition] = []
            for partition in topic.partitions:
                index = partition.partition_index
                code = errors.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else 0
                if not subscribed and self._has_any(group_id, topic.name, index):
                    records.append((encode_offset_key(group_id, topic.name, index), None))
                rows.append(OffsetDeleteResponsePartition(index, code))
            response.topics.append(OffsetDeleteResponseTopic(topic.name, rows))
        self._state.settings.counts.offset_deletions += len(records)
        return Outcome(records, response)

    def _has_any(self, group_id: str, topic: str, partition: int) -> bool:
        table = self._table
        return table.find(group_id, topic, partition) is not None or table.is_pending(group_id, topic, partition)

    def tombstones_of(self, group_id: str) -> list[StoredRecord]:
        """Removes every offset of a group, those of open transactions too."""
        records: list[StoredRecord] = []
        topics = self._table.of_group(group_id)
        for topic, partitions in topics.items():
            for index in partitions:
                records.append((encode_offset_key(group_id, topic, index), None))
        for topic, index in self._table.pending_partitions(group_id):
            if index not in topics.get(topic, {}):
                records.append((encode_offset_key(group_id, topic, index), None))
        return records

    # The end of offsets

    def on_loaded(self, now_ms: int) -> Outcome | None:
        self._schedule_expiry(now_ms)
        return None

    def _schedule_expiry(self, now_ms: int) -> None:
        check_ms = self._state.settings.offsets_retention_check_ms
        self._state.timers.schedule(EXPIRY_TIMER, now_ms + check_ms, self._expire)

    def _expire(self, now_ms: int) -> Outcome | None:
        """Removes what is old enough, and groups of which nothing is left; not while the wall clock is in doubt."""
        self._schedule_expiry(now_ms)
        records: list[StoredRecord] = []
        if not self._state.wall.may_delete_by_age:
            return None
        wall_ms = self._state.wall.at(now_ms)
        for group_id in self._state.group_ids():
            if self._expire_group(group_id, records, wall_ms):
                group = self._state.get_group(group_id)
                # Only an administrator ends a share group: what it has is not offsets, and does not get old.
                if group.is_empty() and group.kind != SHARE:
                    records += group.tombstones()
        return Outcome(records, atomic=False) if records else None

    def _expire_group(self, group_id: str, records: list[StoredRecord], wall_ms: int) -> bool:
        """Adds a tombstone for each offset that is due; True if the group has none that stays."""
        table = self._table
        group = self._state.get_group(group_id)
        all_expired = not table.has_pending(group_id)
        for topic, partitions in table.of_group(group_id).items():
            if group.is_subscribed_to(topic):
                all_expired = False
                continue
            for index, committed in partitions.items():
                since_ms = group.offsets_expire_from(topic, int(committed.commit_ms))
                if self._is_expired(committed, since_ms, wall_ms) and not table.is_pending(group_id, topic, index):
                    self._state.settings.counts.offset_expirations += 1
                    records.append((encode_offset_key(group_id, topic, index), None))
                else:
                    all_expired = False
        return all_expired

    def _is_expired(self, committed: CommittedOffset, since_ms: int, wall_ms: int) -> bool:
        if since_ms < 0:
            return False
        if committed.expire_ms != NO_EXPIRY:
            return wall_ms >= int(committed.expire_ms)
        return wall_ms - since_ms >= self._state.settings.offsets_retention_ms

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> Outcome | None:
        if not delta.deleted_topics:
            return None
        for topic_id, topic in delta.deleted_topics.items():
            self._deleted_topics[topic_id] = (topic.name, self._last_of_topic(topic.name))
        return self._forget_deleted_topics(now_ms)

    def _last_of_topic(self, topic: str) -> int:
        """The place in the log of the last offset for the topic, committed or in an open transaction."""
        last = -1
        for topics in self._table.by_group.values():
            for committed in topics.get(topic, {}).values():
                last = max(last, int(committed.record_offset))
        for _, _, record_offset in self._table.pending_of_topic(topic):
            last = max(last, record_offset)
        return last

    def _forget_deleted_topics(self, now_ms: int) -> Outcome | None:
        keys: set[bytes] = set()
        is_waiting = False
        for topic_id, (topic, last) in self._deleted_topics.items():
            to_delete: set[tuple[str, int]] = set()
            newer: set[tuple[str, int]] = set()
            for group_id, topics in self._table.by_group.items():
                for index, committed in topics.get(topic, {}).items():
                    # A topic of the same name may be there again, and with offsets of its own.
                    if int(committed.record_offset) <= last and not is_other_topic(committed.topic_id, topic_id):
                        to_delete.add((group_id, index))
            for group_id, index, record_offset in self._table.pending_of_topic(topic):
                if record_offset <= last:
                    to_delete.add((group_id, index))
                else:
                    newer.add((group_id, index))
            for place in to_delete:
                if place in newer:
                    is_waiting = True  # a tombstone would take both
                else:
                    keys.add(encode_offset_key(place[0], topic, place[1]))
        if keys:
            records: list[StoredRecord] = [(key, None) for key in sorted(keys)]
            return Outcome(records, on_written=self._on_topics_forgotten, atomic=False)
        if is_waiting:
            self._look_again(now_ms)
        else:
            self._deleted_topics.clear()
        return None

    def _on_topics_forgotten(self, error: KafkaError | None, now_ms: int) -> None:
        # Looks again, also after success: then there is nothing left and the list is cleared.
        self._look_again(now_ms)

    def _look_again(self, now_ms: int) -> None:
        self._state.timers.schedule(DELETED_TOPICS_TIMER, now_ms + LOOK_AGAIN_MS, self._forget_deleted_topics)


def java_length(text: str) -> int:
    """The length of a Java string, which counts characters beyond the basic plane twice."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-be", "surrogatepass")) // 2


def is_other_topic(one: bytes, other: bytes) -> bool:
    """Two ids that are known and differ: topics of the same name that lived one after the other."""
    return one != other and one != ZERO_UUID and other != ZERO_UUID
