"""Scripts that drive a controller: a line with `>` is a command, the lines below it are the records it wrote.

Commands: `brokers 1 2 3`; `topic NAME MIN-ISR REPLICAS...` (one partition); `silent N` (its session ends); `gone N`
(its connection broke and nobody listens there); `refused N` (the latter alone); `stop N` (controlled shutdown) or
`kill N`, then `start N` (a new process); `heartbeat N`; `isr NAME N...` (its leader says so, and that it has
recovered); `elect preferred|unclean NAME`; `reassign NAME N...` and `cancel NAME`; `set NAME KEY VALUE`; `duties`
(what the controller does by itself); `directories N LETTER...`, `place NAME N LETTER`, `offline N LETTER`; `show`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol.errors import error_name
from moldau.protocol.messages import assign_replicas_to_dirs_request as directories
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
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
        response = self.world.run(self.world.controller.alter_partition(request, self.world.now_ms))
        self.note_error(response.topics[0].partitions[0].error_code)

    def do_gone(self, number: str) -> None:
        epoch = self.world.image.brokers[int(number)].broker_epoch
        self.world.controller.brokers.connection_lost(int(number), epoch)
        self.do_refused(number)

    def do_refused(self, number: str) -> None:
        epoch = self.world.image.brokers[int(number)].broker_epoch
        self.world.run(self.world.controller.fence_broker(int(number), epoch))
        self.note()

    def do_elect(self, kind: str, name: str) -> None:
        request = ElectLeadersRequest(("preferred", "unclean").index(kind), [TopicPartitions(name, [0])])
        response = self.world.run(self.world.controller.elect_leaders(request, 0))
        self.note_error(response.replica_election_results[0].partition_result[0].error_code)

    def do_reassign(self, name: str, *numbers: str) -> None:
        self.reassign(name, [int(number) for number in numbers])

    def do_cancel(self, name: str) -> None:
        self.reassign(name, None)

    def reassign(self, name: str, replicas: list[int] | None) -> None:
        request = AlterPartitionReassignmentsRequest()
        request.topics = [ReassignableTopic(name, [ReassignablePartition(0, replicas)])]
        response = self.world.run(self.world.controller.alter_partition_reassignments(request, 0))
        self.note_error(response.responses[0].partitions[0].error_code)

    def note_error(self, code: int) -> None:
        self.note()
        if code:
            self.written.append(error_name(code))

    def do_set(self, name: str, key: str, value: str) -> None:
        resource = AlterConfigsResource(2, name, [AlterableConfig(key, 0, value)])
        request = IncrementalAlterConfigsRequest([resource])
        self.world.run(self.world.controller.incremental_alter_configs(request, 0))
        self.note()

    def do_duties(self) -> None:
        duty = self.world.controller.duties.take(self.world.now_ms)
        while duty is not None:
            self.world.run(duty)
            self.note()
            duty = self.world.controller.duties.take(self.world.now_ms)

    def do_directories(self, number: str, *letters: str) -> None:
        self.world.image.brokers[int(number)].log_dirs = tuple(place(letter) for letter in letters)

    def do_place(self, name: str, number: str, letter: str) -> None:
        epoch = self.world.image.brokers[int(number)].broker_epoch
        topic_id = self.world.image.topics_by_name[name].topic_id
        rows = [directories.TopicData(topic_id, [directories.PartitionData(0)])]
        request = directories.AssignReplicasToDirsRequest(int(number), epoch)
        request.directories = [directories.DirectoryData(place(letter), rows)]
        self.world.run(self.world.controller.assign_replicas_to_dirs(request, 0))
        self.note()

    def do_offline(self, number: str, *letters: str) -> None:
        image = self.world.image
        request = BrokerHeartbeatRequest(int(number), image.brokers[int(number)].broker_epoch, image.offset)
        request.offline_log_dirs = [place(letter) for letter in letters]
        self.world.run(self.world.controller.broker_heartbeat(request, self.world.now_ms))
        self.note()

    def do_show(self) -> None:
        for topic in self.world.image.topics_by_name.values():
            self.written.append(f"{topic.name}: {topic.partitions[0]!r}")


def place(letter: str) -> bytes:
    return letter.encode() * 16


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
