"""Holds the metadata in a data directory against itself and against the partitions beside it.

Looks where `storage.inspect.directory` cannot: whether the log and its snapshots tell the same story, whether
quorum-state fits the log, and whether every partition is one that the metadata knows and wants here.
"""

from __future__ import annotations

from operator import attrgetter

from moldau.metadata.image import MetadataImage
from moldau.metadata.snapshot import image_to_records
from moldau.node.metadata_log import QUORUM_STATE_FILE, snapshot_name
from moldau.protocol.stored.metadata_records import (
    RegisterBrokerRecord,
    RegisterControllerRecord,
    encode_metadata_record,
)
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import METADATA_TOPIC_UUID, uuid_to_text
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.state import QuorumState
from moldau.server.offline_metadata import OfflineMetadata, read_metadata, read_snapshot_file, snapshots_in
from moldau.storage.disk import Disk
from moldau.storage.inspect.directory import Partitions
from moldau.storage.inspect.partition import Findings
from moldau.storage.meta_properties import DamagedMetaProperties, MetaProperties, read_meta_properties
from moldau.storage.partition_metadata import PARTITION_METADATA_FILE

NOTHING = OffsetAndEpoch(-1, -1)


def check_metadata(disk: Disk, directory: str, partitions: Partitions, findings: Findings) -> None:
    """Adds findings about a whole log directory; `partitions` were checked one by one before."""
    metadata = read_metadata(disk, directory)
    if metadata is None:
        return
    partition_directory = f"{directory}/{METADATA_TOPIC}-0"
    for text in metadata.problems:
        findings.error(partition_directory, text)
    _check_quorum_state(disk, f"{partition_directory}/{QUORUM_STATE_FILE}", metadata, findings)
    whole = not metadata.damage and not metadata.snapshot_damage
    if whole:
        _check_snapshots(disk, directory, findings)
    if whole and not metadata.problems and not metadata.image.is_empty:
        _check_partitions(disk, directory, metadata.image, partitions, findings)


def _check_quorum_state(disk: Disk, path: str, metadata: OfflineMetadata, findings: Findings) -> None:
    if not disk.exists(path):
        if metadata.log_end_offset > 0:
            findings.error(path, "missing although there is a metadata log: the node may vote twice in an epoch")
        return
    try:
        state = QuorumState.from_json(disk.read_file(path))
    except (ValueError, KeyError, TypeError) as error:
        findings.error(path, f"cannot be read: {error}")
        return
    if state.epoch < metadata.last_epoch:
        findings.error(path, f"is of epoch {state.epoch}, the log has records of epoch {metadata.last_epoch}")


def _check_snapshots(disk: Disk, directory: str, findings: Findings) -> None:
    partition_directory = f"{directory}/{METADATA_TOPIC}-0"
    snapshots = [each for each in snapshots_in(disk.list(partition_directory)) if each.offset > 0]
    log = read_metadata(disk, directory, NOTHING, 0)
    start = log.log_start_offset if log is not None else 0
    if start > 0 and (not snapshots or snapshots[-1].offset < start):
        end = snapshots[-1].offset if snapshots else 0
        findings.error(
            partition_directory, f"the log starts at {start}, the snapshots end at {end}: what lies between is missing"
        )
    before = NOTHING
    for snapshot in snapshots:
        path = f"{partition_directory}/{snapshot_name(snapshot)}"
        if before.offset >= start or start == 0:
            _compare(disk, directory, path, before, snapshot, findings)
        before = snapshot


def _compare(
    disk: Disk, directory: str, path: str, before: OffsetAndEpoch, snapshot: OffsetAndEpoch, findings: Findings
) -> None:
    """The snapshot must say what the one before it says, or nothing, with the log behind it."""
    told = read_metadata(disk, directory, before, snapshot.offset)
    assert told is not None
    if told.log_end_offset != snapshot.offset:
        where = "ends" if told.log_end_offset < snapshot.offset else "starts"
        findings.error(path, f"is of offset {snapshot.offset}, the log {where} at {told.log_end_offset}")
        return
    if told.last_epoch != snapshot.epoch:
        findings.error(path, f"is of epoch {snapshot.epoch}, the log has epoch {told.last_epoch} there")
    own = read_snapshot_file(disk, path)
    mine, logs = _content(own.image), _content(told.image)
    if mine != logs:
        more, fewer = len(mine - logs), len(logs - mine)
        text = f"{more} records of it do not follow from the log, and {fewer} that do are not in it"
        findings.error(path, f"contradicts the log: {text}")


def _content(image: MetadataImage) -> set[bytes]:
    records = image_to_records(image)
    for record, _ in records:
        if isinstance(record, RegisterBrokerRecord | RegisterControllerRecord):
            # In Kafka these are maps, whose order is another in each record.
            record.features.sort(key=attrgetter("name"))
            record.end_points.sort(key=attrgetter("name"))
    return {encode_metadata_record(record, version) for record, version in records}


def _check_partitions(
    disk: Disk, directory: str, image: MetadataImage, partitions: Partitions, findings: Findings
) -> None:
    try:
        own = read_meta_properties(disk, directory)
    except DamagedMetaProperties:
        own = None
    for (name, index), check in partitions.items():
        if name == METADATA_TOPIC:
            if check.topic_id not in (None, METADATA_TOPIC_UUID):
                findings.error(f"{check.directory}/{PARTITION_METADATA_FILE}", "has not the id of the metadata log")
            continue
        path = f"{check.directory}/{PARTITION_METADATA_FILE}"
        topic = image.topic(name)
        if topic is None:
            findings.error(check.directory, "is of a topic that the metadata does not know; a start sets it aside")
        elif check.topic_id is not None and topic.topic_id != check.topic_id:
            ids = f"{uuid_to_text(check.topic_id)}, the metadata {uuid_to_text(topic.topic_id)}"
            findings.error(path, f"gives the topic the id {ids}: a start renames the directory to -stray")
        elif index not in topic.partitions:
            findings.error(check.directory, f"the topic has only {len(topic.partitions)} partitions")
        elif own is not None and own.node_id not in topic.partitions[index].replicas:
            findings.warn(check.directory, f"node {own.node_id} is no replica of this partition any more")
    if own is not None:
        _check_missing(directory, own, image, partitions, findings)


def _check_missing(
    directory: str, own: MetaProperties, image: MetadataImage, partitions: Partitions, findings: Findings
) -> None:
    for topic in image.topics_by_name.values():
        for index, partition in topic.partitions.items():
            homes = dict(zip(partition.replicas, partition.directories, strict=False))
            if (topic.name, index) not in partitions and homes.get(own.node_id) == own.directory_id:
                path = f"{directory}/{topic.name}-{index}"
                findings.error(path, "missing: the metadata says that the partition is in this directory")
