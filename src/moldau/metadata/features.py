"""Feature levels: the names of metadata.version, what this release supports, what each level changes in records.

Kafka keeps the same in MetadataVersion and Feature.
"""

from __future__ import annotations

from typing import Final

from moldau.metadata.model import VersionRange

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

LOWEST_METADATA_VERSION: Final = 7
LATEST_METADATA_VERSION: Final = 30
FIRST_SCRAM_METADATA_VERSION: Final = 11
"""3.5-IV2."""

DEAD_LETTERS_SHARE_VERSION: Final = 2
"""The level of share.version from which dead letters are written (KIP-1191). Kafka has it from 4.4 on, where it is the
default from metadata.version 31 (4.4-IV0) on; it depends on no other feature, so that it may be finalized before."""

_METADATA_VERSION_NAMES: Final = (
    "3.3-IV3",
    "3.4-IV0",
    "3.5-IV0",
    "3.5-IV1",
    "3.5-IV2",
    "3.6-IV0",
    "3.6-IV1",
    "3.6-IV2",
    "3.7-IV0",
    "3.7-IV1",
    "3.7-IV2",
    "3.7-IV3",
    "3.7-IV4",
    "3.8-IV0",
    "3.9-IV0",
    "4.0-IV0",
    "4.0-IV1",
    "4.0-IV2",
    "4.0-IV3",
    "4.1-IV0",
    "4.1-IV1",
    "4.2-IV0",
    "4.2-IV1",
    "4.3-IV0",
)

SUPPORTED_FEATURES: Final[dict[str, VersionRange]] = {
    GROUP_VERSION: VersionRange(0, 1),
    KRAFT_VERSION: VersionRange(0, 1),
    METADATA_VERSION: VersionRange(LOWEST_METADATA_VERSION, LATEST_METADATA_VERSION),
    SHARE_VERSION: VersionRange(0, DEAD_LETTERS_SHARE_VERSION),
    STREAMS_VERSION: VersionRange(0, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
    ELR_VERSION: VersionRange(0, 1),
}
"""In the order in which Kafka lists them."""


def metadata_version_name(level: int) -> str:
    return _METADATA_VERSION_NAMES[level - LOWEST_METADATA_VERSION]


def metadata_version_names() -> list[str]:
    return list(_METADATA_VERSION_NAMES)


def metadata_version_level(name: str) -> int | None:
    """The level of a full name (4.0-IV1), of a release (4.0: its last one), or None."""
    if name in _METADATA_VERSION_NAMES:
        return _METADATA_VERSION_NAMES.index(name) + LOWEST_METADATA_VERSION
    release = ".".join(name.split(".")[:2])
    matches = [n for n in _METADATA_VERSION_NAMES if n.startswith(release + "-IV")]
    return metadata_version_level(matches[-1]) if matches and "-" not in name else None


def default_feature_levels(metadata_version: int) -> dict[str, int]:
    """The levels besides metadata.version that a cluster formatted at this metadata.version starts with."""
    levels = {
        ELR_VERSION: 1 if metadata_version >= 26 else 0,
        GROUP_VERSION: 1 if metadata_version >= 22 else 0,
        SHARE_VERSION: 1 if metadata_version >= 28 else 0,
        STREAMS_VERSION: 1 if metadata_version >= 29 else 0,
        TRANSACTION_VERSION: 2 if metadata_version >= 24 else 0,
    }
    return {name: level for name, level in levels.items() if level > 0}


def register_broker_version(metadata_version: int) -> int:
    if metadata_version >= 30:
        return 4
    if metadata_version >= 17:
        return 3
    return 2 if metadata_version >= 8 else 1


def partition_version(metadata_version: int) -> int:
    """Of PartitionRecord and PartitionChangeRecord: directories from 3.7-IV2, eligible leader replicas from 4.0-IV1."""
    if metadata_version >= 23:
        return 2
    return 1 if metadata_version >= 17 else 0


def isr_shrink_raises_leader_epoch(metadata_version: int) -> bool:
    """Before 3.6-IV0."""
    return metadata_version < 12


def supports_scram(metadata_version: int) -> bool:
    return metadata_version >= FIRST_SCRAM_METADATA_VERSION


def supports_transactions(metadata_version: int) -> bool:
    return metadata_version >= 14


def supports_delegation_tokens(metadata_version: int) -> bool:
    return metadata_version >= 14


def supports_controller_registration(metadata_version: int) -> bool:
    return metadata_version >= 15


def supports_cordoned_dirs(metadata_version: int) -> bool:
    return metadata_version >= 30
