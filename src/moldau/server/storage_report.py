"""What the log directories of a node hold: whose they are, who wrote them, and whether this version can open them."""

from __future__ import annotations

import fcntl
import os
import re
from dataclasses import dataclass, field

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.server.offline_metadata import OfflineMetadata, read_metadata
from moldau.storage.disk import Disk
from moldau.storage.meta_properties import DamagedMetaProperties, MetaProperties, read_meta_properties
from moldau.storage.moldau_properties import read_moldau_properties
from moldau.storage.run_history import CLEAN_SHUTDOWN_FILE

KAFKA = "Apache Kafka"
MOLDAU = "Moldau"
PARTITION_DIRECTORY = re.compile(r".+-\d{1,10}")


@dataclass(slots=True)
class DirectoryReport:
    """One log directory."""

    path: str
    properties: MetaProperties | None = None
    partitions: int = 0
    has_metadata: bool = False
    clean_stop: bool = False
    in_use: bool = False
    written_by: str | None = None
    """Who opened it last; None when nobody did yet, or nobody can tell."""
    moldau_version: str | None = None
    """Of the Moldau that was there last, whether or not somebody else came after it."""
    was_opened: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def can_be_opened(self) -> bool:
        return not self.problems and not self.in_use


@dataclass(slots=True)
class StorageReport:
    node_id: int
    metadata_directory: str
    features: dict[str, int]
    metadata_offset: int
    directories: list[DirectoryReport]


def storage_report(config_values: dict[str, str], disk: Disk) -> StorageReport:
    config = BrokerConfig(config_values)
    metadata_directory = config.metadata_log_dir
    reports = [_look_at(disk, path) for path in sorted(dict.fromkeys([*config.log_dirs, metadata_directory]))]
    metadata = read_metadata(disk, metadata_directory)
    for report in reports:
        if report.path == metadata_directory and metadata is not None:
            report.has_metadata = True
            # After an unclean stop the torn end of the log is truncated; after a clean one there is none.
            damage = metadata.damage if report.clean_stop else []
            report.problems += [f"{text}." for text in [*metadata.snapshot_damage, *damage, *metadata.problems][:1]]
            report.problems += _unsupported(metadata)
        if report.properties is not None:
            _tell_writer(disk, report, config.node_id, metadata)
    _compare_identities(reports, config.node_id)
    features = dict(metadata.image.features) if metadata is not None else {}
    offset = metadata.image.offset if metadata is not None else -1
    return StorageReport(config.node_id, metadata_directory, features, offset, reports)


def _look_at(disk: Disk, path: str) -> DirectoryReport:
    report = DirectoryReport(path)
    if not disk.is_directory(path):
        report.problems.append("It does not exist." if not disk.exists(path) else "It is not a directory.")
        return report
    try:
        report.properties = read_meta_properties(disk, path)
    except DamagedMetaProperties as error:
        report.problems.append(f"{error}.")
    except OSError as error:
        report.problems.append(f"It cannot be read: {error.strerror}.")
        return report
    if report.properties is None and not report.problems:
        report.problems.append("It is not formatted; `moldau storage format` does that.")
    for name, size in disk.list_with_sizes(path).items():
        if size < 0 and PARTITION_DIRECTORY.fullmatch(name) and name != f"{METADATA_TOPIC}-0":
            report.partitions += 1
    report.clean_stop = disk.exists(f"{path}/{CLEAN_SHUTDOWN_FILE}")
    report.in_use = is_locked(path)
    return report


def is_locked(directory: str) -> bool:
    """Whether a running node, Moldau's or Apache Kafka's, has the directory."""
    try:
        descriptor = os.open(os.path.join(directory, ".lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # no lock file, or not for us to look at
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _unsupported(metadata: OfflineMetadata) -> list[str]:
    found = []
    for name, level in {**metadata.image.features, KRAFT_VERSION: metadata.kraft_version}.items():
        supported = SUPPORTED_FEATURES.get(name)
        if supported is None:
            found.append(f"The cluster uses the feature {name} (level {level}), which this version does not know.")
        elif level != 0 and not supported.low <= level <= supported.high:
            span = f"{supported.low} to {supported.high}"
            found.append(f"The cluster has {name} at level {level}; this version supports {span}.")
    return found


def _tell_writer(disk: Disk, report: DirectoryReport, node_id: int, metadata: OfflineMetadata | None) -> None:
    """By the incarnation that registered last: Moldau notes its own in each directory."""
    marker = read_moldau_properties(disk, report.path)
    report.moldau_version = marker.version if marker is not None else None
    ours = marker.incarnation_ids if marker is not None else ()
    last = _last_incarnation(node_id, metadata)
    report.was_opened = last is not None or report.partitions > 0 or report.clean_stop
    if report.was_opened:
        # Without metadata there is only what Moldau says of itself.
        report.written_by = MOLDAU if (bool(ours) if last is None else last in ours) else KAFKA


def _last_incarnation(node_id: int, metadata: OfflineMetadata | None) -> bytes | None:
    if metadata is None:
        return None
    registered = metadata.image.brokers.get(node_id) or metadata.image.controllers.get(node_id)
    return registered.incarnation_id if registered is not None else None


def _compare_identities(reports: list[DirectoryReport], node_id: int) -> None:
    clusters: dict[str, str] = {}
    directories: dict[bytes, str] = {}
    for report in reports:
        own = report.properties
        if own is None:
            continue
        if own.node_id != node_id:
            report.problems.append(f"It belongs to node {own.node_id}, the configuration is that of node {node_id}.")
        other = next(iter(clusters), own.cluster_id)
        if other != own.cluster_id:
            report.problems.append(f"It belongs to cluster {own.cluster_id}, {clusters[other]} to {other}.")
        clusters.setdefault(own.cluster_id, report.path)
        if own.directory_id is not None:
            first = directories.setdefault(own.directory_id, report.path)
            if first != report.path:
                report.problems.append(f"It has the directory.id of {first}: is it a copy?")
