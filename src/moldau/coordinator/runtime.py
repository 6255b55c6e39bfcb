"""Runs the shards of one coordinator: loads them when leadership arrives, hands verbs to them, drives their timers."""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.coordinator.log import CoordinatorLog
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.shard import ACTIVE, FAILED, LOADING, Done, Shard
from moldau.coordinator.timers import NEVER_MS, Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError

logger = logging.getLogger("moldau.coordinator")

MachineFactory = Callable[[int, Timers], CoordinatorMachine]


class CoordinatorRuntime:
    """The shards of one internal topic that this broker leads, by partition index."""

    def __init__(self, topic: str, make_machine: MachineFactory, load_bytes: int, codec: int) -> None:
        self.topic = topic
        self.shards: dict[int, Shard] = {}
        self.write_timeout_ms = 5000
        # Told when something is due earlier than the last `poll` said.
        self.on_new_deadline: Callable[[int], None] | None = None
        self._make_machine = make_machine
        self._load_bytes = load_bytes
        self._codec = codec
        self._image = MetadataImage()
        self._loading: list[Shard] = []

    # Leadership

    def lead(self, index: int, leader_epoch: int, log: CoordinatorLog, image: MetadataImage, now_ms: int) -> None:
        """This broker leads the partition now: its state is replayed, a step per turn."""
        known = self.shards.get(index)
        if known is not None:
            if known.leader_epoch >= leader_epoch:
                return
            self.resign(index, now_ms)
        self._image = image
        timers = Timers()
        timers.on_earlier = self._on_earlier
        machine = self._make_machine(index, timers)
        shard = Shard(f"{self.topic}-{index}", leader_epoch, log, machine, timers, self._codec)
        self.shards[index] = shard
        self._loading.append(shard)
        # Most are empty or small: they are ready at once.
        self._load(shard, now_ms)

    def resign(self, index: int, now_ms: int) -> None:
        shard = self.shards.pop(index, None)
        if shard is not None:
            shard.close(now_ms)

    def resign_all(self, now_ms: int) -> None:
        for index in list(self.shards):
            self.resign(index, now_ms)

    def _load(self, shard: Shard, now_ms: int) -> None:
        try:
            finished = shard.load_step(self._load_bytes)
        except Exception:
            # Whoever asks is told to look again; a restart or another leader reads the log anew.
            logger.exception("%s cannot be loaded; its groups have no coordinator until it is led anew", shard.name)
            shard.state = FAILED
            self._loading.remove(shard)
            return
        if finished:
            self._loading.remove(shard)
            if shard.loaded_records:
                logger.info("%s is loaded: %d records", shard.name, shard.loaded_records)
            shard.activate(self._image, now_ms)
        else:
            self._on_earlier(now_ms)

    def _on_earlier(self, due_ms: int) -> None:
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
        """Lets the shard decide, writes that down, and calls `done` with the answer or the error."""
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
        """One step of each shard that loads, then what is due; returns when to call again."""
        for shard in list(self._loading):
            if shard.state == LOADING:
                self._load(shard, now_ms)
            else:
                self._loading.remove(shard)
        next_ms = now_ms if self._loading else NEVER_MS
        for shard in list(self.shards.values()):
            if shard.state == ACTIVE:
                if shard.next_ms() <= now_ms:
                    shard.poll(now_ms)
                next_ms = min(next_ms, shard.next_ms())
        return next_ms

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        self._image = image
        for shard in list(self.shards.values()):
            if shard.state == ACTIVE:
                shard.on_metadata(delta, image, now_ms)
