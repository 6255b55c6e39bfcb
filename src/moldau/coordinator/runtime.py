"""Runs the shards of one coordinator: loads them when leadership arrives, hands verbs to them, drives their timers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from moldau.coordinator.log import CoordinatorLog
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.shard import ACTIVE, FAILED, LOADING, Done, Shard
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metrics.recent_times import RecentTimes
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.records.clocks import NEVER_MS, WallClock

logger = logging.getLogger("moldau.coordinator")

LOADED_AT_ONCE_MAX: Final = 4
"""So many shards may wait for the disk at the same time; the others have not begun."""

MachineFactory = Callable[[int, Timers], CoordinatorMachine]


class CoordinatorRuntime:
    """The shards of one internal topic that this broker leads, by partition index."""

    def __init__(
        self, topic: str, make_machine: MachineFactory, load_bytes: int, codec: int, wall: WallClock | None = None
    ) -> None:
        self.topic = topic
        self.wall = wall if wall is not None else WallClock()
        self.shards: dict[int, Shard] = {}
        self.load_times = RecentTimes()
        self.write_timeout_ms = 5000
        self.base_sequence = 0
        # Told when something is due earlier than the last `poll` said.
        self.on_new_deadline: Callable[[int], None] | None = None
        self._make_machine = make_machine
        self._load_bytes = load_bytes
        self._codec = codec
        self._image = MetadataImage()
        self._loading: list[Shard] = []
        self._due_ms = NEVER_MS

    # Leadership

    def lead(self, index: int, leader_epoch: int, log: CoordinatorLog, image: MetadataImage, now_ms: int) -> None:
        """This broker leads the partition now: its state is replayed, a step per turn."""
        known = self.shards.get(index)
        if known is not None:
            if known.leader_epoch >= leader_epoch:
                return
            if known.leader_epoch + 1 == leader_epoch and known.state != FAILED:
                # Nobody else can have led in between, so the state still is what the log says.
                known.leader_epoch = leader_epoch
                known.log = log
                known.release_committed(now_ms)
                return
            self.resign(index, now_ms)
        self._image = image
        self._begin_load(index, leader_epoch, log, now_ms)

    def _begin_load(self, index: int, leader_epoch: int, log: CoordinatorLog, now_ms: int) -> None:
        timers = Timers()
        timers.on_earlier = self._on_earlier
        machine = self._make_machine(index, timers)
        shard = Shard(f"{self.topic}-{index}", leader_epoch, log, machine, timers, self._codec, self.wall)
        shard.base_sequence = self.base_sequence
        shard.on_broken = self._on_broken
        shard.on_log_ready = self._on_log_ready
        shard.load_started_ms = now_ms
        self.shards[index] = shard
        self._loading.append(shard)
        if self._is_empty(shard):
            # Most are: they are ready at once.
            self._load_step(shard, now_ms)
        else:
            self._on_earlier(now_ms)

    def _is_empty(self, shard: Shard) -> bool:
        try:
            return shard.log.start_offset() == shard.log.end_offset()
        except KafkaError:
            return False

    def resign(self, index: int, now_ms: int) -> None:
        shard = self.shards.pop(index, None)
        if shard is not None:
            shard.close(now_ms)

    def resign_all(self, now_ms: int) -> None:
        for index in list(self.shards):
            self.resign(index, now_ms)

    def _on_broken(self, shard: Shard, now_ms: int) -> None:
        """Memory and log differ: what is in the log counts. If that cannot be replayed either, the shard has failed."""
        for index, known in self.shards.items():
            if known is shard:
                shard.close(now_ms)
                self._begin_load(index, shard.leader_epoch, shard.log, now_ms)
                return

    def _load_step(self, shard: Shard, now_ms: int) -> None:
        try:
            if not shard.load_step(self._load_bytes):
                return
            self._loading.remove(shard)
            shard.activate(self._image, now_ms)
        except Exception:
            # Whoever asks is told to look again; a restart or another leader reads the log anew.
            logger.exception(
                "cannot load %s; its groups have no coordinator until it has a new leader epoch", shard.name
            )
            if shard in self._loading:
                self._loading.remove(shard)
            shard.close(now_ms, FAILED)
            return
        elapsed_ms = now_ms - shard.load_started_ms
        self.load_times.record(elapsed_ms, now_ms)
        if shard.loaded_records:
            logger.info("loaded %s: %d records in %d ms", shard.name, shard.loaded_records, elapsed_ms)

    def _on_log_ready(self) -> None:
        self._on_earlier(0)

    def _on_earlier(self, due_ms: int) -> None:
        if due_ms < self._due_ms:
            self._due_ms = due_ms
            if self.on_new_deadline is not None:
                self.on_new_deadline(due_ms)

    # Requests

    def find(self, index: int) -> Shard:
        """The shard, if it can be asked; raises the error that sends the client elsewhere or lets it try again."""
        shard = self.shards.get(index)
        if shard is None or shard.state == FAILED:
            raise KafkaError(errors.NOT_COORDINATOR)
        if shard.state == LOADING:
            raise KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def run(self, index: int, verb: Callable[[CoordinatorMachine], Outcome], done: Done, now_ms: int) -> None:
        """Lets the shard decide, writes that down, and calls `done` with the response or the error."""
        try:
            shard = self.find(index)
            outcome = verb(shard.machine)
        except KafkaError as error:
            done(error)
            return
        deadline_ms = now_ms + self.write_timeout_ms
        shard.write(outcome, done, deadline_ms, now_ms)
        if shard.is_waiting:
            self._on_earlier(deadline_ms)

    # Driven from outside

    def poll(self, now_ms: int) -> int:
        """One step of a shard that loads, then what is due; returns when to call again."""
        if now_ms < self._due_ms:
            return self._due_ms
        self._due_ms = NEVER_MS
        next_ms = now_ms if self._load(now_ms) else NEVER_MS
        for shard in list(self.shards.values()):
            if shard.state == ACTIVE:
                if shard.next_ms() <= now_ms:
                    shard.poll(now_ms)
                next_ms = min(next_ms, shard.next_ms())
        self._due_ms = min(self._due_ms, next_ms)
        return self._due_ms

    def _load(self, now_ms: int) -> bool:
        """One at a time: the first is ready soon, and others are served in between. While its log is being read, it is
        the next one's turn. Says whether there is more to do that needs no waiting."""
        self._loading = [shard for shard in self._loading if shard.state == LOADING]
        for shard in self._loading[:LOADED_AT_ONCE_MAX]:
            if not shard.waits_for_log:
                self._load_step(shard, now_ms)
                break
        return any(not shard.waits_for_log for shard in self._loading[:LOADED_AT_ONCE_MAX])

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        self._image = image
        for shard in list(self.shards.values()):
            if shard.state == ACTIVE:
                shard.on_metadata(delta, image, now_ms)
