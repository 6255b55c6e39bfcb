"""The things the cluster's metadata is made of: brokers, controllers, topics, partitions.

Instances are never changed once they are part of an image; a change makes a new one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.protocol.stored.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

UNASSIGNED_DIRECTORY: Final = bytes(16)
LOST_DIRECTORY: Final = bytes(15) + b"\x01"
MIGRATING_DIRECTORY: Final = bytes(15) + b"\x02"
"""Reserved directory ids (KIP-858); of the first hundred none is ever a real directory."""


def is_reserved_directory(directory: bytes) -> bool:
    return directory[:15] == bytes(15) and directory[15] < 100


class EndPoint(NamedTuple):
    """One listener of a node."""

    name: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    low: int
    high: int


IDLE_EPOCHS_MAX: Final = 16


class BrokerRegistration:
    """A broker as it registered itself, and whether it takes part.

    `idle_since` are the epochs of the registrations before, newest first, if this one was never unfenced: nothing that
    counts was written since any of them. Snapshots do not have it, so images are equal without it.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "cordoned_log_dirs",
        "end_points",
        "features",
        "fenced",
        "idle_since",
        "in_controlled_shutdown",
        "incarnation_id",
        "log_dirs",
        "rack",
    )

    def __init__(
        self,
        broker_id: int,
        broker_epoch: int,
        incarnation_id: bytes,
        *,
        end_points: dict[str, EndPoint],
        features: dict[str, VersionRange],
        rack: str | None,
        fenced: bool,
        in_controlled_shutdown: bool,
        log_dirs: tuple[bytes, ...],
        cordoned_log_dirs: tuple[bytes, ...] | None,
        idle_since: tuple[int, ...] = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.incarnation_id = incarnation_id
        self.end_points = end_points
        self.features = features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
        self.idle_since = idle_since if fenced else ()

    @staticmethod
    def from_record(record: RegisterBrokerRecord, before: BrokerRegistration | None = None) -> BrokerRegistration:
        """`before`: the registration that it takes the place of."""
        cordoned = record.cordoned_log_dirs
        idle_since: tuple[int, ...] = ()
        if before is not None:
            is_same = before.broker_epoch == record.broker_epoch
            idle_since = before.idle_since if is_same else (before.broker_epoch, *before.idle_since)[:IDLE_EPOCHS_MAX]
        return BrokerRegistration(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            end_points={e.name: EndPoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points},
            features={f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in record.features},
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            log_dirs=tuple(sorted(record.log_dirs)),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
            idle_since=idle_since,
        )

    def with_changes(
        self,
        fenced: bool | None = None,
        in_controlled_shutdown: bool | None = None,
        log_dirs: tuple[bytes, ...] | None = None,
        cordoned_log_dirs: tuple[bytes, ...] | None = None,
    ) -> BrokerRegistration:
        return BrokerRegistration(
            self.broker_id,
            self.broker_epoch,
            self.incarnation_id,
            end_points=self.end_points,
            features=self.features,
            rack=self.rack,
            fenced=self.fenced if fenced is None else fenced,
            in_controlled_shutdown=self.in_controlled_shutdown
            if in_controlled_shutdown is None
            else in_controlled_shutdown,
            log_dirs=self.log_dirs if log_dirs is None else log_dirs,
            cordoned_log_dirs=self.cordoned_log_dirs if cordoned_log_dirs is None else cordoned_log_dirs,
            idle_since=self.idle_since,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerRegistration) and all(
            getattr(self, name) == getattr(other, name) for name in BrokerRegistration.__slots__ if name != "idle_since"
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_active(self) -> bool:
        """It may be in an ISR: neither fenced nor about to leave."""
        return not self.fenced and not self.in_controlled_shutdown

    def has_online_dir(self, directory: bytes) -> bool:
        """A reserved id counts as online, except the one that says the directory was lost."""
        if directory in self.log_dirs or directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        return not self.log_dirs and directory != LOST_DIRECTORY

    def uncordoned_log_dirs(self) -> tuple[bytes, ...]:
        cordoned = self.cordoned_log_dirs or ()
        return tuple(directory for directory in self.log_dirs if directory not in cordoned)

    def default_dir(self) -> bytes:
        """Where a new replica goes: the broker decides itself when it has more than one directory."""
        usable = self.uncordoned_log_dirs()
        return usable[0] if len(usable) == 1 and len(self.log_dirs) == 1 else UNASSIGNED_DIRECTORY


class ControllerRegistration:
    """A controller as it registered itself (KIP-919)."""

    __slots__ = ("controller_id", "end_points", "features", "incarnation_id", "zk_migration_ready")

    def __init__(self, record: RegisterControllerRecord) -> None:
        self.controller_id = record.controller_id
        self.incarnation_id = record.incarnation_id
        self.zk_migration_ready = record.zk_migration_ready
        self.end_points = {e.name: EndPoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points}
        self.features = {
            f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in record.features
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ControllerRegistration) and all(
            getattr(self, name) == getattr(other, name) for name in ControllerRegistration.__slots__
        )

    __hash__ = None  # type: ignore[assignment]


class PartitionRegistration:
    """One partition: its replicas and where they are, who leads, who is in sync."""

    __slots__ = (
        "adding_replicas",
        "directories",
        "elr",
        "isr",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "partition_epoch",
        "removing_replicas",
        "replicas",
    )

    def __init__(
        self,
        replicas: tuple[int, ...],
        directories: tuple[bytes, ...],
        isr: tuple[int, ...],
        *,
        removing_replicas: tuple[int, ...] = (),
        adding_replicas: tuple[int, ...] = (),
        leader: int = NO_LEADER,
        leader_recovery_state: int = RECOVERED,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        elr: tuple[int, ...] = (),
        last_known_elr: tuple[int, ...] = (),
    ) -> None:
        self.replicas = replicas
        self.directories = directories
        self.isr = isr
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.elr = elr
        self.last_known_elr = last_known_elr

    @staticmethod
    def from_record(record: PartitionRecord) -> PartitionRegistration:
        replicas = tuple(record.replicas)
        directories = tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(replicas)
        return PartitionRegistration(
            replicas,
            directories,
            tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader=record.leader,
            leader_recovery_state=record.leader_recovery_state,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def to_record(self, topic_id: bytes, partition_id: int, version: int) -> PartitionRecord:
        record = PartitionRecord()
        record.partition_id = partition_id
        record.topic_id = topic_id
        record.replicas = list(self.replicas)
        record.isr = list(self.isr)
        record.removing_replicas = list(self.removing_replicas)
        record.adding_replicas = list(self.adding_replicas)
        record.leader = self.leader
        record.leader_recovery_state = self.leader_recovery_state
        record.leader_epoch = self.leader_epoch
        record.partition_epoch = self.partition_epoch
        if version >= 1:
            record.directories = list(self.directories)
        if version >= 2:
            record.eligible_leader_replicas = list(self.elr) if self.elr else None
            record.last_known_elr = list(self.last_known_elr) if self.last_known_elr else None
        return record

    def merge(self, record: PartitionChangeRecord) -> PartitionRegistration:
        """The partition after a change: fields that the record leaves out stay; naming a leader raises the epoch."""
        leader_changes = record.leader != NO_LEADER_CHANGE
        replicas = self.replicas if record.replicas is None else tuple(record.replicas)
        if record.directories is not None:
            directories = tuple(record.directories)
        else:
            places = dict(zip(self.replicas, self.directories, strict=True))
            directories = tuple(places.get(replica, UNASSIGNED_DIRECTORY) for replica in replicas)
        elr, last_known = record.eligible_leader_replicas, record.last_known_elr
        return PartitionRegistration(
            replicas,
            directories,
            self.isr if record.isr is None else tuple(record.isr),
            removing_replicas=self.removing_replicas
            if record.removing_replicas is None
            else tuple(record.removing_replicas),
            adding_replicas=self.adding_replicas if record.adding_replicas is None else tuple(record.adding_replicas),
            leader=record.leader if leader_changes else self.leader,
            leader_recovery_state=self.leader_recovery_state
            if record.leader_recovery_state < 0
            else record.leader_recovery_state,
            leader_epoch=self.leader_epoch + 1 if leader_changes else self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
            elr=self.elr if elr is None else tuple(elr),
            last_known_elr=self.last_known_elr if last_known is None else tuple(last_known),
        )

    def directory_of(self, replica: int) -> bytes:
        return self.directories[self.replicas.index(replica)]

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in PartitionRegistration.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionRegistration) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Partition(replicas={list(self.replicas)}, isr={list(self.isr)}, leader={self.leader}, "
            f"leader_epoch={self.leader_epoch}, partition_epoch={self.partition_epoch}, elr={list(self.elr)}, "
            f"last_known_elr={list(self.last_known_elr)})"
        )


class TopicImage:
    """A topic and its partitions by index."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: dict[int, PartitionRegistration]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
