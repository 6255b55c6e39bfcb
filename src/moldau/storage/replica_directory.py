"""Tells the directory of a replica from any other whose name happens to end in a dash and a number.

Only what holds a file that a log has is opened, renamed or removed: `photos-2024` may be somebody's photos. A directory
with nothing in it is what a crash leaves between its making and its first file, or is nobody's at all; it is not opened
either, and a replica that the metadata places there is simply made in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from moldau.storage.checkpoints import LEADER_EPOCH_FILE
from moldau.storage.disk import Disk
from moldau.storage.partition_metadata import PARTITION_METADATA_FILE

REPLICA: Final = 0
EMPTY: Final = 1
FOREIGN: Final = 2

_LOG_FILE: Final = re.compile(
    r"\d{20}\.(?:log|index|timeindex|txnindex|snapshot)(?:\.deleted|\.cleaned|\.swap|\.tmp)*", re.ASCII
)
_SMALL_FILES: Final = (PARTITION_METADATA_FILE, LEADER_EPOCH_FILE)


def is_file_of_a_log(name: str) -> bool:
    return _LOG_FILE.fullmatch(name) is not None or name.removesuffix(".tmp") in _SMALL_FILES


def kind_of_names(names: Iterable[str]) -> int:
    """What a directory with these entries is. Hidden files (`.DS_Store`) do not count."""
    kind = EMPTY
    for name in names:
        if is_file_of_a_log(name):
            return REPLICA
        if not name.startswith("."):
            kind = FOREIGN
    return kind


def kind_of_directory(disk: Disk, path: str) -> int:
    """REPLICA, EMPTY or FOREIGN; raises OSError. Nearly all have the one file that is looked for first."""
    if disk.exists(f"{path}/{PARTITION_METADATA_FILE}"):
        return REPLICA
    return kind_of_names(disk.list(path))
