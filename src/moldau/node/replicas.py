"""The partitions whose replicas live on this broker; follows the metadata: create, lead, reconfigure, delete.

Kafka keeps the same in ReplicaManager. The metadata image is the truth; `apply` makes the replicas agree with it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from moldau.config.log_config import LogConfig
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import (
    BROKER_RESOURCE,
    LOST_DIRECTORY,
    NO_LEADER,
    TOPIC_RESOURCE,
    UNASSIGNED_DIRECTORY,
    PartitionRegistration,
)
from moldau.node.directory_moves import DirectoryMoves
from moldau.node.fetchers import Fetchers
from moldau.node.topic_names import INTERNAL_TOPICS
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.clocks import AT_ONCE_MS, NEVER_MS
from moldau.replication.partition import Partition, ReplicationContext
from moldau.replication.throttle import UNLIMITED
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_manager import LogManager

FIRST_DIRECTORY_VERSION = 17
"""The level of metadata.version (3.7-IV2) from which on the controller knows the directories of replicas."""

NEW_LOGS_PER_TURN = 25
"""With a slow disk each of them takes milliseconds, and whoever talks to this node should not wait for all of them."""

log = logging.getLogger("moldau.node")


class NewLog:
    """A log that is made when its name is free."""

    def __init__(self, replicas: Replicas, topic_id: bytes, index: int, is_new: bool) -> None:
        self._replicas = replicas
        self._topic_id = topic_id
        self._index = index
        self._is_new = is_new

    def create(self) -> None:
        self._replicas.create_in_next_turn(self._topic_id, self._index, self._is_new)


class Replicas:
    """All partitions of this broker, by topic name and index."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        log_config_of: Callable[[str], LogConfig],
        fetchers: Fetchers | None = None,
        moves: DirectoryMoves | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self.fetchers = fetchers
        self.moves = moves
        if moves is not None:
            moves.tell_directory = self._tell_directory
        self._log_config_of = log_config_of
        self.context = ReplicationContext()
        self._image = MetadataImage()
        self._by_topic: dict[str, dict[int, Partition]] = {}
        # By topic id and index: replicas that are in another directory than the metadata says, and in which.
        self.misplaced: dict[tuple[bytes, int], bytes] = {}
        self._not_created: list[Partition] = []
        # By topic id, index and whether the partition is new: replicas whose turn has not come. Until then this broker
        # neither leads nor follows them.
        self._to_be_created: deque[tuple[bytes, int, bool]] = deque()
        self._created_in_turn = 0
        self.on_deadline: Callable[[int], None] | None = None

    # Looking up

    def find(self, topic: str, index: int) -> Partition | None:
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(index)

    def of_topic(self, topic: str) -> dict[int, Partition]:
        """By index; not to be changed by the caller."""
        return self._by_topic.get(topic, {})

    def why_missing(self, topic: str, index: int) -> KafkaError:
        """The error for a partition that is not on this broker."""
        found = self._image.topics_by_name.get(topic)
        if found is not None and index in found.partitions:
            return KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        return KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def is_internal(self, topic: str) -> bool:
        return topic in INTERNAL_TOPICS

    def all(self) -> list[Partition]:
        return [partition for partitions in self._by_topic.values() for partition in partitions.values()]

    # Following the metadata

    def apply(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        self._image = image
        self._created_in_turn = 0
        if delta.changed_brokers:
            self._note_brokers(image)
        if self.fetchers is not None and (delta.changed_brokers or delta.changed_features):
            self.fetchers.apply_image(image)
        if self.moves is not None and delta.changed_features:
            self.moves.assigns_directories = image.metadata_version >= FIRST_DIRECTORY_VERSION
        for topic in delta.deleted_topics.values():
            self._remove_topic(topic.name, topic.topic_id, now_ms)
        # Before the partitions: what is committed with the replicas they have now depends on the settings of now.
        self._apply_configs(delta, now_ms)
        for changed in delta.changed_topics.values():
            for index, registration in changed.changed_partitions.items():
                if self.broker_id in registration.replicas:
                    is_new = changed.before is None or index not in changed.before.partitions
                    self._update(changed.name, changed.topic_id, index, registration, is_new, now_ms)
                else:
                    self._remove(changed.name, index, now_ms)
        if delta.changed_brokers:
            for partition in self.all():
                if partition.leader_state is not None:
                    # Nobody waits for one that is fenced. Whoever was let in again may join where it has everything.
                    partition.advance_high_watermark(now_ms)
                    partition.maybe_expand_in_sync_replicas(now_ms)
        if self.fetchers is not None:
            # Not before all is applied: one request names all that this broker follows from now on.
            self.fetchers.poll(now_ms)

    def apply_image(self, image: MetadataImage, now_ms: int) -> None:
        """At start: takes up every replica that the metadata places here."""
        self._image = image
        self._created_in_turn = 0
        if self.moves is not None:
            self.moves.assigns_directories = image.metadata_version >= FIRST_DIRECTORY_VERSION
        self._note_brokers(image)
        self._note_throttle(image)
        if self.fetchers is not None:
            self.fetchers.apply_image(image)
        for topic in image.topics_by_id.values():
            # The logs were loaded with the settings that were known here then; others may have changed them since.
            config = self._log_config_of(topic.name)
            for index, registration in topic.partitions.items():
                if self.broker_id in registration.replicas:
                    loaded = self.logs.get(topic.name, index)
                    if loaded is not None:
                        loaded.set_config(config)
                    self._update(topic.name, topic.topic_id, index, registration, False, now_ms)

    def _note_brokers(self, image: MetadataImage) -> None:
        """Whom leaders may propose for an ISR, and whose log starts count."""
        brokers = self.context.brokers
        brokers.active_epochs = {b.broker_id: b.broker_epoch for b in image.brokers.values() if b.is_active}
        brokers.alive = {b.broker_id for b in image.brokers.values() if not b.fenced}
        brokers.racks = {b.broker_id: b.rack for b in image.brokers.values() if not b.fenced and b.rack is not None}

    def _note_throttle(self, image: MetadataImage) -> None:
        settings = {**image.broker_defaults(), **image.config(BROKER_RESOURCE, str(self.broker_id))}
        self.context.leader_quota.limit = int(settings.get("leader.replication.throttled.rate", UNLIMITED))
        if self.fetchers is not None:
            self.fetchers.quota.limit = int(settings.get("follower.replication.throttled.rate", UNLIMITED))
        if self.moves is not None:
            limit = settings.get("replica.alter.log.dirs.io.max.bytes.per.second", UNLIMITED)
            self.moves.quota.limit = int(limit)

    def _update(
        self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration, is_new: bool, now_ms: int
    ) -> None:
        partition = self.find(topic, index)
        if partition is not None and partition.topic_id != topic_id:
            # The topic was deleted and made again under the same name.
            self._remove(topic, index, now_ms)
            partition = None
        if partition is None:
            if self._is_for_later(topic, topic_id, index, is_new, now_ms):
                return
            partition = self._create(topic, topic_id, index, registration, is_new, now_ms)
        partition.adding_replicas = list(registration.adding_replicas)
        partition.is_reassigning = registration.is_reassigning
        partition.update(
            registration.leader,
            registration.leader_epoch,
            registration.partition_epoch,
            list(registration.replicas),
            list(registration.isr),
            now_ms,
        )
        self._note_directory(partition, registration.directory_of(self.broker_id), now_ms)
        if self.fetchers is not None:
            if partition.leader in (self.broker_id, NO_LEADER) or not partition.is_online():
                self.fetchers.leave(partition)
            else:
                self.fetchers.follow(partition, partition.leader, partition.leader_epoch)

    def _is_for_later(self, topic: str, topic_id: bytes, index: int, is_new: bool, now_ms: int) -> bool:
        """Whether a log must be made and this turn has made enough of them. Coordinators find their logs at once."""
        if topic in INTERNAL_TOPICS or self.logs.get(topic, index) is not None:
            return False
        if self.logs.futures.get(topic, index) is not None:
            return False
        if self.logs.checkpoints.remember((topic, index)):
            # One of the same name was deleted a moment ago: its offsets must not be found again as those of this one.
            self.logs.forget_later(topic, index, NewLog(self, topic_id, index, is_new).create)
            return True
        if self._created_in_turn < NEW_LOGS_PER_TURN and not self._to_be_created:
            self._created_in_turn += 1
            return False
        self._to_be_created.append((topic_id, index, is_new))
        if self.on_deadline is not None:
            self.on_deadline(now_ms)
        return True

    def create_in_next_turn(self, topic_id: bytes, index: int, is_new: bool) -> None:
        self._to_be_created.append((topic_id, index, is_new))
        if self.on_deadline is not None:
            self.on_deadline(AT_ONCE_MS)

    def poll(self, now_ms: int) -> int:
        """Makes some of the logs that are to be made, as the metadata has them now; returns when to call again."""
        if not self._to_be_created:
            return NEVER_MS
        waiting, self._to_be_created = self._to_be_created, deque()
        self._created_in_turn = 0
        for _ in range(min(NEW_LOGS_PER_TURN, len(waiting))):
            topic_id, index, is_new = waiting.popleft()
            topic = self._image.topics_by_id.get(topic_id)
            registration = None if topic is None else topic.partitions.get(index)
            if topic is None or registration is None or self.broker_id not in registration.replicas:
                continue
            if self.find(topic.name, index) is None:
                self._update(topic.name, topic_id, index, registration, is_new, now_ms)
        self._to_be_created = waiting
        return now_ms if waiting else NEVER_MS

    def _note_directory(self, partition: Partition, assigned: bytes, now_ms: int) -> None:
        """Whether the controller must be told where the replica is; or, if it is about to move, will be."""
        actual = LOST_DIRECTORY if partition.log is None else partition.log.log_directory.directory_id
        promised = None if self.moves is None else self.moves.promised_directory(partition)
        key = (partition.topic_id, partition.index)
        if promised is not None:
            actual = promised
        if actual not in (assigned, UNASSIGNED_DIRECTORY):
            self.misplaced[key] = actual
        else:
            self.misplaced.pop(key, None)
            if promised is not None and self.moves is not None:
                self.moves.on_assigned(partition, now_ms)

    def _tell_directory(self, partition: Partition, now_ms: int) -> None:
        registration = self._image.partition(partition.topic_id, partition.index)
        if registration is not None:
            self._note_directory(partition, registration.directory_of(self.broker_id), now_ms)

    def _create(
        self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration, is_new: bool, now_ms: int
    ) -> Partition:
        partition = Partition(topic, topic_id, index, self.broker_id, None, self.context)
        partition.counts = self.context.counts.partition_added(topic)
        try:
            partition.log = self._open_log(topic, topic_id, index, registration, is_new, now_ms)
        except KafkaError as error:
            log.error("cannot open the log of %s-%d: %s; the partition is offline here", topic, index, error.message)
            if is_new:
                self._not_created.append(partition)
        if partition.log is not None:
            known = self.logs.checkpoints.high_watermarks.pop((topic, index), partition.log.log_start_offset)
            bounded = min(max(known, partition.log.log_start_offset), partition.log.log_end_offset)
            partition.high_watermark.restart_at(bounded)
            if self.moves is not None:
                self.moves.resume(partition, now_ms)
        self._by_topic.setdefault(topic, {})[index] = partition
        return partition

    def create_late(self, now_ms: int) -> None:
        """New partitions for which there was no space: the first that can be made now shows that there is some."""
        waiting, self._not_created = self._not_created, []
        for number, partition in enumerate(waiting):
            if self.find(partition.topic, partition.index) is not partition:
                continue
            try:
                partition.log = self.logs.create(partition.topic, partition.index, partition.topic_id, now_ms)
            except KafkaError:
                self._not_created += waiting[number:]
                return
            log.info("created the log of %s-%d, there is space again", partition.topic, partition.index)
            self._note_directory(partition, LOST_DIRECTORY, now_ms)

    def _open_log(
        self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration, is_new: bool, now_ms: int
    ) -> Log:
        existing = self.logs.get(topic, index)
        if existing is not None:
            if existing.topic_id == ZERO_UUID:
                self.logs.set_topic_id(existing, topic_id)
            if existing.topic_id == topic_id:
                return existing
            # Left over from a topic of the same name that was deleted while this node was down.
            self.logs.rename_to_stray(topic, index)
        offline = [directory.path for directory in self.logs.directories if directory.failed]
        assigned = registration.directory_of(self.broker_id)
        future = self.logs.futures.get(topic, index)
        if future is not None and future.topic_id == ZERO_UUID:
            self.logs.set_topic_id(future, topic_id)
        if future is not None and future.topic_id == topic_id and assigned == future.log_directory.directory_id:
            # The run before ended in the middle of the swap: the controller knew already, so it had caught up.
            return self.logs.futures.take_over_at_start(topic, index, now_ms)
        directory = None if assigned == UNASSIGNED_DIRECTORY else self.logs.directory_by_id(assigned)
        if not is_new and offline and (directory is None or directory.failed):
            # Its records are most likely there: an empty log in another directory would hide that they are missing.
            raise KafkaError(
                errors.KAFKA_STORAGE_ERROR, f"no online log directory has it, offline are {', '.join(offline)}"
            )
        if self.moves is not None and directory is None:
            preferred = self.moves.preferred.pop((topic, index), None)
            for candidate in self.logs.online_directories():
                if candidate.path == preferred:
                    directory = candidate
        return self.logs.create(topic, index, topic_id, now_ms, directory)

    def rename_stray_logs(self, now_ms: int = 0) -> None:
        """After the first image: logs that the metadata does not place here make room."""
        for topic, index in list(self.logs.futures.logs):
            if self.find(topic, index) is None:
                self.logs.futures.remove(topic, index, now_ms)
        for topic, index in list(self.logs.logs):
            if self.find(topic, index) is None:
                self.logs.rename_to_stray(topic, index)

    def _remove_topic(self, topic: str, topic_id: bytes, now_ms: int) -> None:
        for index, partition in list(self._by_topic.get(topic, {}).items()):
            if partition.topic_id == topic_id:
                self._remove(topic, index, now_ms)

    def _remove(self, topic: str, index: int, now_ms: int) -> None:
        partitions = self._by_topic.get(topic, {})
        partition = partitions.pop(index, None)
        if not partitions:
            self._by_topic.pop(topic, None)
        if partition is None:
            return
        self.context.counts.partition_removed(topic)
        self.misplaced.pop((partition.topic_id, index), None)
        if self.fetchers is not None:
            self.fetchers.leave(partition)
        if self.moves is not None:
            self.moves.cancel(partition, now_ms)
        partition.leader = NO_LEADER
        if partition.log is not None:
            partition.log = None
            try:
                self.logs.delete(topic, index, now_ms)
            except KafkaError as error:
                # Its directory is offline now; the next start finds the directory and sets it aside.
                log.error("cannot remove the log of %s-%d: %s", topic, index, error.message)
        partition.notify_changed(now_ms)

    def _apply_configs(self, delta: MetadataDelta, now_ms: int) -> None:
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC_RESOURCE:
                self._reconfigure(name, now_ms)
            elif resource_type == BROKER_RESOURCE and name in ("", str(self.broker_id)):
                self._note_throttle(self._image)
                for topic in list(self._by_topic):
                    self._reconfigure(topic, now_ms)

    def _reconfigure(self, topic: str, now_ms: int) -> None:
        partitions = self._by_topic.get(topic)
        if not partitions:
            return
        config = self._log_config_of(topic)
        for partition in partitions.values():
            if partition.log is not None:
                partition.log.set_config(config)
                if partition.leader_state is not None:
                    partition.advance_high_watermark(now_ms)  # fewer replicas in sync may be enough now

    # Housekeeping

    def on_directory_failed(self, directory: LogDirectory, now_ms: int) -> None:
        """What lies in it is not fetched any more; the controller will take away what this broker leads there."""
        if self.moves is not None:
            self.moves.on_directory_failed(directory, now_ms)
        for partition in self.all():
            if partition.log is not None and partition.log.log_directory is directory:
                if self.fetchers is not None:
                    self.fetchers.leave(partition)
                registration = self._image.partition(partition.topic_id, partition.index)
                if registration is not None and registration.directory_of(self.broker_id) != directory.directory_id:
                    # The controller believes it elsewhere, so it would not miss it.
                    self.misplaced[(partition.topic_id, partition.index)] = LOST_DIRECTORY

    def on_durable(self, partition_log: Log, now_ms: int) -> None:
        if self.fetchers is not None:
            self.fetchers.on_durable(partition_log, now_ms)
        partition = self.find(partition_log.topic, partition_log.partition)
        if partition is not None and partition.log is partition_log:
            partition.on_durable(now_ms)

    def on_released(self, partition_log: Log, now_ms: int) -> None:
        """It takes records again, after a truncation."""
        if self.fetchers is not None:
            self.fetchers.on_released(partition_log, now_ms)
        if self.moves is not None:
            self.moves.on_released(partition_log, now_ms)

    def high_watermark_of(self, partition_log: Log) -> int:
        partition = self.find(partition_log.topic, partition_log.partition)
        return partition_log.log_start_offset if partition is None else partition.high_watermark.offset

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        return {
            (partition.topic, partition.index): partition.high_watermark.offset
            for partition in self.all()
            if partition.log is not None
        }
