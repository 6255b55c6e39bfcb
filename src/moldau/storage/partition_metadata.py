"""The file partition.metadata: which topic id the directory of a replica belongs to."""

from __future__ import annotations

from moldau.protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text
from moldau.storage.disk import Disk

PARTITION_METADATA_FILE = "partition.metadata"


class DamagedPartitionMetadata(Exception):
    """The file is there and cannot be read."""


def write_topic_id(disk: Disk, directory: str, topic_id: bytes) -> None:
    text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
    disk.replace_file(f"{directory}/{PARTITION_METADATA_FILE}", text.encode("ascii"))


def parse_topic_id(data: bytes, path: str) -> bytes:
    try:
        lines = data.decode("ascii").split("\n")
        version = lines[0].partition("version: ")[2]
        topic_id = uuid_from_text(lines[1].partition("topic_id: ")[2].strip())
    except (ValueError, IndexError) as error:
        raise DamagedPartitionMetadata(f"{path} is not 'version: N' and 'topic_id: ID'") from error
    if version.strip() != "0":
        raise DamagedPartitionMetadata(f"{path} has version {version!r}, known is 0")
    if topic_id == ZERO_UUID:
        raise DamagedPartitionMetadata(f"{path} has the zero topic id")
    return topic_id


def read_topic_id(disk: Disk, directory: str) -> bytes:
    """Raises FileNotFoundError when the directory has none yet."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    return parse_topic_id(disk.read_file(path), path)
