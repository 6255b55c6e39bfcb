"""Checks a whole data directory: every partition in it, the small files beside them, and whether they agree."""

from __future__ import annotations

import json
import re

from moldau.storage.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
    DamagedCheckpoint,
    Partition,
    read_offsets,
)
from moldau.storage.disk import Disk
from moldau.storage.inspect.partition import Findings, PartitionCheck, check_metadata_snapshot
from moldau.storage.meta_properties import META_PROPERTIES_FILE, DamagedMetaProperties, read_meta_properties
from moldau.storage.partition_metadata import PARTITION_METADATA_FILE
from moldau.storage.run_history import CLEAN_SHUTDOWN_FILE

Partitions = dict[Partition, PartitionCheck]

PARTITION_DIRECTORY = re.compile(r"(.+)-(\d+)")
LEAVING_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-(delete|future|stray)|.+-\d+-stray")
BOOTSTRAP_FILE = "bootstrap.checkpoint"
CHECKPOINTS = {
    RECOVERY_POINT_FILE: "the recovery point",
    LOG_START_FILE: "the log start offset",
    REPLICATION_FILE: "the high watermark",
    CLEANER_FILE: "the cleaned offset",
}
# Notes of Moldau's own, which Apache Kafka leaves alone.
OWN_PREFIX = "moldau."
PLAIN_FILES = {META_PROPERTIES_FILE, ".lock", CLEAN_SHUTDOWN_FILE, *CHECKPOINTS}


def check_directory(disk: Disk, directory: str, with_records: bool = True) -> tuple[Findings, Partitions]:
    """All findings in a log directory, or in the directory of one partition; and the partitions of the directory."""
    findings = Findings()
    names = disk.list_with_sizes(directory)
    clean_stop = CLEAN_SHUTDOWN_FILE in names
    if META_PROPERTIES_FILE not in names and any(name.endswith(".log") for name in names):
        PartitionCheck(disk, directory, findings, with_records).run()
        return findings, {}
    _check_identity(disk, directory, findings)
    if clean_stop:
        _check_clean_shutdown(disk, f"{directory}/{CLEAN_SHUTDOWN_FILE}", findings)
    partitions: Partitions = {}
    starts = _log_starts(disk, directory)
    for name, size in sorted(names.items()):
        path = f"{directory}/{name}"
        match = PARTITION_DIRECTORY.fullmatch(name)
        if size >= 0:
            findings.files += 1
            findings.bytes += size
            if name == BOOTSTRAP_FILE:
                check_metadata_snapshot(disk, path, findings)
            elif name not in PLAIN_FILES and not name.startswith(OWN_PREFIX):
                findings.warn(path, "not a file of a data directory")
        elif LEAVING_DIRECTORY.fullmatch(name):
            findings.warn(path, "was deleted or left behind; not looked into")
        elif match is None:
            findings.warn(path, "not the directory of a partition")
        else:
            partition = (match[1], int(match[2]))
            start = None if starts is None else starts.get(partition, 0)
            check = PartitionCheck(disk, path, findings, with_records, clean_stop, start)
            check.run()
            partitions[partition] = check
    for name, meaning in CHECKPOINTS.items():
        _check_checkpoint(disk, f"{directory}/{name}", meaning, partitions, findings)
    _compare_topic_ids(partitions, findings)
    return findings, partitions


def _check_identity(disk: Disk, directory: str, findings: Findings) -> None:
    path = f"{directory}/{META_PROPERTIES_FILE}"
    try:
        if read_meta_properties(disk, directory) is None:
            findings.warn(path, "missing: the directory is not formatted")
    except DamagedMetaProperties as error:
        findings.error(path, str(error))


def _log_starts(disk: Disk, directory: str) -> dict[Partition, int] | None:
    """None where the file cannot be read, which is told elsewhere."""
    try:
        return read_offsets(disk, f"{directory}/{LOG_START_FILE}")
    except DamagedCheckpoint:
        return None


def _check_clean_shutdown(disk: Disk, path: str, findings: Findings) -> None:
    try:
        content = json.loads(disk.read_file(path) or b"{}")
        if not isinstance(content, dict) or content.get("version", 0) != 0:
            raise ValueError
    except ValueError:
        findings.warn(path, "is not what a clean stop writes; the broker epoch in it is not known")


def _compare_topic_ids(partitions: Partitions, findings: Findings) -> None:
    """All partitions of a topic have its id; no two topics have the same."""
    first: dict[str, PartitionCheck] = {}
    name_of: dict[bytes, str] = {}
    for (topic, _), check in partitions.items():
        if check.topic_id is None:
            continue
        path = f"{check.directory}/{PARTITION_METADATA_FILE}"
        other = first.setdefault(topic, check)
        if other.topic_id != check.topic_id:
            findings.error(path, f"has another topic id than {other.directory}")
        owner = name_of.setdefault(check.topic_id, topic)
        if owner != topic:
            findings.error(path, f"has the topic id of {owner}")


def _check_checkpoint(disk: Disk, path: str, meaning: str, partitions: Partitions, findings: Findings) -> None:
    try:
        offsets = read_offsets(disk, path)
    except DamagedCheckpoint as error:
        findings.error(path, str(error))
        return
    for (topic, number), offset in offsets.items():
        check = partitions.get((topic, number))
        if check is None:
            findings.warn(path, f"names {topic}-{number}, which is not here")
        elif offset > check.end_offset:
            findings.error(path, f"{meaning} of {topic}-{number} is {offset}, its log ends at {check.end_offset}")
