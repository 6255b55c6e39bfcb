"""One metadata node on a simulated disk and clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import EndPoint
from moldau.node.broker_lifecycle import BrokerLifecycle
from moldau.node.controller_channel import ControllerChannel
from moldau.node.metadata_node import MetadataNode
from moldau.node.outbox import NoOutbox
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.server.storage_format import FormatOptions, format_storage
from moldau.sim.kernel.disk import SimDisk

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
LOG = "/data/__cluster_metadata-0"


class Harness:
    def __init__(self, settings: dict[str, str] | None = None, static: bool = False) -> None:
        self.now_ms = 1_700_000_000_000
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.disk = SimDisk(1, self._schedule)
        self.values = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "/data",
        }
        quorum = "controller.quorum.voters" if static else "controller.quorum.bootstrap.servers"
        self.values[quorum] = "1@127.0.0.1:9093" if static else "127.0.0.1:9093"
        self.values.update(settings or {})
        format_storage(self.values, CLUSTER, self.disk, FormatOptions(standalone=not static), self.now_ms)
        self.published: list[tuple[MetadataDelta, MetadataImage]] = []
        self.incarnation = 0
        self.ready = False

    def _schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.count += 1
        self.events.append((self.now_ms + delay_ms, self.count, action))

    def start(self, previous_epoch: int = -1, join: bool = True) -> MetadataNode:
        self.incarnation += 1
        self.ready = False
        config = BrokerConfig(self.values, warn=False)
        self.node = MetadataNode(config, self.disk, random.Random(7), bytes([self.incarnation]) * 16)
        self.node.add_listener(lambda delta, image: self.published.append((delta, image)))
        self.channel = ControllerChannel(self.node, NoOutbox())
        self.broker = BrokerLifecycle(self.node, self.channel)
        self.node.start(self.now_ms)
        if join:
            self.broker.join(
                [EndPoint("PLAINTEXT", "127.0.0.1", 9092, 0)],
                [self.node.directory_id],
                previous_epoch,
                self.now_ms,
                lambda: None,
                self._on_ready,
            )
        return self.node

    def _on_ready(self) -> None:
        self.ready = True

    def run(self, until: Callable[[], bool], limit_ms: int = 60_000) -> None:
        end_ms = self.now_ms + limit_ms
        while not until():
            self.node.tick(self.now_ms)
            deadline_ms = min(self.broker.poll(self.now_ms), self.node.poll(self.now_ms))
            if until():
                return
            next_event = min((event[0] for event in self.events), default=end_ms)
            self.now_ms = max(self.now_ms, min(deadline_ms, next_event, end_ms))
            assert self.now_ms < end_ms, "it did not happen"
            due = sorted(event for event in self.events if event[0] <= self.now_ms)
            self.events = [event for event in self.events if event[0] > self.now_ms]
            for _, _, action in due:
                action()

    def run_for(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        self._schedule(milliseconds, lambda: None)
        self.run(lambda: self.now_ms >= end_ms, milliseconds + 1)

    def ask(self, verb: Callable[[Controller], Result]) -> Any:
        answers: list[Any] = []
        self.node.submit(verb, lambda answer, now_ms: answers.append(answer), self.now_ms)
        self.run(lambda: bool(answers))
        return answers[0]

    def create(self, name: str, partitions: int = 1) -> Any:
        request = CreateTopicsRequest([CreatableTopic(name, partitions, 1)])
        return self.ask(lambda controller: controller.create_topics(request, self.now_ms))

    def stop(self) -> None:
        left: list[bool] = []
        self.broker.leave(self.now_ms, lambda: left.append(True))
        self.run(lambda: bool(left))
        self.node.stop(self.now_ms)
        self.disk.process_crash()
        self.events.clear()

    def lose_power(self) -> None:
        self.disk.power_loss()
        self.events.clear()
