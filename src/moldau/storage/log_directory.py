"""One of the folders in log.dirs: who it is, and whether it still works.

A failed directory stays failed until the node starts again; its logs refuse everything with KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Final

from moldau.protocol.errors import KAFKA_STORAGE_ERROR, KafkaError
from moldau.protocol.uuids import ZERO_UUID
from moldau.storage.disk import Disk

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

logger = logging.getLogger("moldau.storage")


class LogDirectory:
    """`on_failed` is called once, when the directory goes offline."""

    def __init__(
        self, path: str, directory_id: bytes = ZERO_UUID, on_failed: Callable[[LogDirectory], None] | None = None
    ) -> None:
        self.path = path
        self.directory_id = directory_id
        self.on_failed = on_failed
        self.failed = False
        self.failure = ""
        self.is_full = False
        self.folders_unsynced = True  # partitions were created or renamed since the directory was last synced

    def fail(self, error: OSError) -> None:
        if self.failed:
            return
        self.failed = True
        self.failure = str(error)
        logger.error("log directory %s failed and goes offline, its partitions with it: %s", self.path, error)
        if self.on_failed is not None:
            self.on_failed(self)

    def on_write_failed(self, error: OSError) -> None:
        """A small file that is written from time to time could not be: a full disk is no broken one."""
        if error.errno not in NO_SPACE:
            self.fail(error)
        elif not self.is_full:
            self.is_full = True
            logger.error("log directory %s is full: offsets are written down when there is space again", self.path)

    def on_written(self) -> None:
        if self.is_full:
            self.is_full = False
            logger.warning("log directory %s has space again", self.path)

    def sync_folders(self, disk: Disk) -> None:
        """Makes the folders of new partitions durable; one sync serves all that were created before it."""
        if self.folders_unsynced:
            disk.sync_directory(self.path)
            self.folders_unsynced = False

    def storage_error(self) -> KafkaError:
        return KafkaError(KAFKA_STORAGE_ERROR, f"The log directory {self.path} is offline: {self.failure}")

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r}{', failed' if self.failed else ''})"
