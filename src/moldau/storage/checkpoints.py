"""Reads and writes the text checkpoint files: version, count, one line per entry.

An empty file means no entries (Kafka creates them that way). A damaged file raises DamagedCheckpoint; whoever loads
decides what a lost file means, usually that it is missing.
"""

from __future__ import annotations

from moldau.storage.disk import BlockingDisk, Disk

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
REPLICATION_FILE = "replication-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"

CURRENT_VERSION = 0

Partition = tuple[str, int]


class DamagedCheckpoint(Exception):
    """The file is there and does not hold what a checkpoint holds."""


def format_lines(lines: list[str]) -> bytes:
    return "\n".join([str(CURRENT_VERSION), str(len(lines)), *lines, ""]).encode("utf-8")


def parse_lines(data: bytes, path: str) -> list[list[str]]:
    """The fields of each entry; the count in the file must be right."""
    if not data:
        return []
    try:
        lines = data.decode("utf-8").split("\n")
        # The newline at the end proves that the last number is whole: a torn write may cut it in the middle.
        if lines.pop() != "":
            raise DamagedCheckpoint(f"{path} ends in the middle of a line")
        version = int(lines[0])
        count = int(lines[1])
    except (ValueError, IndexError) as error:
        raise DamagedCheckpoint(f"{path} does not start with a version and a count") from error
    if version != CURRENT_VERSION:
        raise DamagedCheckpoint(f"{path} has version {version}, known is {CURRENT_VERSION}")
    if count != len(lines) - 2:
        raise DamagedCheckpoint(f"{path} promises {count} entries and has {len(lines) - 2}")
    return [line.split() for line in lines[2:]]


def format_offsets(offsets: dict[Partition, int]) -> bytes:
    return format_lines([f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()])


def write_offsets(disk: BlockingDisk, path: str, offsets: dict[Partition, int]) -> None:
    """On the medium when it returns."""
    disk.write_file(path, format_offsets(offsets))


def read_offsets(disk: Disk, path: str) -> dict[Partition, int]:
    """Entries of one of the per-directory files; a missing file has none."""
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return {}
    offsets: dict[Partition, int] = {}
    for fields in parse_lines(data, path):
        if len(fields) != 3:
            raise DamagedCheckpoint(f"{path} has an entry that is not 'topic partition offset'")
        try:
            partition, offset = int(fields[1]), int(fields[2])
        except ValueError as error:
            raise DamagedCheckpoint(f"{path} has an entry whose partition or offset is no number") from error
        if partition < 0 or offset < 0:
            raise DamagedCheckpoint(f"{path} has an entry with a negative partition or offset")
        offsets[(fields[0], partition)] = offset
    return offsets
