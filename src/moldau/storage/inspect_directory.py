"""Checks a whole data directory: every partition in it, the small files beside them, and whether they agree."""

from __future__ import annotations

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
from moldau.storage.inspect_partition import Findings, PartitionCheck, check_metadata_snapshot
from moldau.storage.meta_properties import META_PROPERTIES_FILE, DamagedMetaProperties, read_meta_properties

PARTITION_FOLDER = re.compile(r"(.+)-(\d+)")
LEAVING_FOLDER = re.compile(r".+\.[0-9a-f]{32}-(delete|future|stray)|.+-\d+-stray")
BOOTSTRAP_FILE = "bootstrap.checkpoint"
CHECKPOINTS = {
    RECOVERY_POINT_FILE: "the recovery point",
    LOG_START_FILE: "the log start offset",
    REPLICATION_FILE: "the high watermark",
    CLEANER_FILE: "the cleaned offset",
}
PLAIN_FILES = {META_PROPERTIES_FILE, ".lock", ".kafka_cleanshutdown", *CHECKPOINTS}


def check_directory(disk: Disk, directory: str, with_records: bool = True) -> Findings:
    """All findings in a log directory, or in the folder of one partition."""
    findings = Findings()
    names = disk.list_with_sizes(directory)
    if META_PROPERTIES_FILE not in names and any(name.endswith(".log") for name in names):
        PartitionCheck(disk, directory, findings, with_records).run()
        return findings
    _check_identity(disk, directory, findings)
    partitions: dict[Partition, PartitionCheck] = {}
    for name, size in sorted(names.items()):
        path = f"{directory}/{name}"
        match = PARTITION_FOLDER.fullmatch(name)
        if size >= 0:
            findings.files += 1
            findings.bytes += size
            if name == BOOTSTRAP_FILE:
                check_metadata_snapshot(disk, path, findings)
            elif name not in PLAIN_FILES:
                findings.warn(path, "not a file of a data directory")
        elif LEAVING_FOLDER.fullmatch(name):
            findings.warn(path, "was deleted or left behind; not looked into")
        elif match is None:
            findings.warn(path, "not the folder of a partition")
        else:
            check = PartitionCheck(disk, path, findings, with_records)
            check.run()
            partitions[(match[1], int(match[2]))] = check
    for name, meaning in CHECKPOINTS.items():
        _check_checkpoint(disk, f"{directory}/{name}", meaning, partitions, findings)
    return findings


def _check_identity(disk: Disk, directory: str, findings: Findings) -> None:
    path = f"{directory}/{META_PROPERTIES_FILE}"
    try:
        if read_meta_properties(disk, directory) is None:
            findings.warn(path, "missing: the directory is not formatted")
    except DamagedMetaProperties as error:
        findings.error(path, str(error))


def _check_checkpoint(
    disk: Disk, path: str, meaning: str, partitions: dict[Partition, PartitionCheck], findings: Findings
) -> None:
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
