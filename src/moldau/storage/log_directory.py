"""One of the directories in log.dirs: who it is, and whether it still works.

A failed directory stays failed until the node starts again; its logs refuse everything with KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Final

from moldau.protocol.errors import KAFKA_STORAGE_ERROR, KafkaError
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.clocks import WallClock
from moldau.storage.disk import Disk

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

FREE_BYTES_MIN: Final = 256 << 20
LOOK_EVERY_BYTES_MIN: Final = 64 << 10
FREE_SHARE_MIN: Final = 20  # or this part of the volume
TOLD_EVERY_MS: Final = 60_000

logger = logging.getLogger("moldau.storage")


class LogDirectory:
    """`on_failed` is called once, when the directory goes offline."""

    def __init__(
        self,
        path: str,
        directory_id: bytes = ZERO_UUID,
        on_failed: Callable[[LogDirectory], None] | None = None,
        wall: WallClock | None = None,
    ) -> None:
        self.path = path
        self.wall = wall if wall is not None else WallClock()
        self.directory_id = directory_id
        self.on_failed = on_failed
        self.failed = False
        self.failure = ""
        self.is_full = False
        self.low_space = False  # producers are refused, so that what the node itself must write still fits
        self.refusing = False  # failed or low on space: whoever appends must look which
        self.free_bytes = -1
        self.free_bytes_min = 0
        self._setting = 0
        self._bytes_to_next_look = 1 << 62  # nobody has looked yet
        self.low_space_refusals_total = 0
        # Batches from leaders that did not fit, and when that may be told again: one line, however many partitions.
        self._not_taken = 0
        self._tell_again_ms = -1
        self.truncated_in_recovery = False  # a log in it ended in something that was no batch
        # How often partitions were created or renamed here, and how often when it was last synced.
        self.directories_changed = 1
        self.directories_synced = 0
        self.write_backs = 0  # under way

    def fail(self, error: OSError) -> None:
        if self.failed:
            return
        self.failed = True
        self.refusing = True
        self.failure = str(error)
        logger.error("log directory %s failed, taking it and its replicas offline: %s", self.path, error)
        if self.on_failed is not None:
            self.on_failed(self)

    def on_write_failed(self, error: OSError) -> None:
        """A small file that is written from time to time could not be: a full disk is no broken one."""
        if error.errno not in NO_SPACE:
            self.fail(error)
        elif not self.is_full:
            self.is_full = True
            logger.error(
                "log directory %s is full: its checkpoint files are written when there is space again", self.path
            )

    def on_written(self) -> None:
        if self.is_full:
            self.is_full = False
            logger.warning("log directory %s has space again", self.path)

    def on_replica_not_written(self, what: str, now_ms: int) -> None:
        """What a leader sent did not fit; it is fetched again until it does."""
        self._not_taken += 1
        if now_ms < self._tell_again_ms:
            return
        times = "once" if self._not_taken == 1 else f"{self._not_taken} times"
        logger.error(
            "log directory %s has no space for fetched records: append failed %s since this was last logged, "
            "fetching again until there is space. Last error: %s",
            self.path,
            times,
            what,
        )
        self._not_taken = 0
        self._tell_again_ms = now_ms + TOLD_EVERY_MS

    def watch_space(self, disk: Disk, free_bytes_min: int) -> None:
        """Looks how much space is left; -1: the usual least (see `moldau.log.dir.free.bytes.min`), 0: any will do."""
        self._setting = free_bytes_min
        self.free_bytes = disk.free_bytes(self.path)
        if free_bytes_min < 0:
            free_bytes_min = min(FREE_BYTES_MIN, disk.total_bytes(self.path) // FREE_SHARE_MIN)
        self.free_bytes_min = free_bytes_min
        # A fast writer could fill the volume between two looks: it has another one after half of what is left.
        self._bytes_to_next_look = max(LOOK_EVERY_BYTES_MIN, (self.free_bytes - free_bytes_min) // 2)
        if self.free_bytes < free_bytes_min:
            self._refuse_producers()
        elif self.low_space and self.free_bytes >= free_bytes_min + free_bytes_min // 10:
            # A little more than the least, so that it does not come and go with every segment.
            self.low_space = False
            self.refusing = self.failed
            logger.warning(
                "log directory %s has %d bytes free again, accepting produce requests", self.path, self.free_bytes
            )

    def note_written(self, size: int, disk: Disk) -> None:
        """So many bytes were appended to a log here."""
        self._bytes_to_next_look -= size
        if self._bytes_to_next_look < 0 and not self.low_space:
            self.look_again(disk)

    def take_space(self, size: int, disk: Disk) -> int:
        """How much may be set aside for a new segment: `size`, or nothing where too little would be left."""
        if self.free_bytes - size < self.free_bytes_min:
            return 0
        self.free_bytes -= size
        self.note_written(size, disk)
        return size

    def look_again(self, disk: Disk) -> None:
        """Something did not fit, between two looks: producers are refused if it is the volume that is full."""
        try:
            self.watch_space(disk, self._setting)
        except OSError as error:
            self.fail(error)

    def _refuse_producers(self) -> None:
        if self.low_space:
            return
        self.low_space = self.refusing = True
        logger.error(
            "log directory %s has %d bytes free, fewer than the %d of moldau.log.dir.free.bytes.min: rejecting "
            "produce requests until there are more, fetches are still served. Lower retention, delete topics "
            "or enlarge the volume.",
            self.path,
            self.free_bytes,
            self.free_bytes_min,
        )

    def low_space_error(self) -> KafkaError:
        self.low_space_refusals_total += 1
        return KafkaError(
            KAFKA_STORAGE_ERROR,
            f"The log directory {self.path} has less than {self.free_bytes_min} bytes of free space: "
            "try again when there is more",
        )

    @property
    def has_unsynced_directories(self) -> bool:
        return self.directories_synced < self.directories_changed

    def on_directories_synced(self, directories_changed: int) -> None:
        """The directory, as of `directories_changed`, is on the medium: one sync serves all of them."""
        self.directories_synced = max(self.directories_synced, directories_changed)

    def storage_error(self) -> KafkaError:
        return KafkaError(KAFKA_STORAGE_ERROR, f"The log directory {self.path} is offline: {self.failure}")

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r}{', failed' if self.failed else ''})"
