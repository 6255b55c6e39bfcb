"""Scripts that drive a controller: a line with `>` is a command, the lines below it are the records it wrote.

Commands: `brokers 1 2 3`; `topic NAME MIN-ISR REPLICAS...` (one partition); `silent N` (its session ends); `stop N`
(controlled shutdown) or `kill N`, then `start N` (a new process); `heartbeat N`; `isr NAME N...` (its leader says
so); `show`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from moldau.protocol.primitives import Message
from tests.scripts.replay import check_script, scripts_beside
from tests.unit.controller.world import World

SCRIPTS = scripts_beside(__file__)
HIDDEN = ("incarnation_id", "end_points", "features", "log_dirs", "topic_id", "unknown_tags", "directories")


class Script:
    def __init__(self) -> None:
        self.world = World()
        self.written: list[str] = []
        self.clean_epochs: dict[int, int] = {}
        self.lives: dict[int, int] = {}

    def run(self, line: str) -> list[str]:
        self.written = []
        command, *arguments = line.split()
        getattr(self, "do_" + command)(*arguments)
        return self.written

    def note(self) -> None:
        self.written += [show(record) for record, _ in self.world.records]
        self.world.records = []

    def do_brokers(self, *numbers: str) -> None:
        self.world.add_brokers(*(int(n) for n in numbers))

    def do_topic(self, name: str, minimum: str, *replicas: str) -> None:
        self.world.create(name, assignments=[[int(r) for r in replicas]], configs={"min.insync.replicas": minimum})
        self.note()

    def do_silent(self, number: str) -> None:
        self.world.now_ms += 9_000
        for broker_id, broker in self.world.image.brokers.items():
            if broker_id != int(number) and not broker.fenced:
                self.world.heartbeat(broker_id)
        self.world.run(self.world.controller.fence_stale_brokers(self.world.now_ms))
        self.note()

    def do_stop(self, number: str) -> None:
        while not self.world.heartbeat(int(number), want_shut_down=True).should_shut_down:
            self.note()
            for broker_id, broker in self.world.image.brokers.items():
                if broker.is_active:
                    self.world.heartbeat(broker_id)
        self.note()
        self.clean_epochs[int(number)] = self.world.image.brokers[int(number)].broker_epoch

    def do_kill(self, number: str) -> None:
        self.clean_epochs.pop(int(number), None)

    def do_start(self, number: str) -> None:
        life = self.lives[int(number)] = self.lives.get(int(number), 1) + 1
        self.world.register(int(number), None, self.clean_epochs.pop(int(number), -1), life)
        self.note()
        self.do_heartbeat(number)

    def do_heartbeat(self, number: str) -> None:
        self.world.heartbeat(int(number))
        self.note()

    def do_isr(self, name: str, *numbers: str) -> None:
        image, partition = self.world.image, self.world.partition(name)
        data = PartitionData(0, partition.leader_epoch, partition_epoch=partition.partition_epoch)
        data.new_isr_with_epochs = [BrokerState(int(n), image.brokers[int(n)].broker_epoch) for n in numbers]
        request = AlterPartitionRequest(partition.leader, image.brokers[partition.leader].broker_epoch)
        request.topics = [TopicData(image.topics_by_name[name].topic_id, [data])]
        self.world.run(self.world.controller.alter_partition(request, self.world.now_ms))
        self.note()

    def do_show(self) -> None:
        for topic in self.world.image.topics_by_name.values():
            self.written.append(f"{topic.name}: {topic.partitions[0]!r}")


def show(record: Message) -> str:
    default = type(record)()
    fields = [
        f"{name}={getattr(record, name)}"
        for name in record.FIELDS
        if name not in HIDDEN and getattr(record, name) != getattr(default, name)
    ]
    return f"{type(record).__name__} {' '.join(fields)}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_controller_writes_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the records that are written in it."""
    check_script(path, Script().run)
