"""Timestamps of records that are not in memory: threads read them, one record at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.node.cold_requests import ColdWait
from moldau.node.record_times import find_local
from moldau.node.replicas import Replicas
from moldau.protocol.errors import KafkaError
from moldau.records.batch import CorruptBatch
from moldau.storage.disk import ColdRead, Disk

WAITING_MAX: Final = 100
"""Whoever comes then may ask again."""

GroupPlace = tuple[str, str, int]
"""Group, topic and partition."""

Found = Callable[[GroupPlace, int, int], None]
"""Told the place, the offset and the timestamp of its record, -1 if there is none."""


class ColdTimes:
    """See the module. `look_up` is called in turns of the node."""

    def __init__(self, replicas: Replicas, disk: Disk, found: Found) -> None:
        self._replicas = replicas
        self._disk = disk
        self._found = found
        self._waiting: deque[tuple[GroupPlace, int]] = deque()
        self._lookup: tuple[GroupPlace, int] | None = None
        self._wait: ColdWait | None = None

    @property
    def has_work(self) -> bool:
        return bool(self._waiting) and self._lookup is None

    def add(self, place: GroupPlace, offset: int) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append((place, offset))

    def look_up(self) -> None:
        while self.has_work:
            self._lookup = self._waiting.popleft()
            self._wait = ColdWait(self._disk, self._go_on)
            self._go_on()

    def _go_on(self) -> None:
        assert self._lookup is not None and self._wait is not None
        place, offset = self._lookup
        partition = self._replicas.find(place[1], place[2])
        timestamp_ms = -1
        if partition is not None and partition.leader == partition.broker_id:
            self._wait.begin_try()
            try:
                timestamp_ms = find_local(partition, offset)
            except ColdRead as cold:
                self._wait.bring(cold)
                return
            except (KafkaError, CorruptBatch):
                pass  # the log says so itself, to those who read it
            finally:
                self._wait.end_try()
        self._lookup = self._wait = None
        self._found(place, offset, timestamp_ms)

    def close(self) -> None:
        self._waiting.clear()
        if self._wait is not None:
            self._wait.abandon()
