"""Brokers come, go, lose data and are moved around in any order: who may lead has everything that was committed."""

from __future__ import annotations

import random

import pytest

from moldau.controller.partition_index import PartitionIndex
from moldau.metadata.model import RECOVERING, PartitionRegistration
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import incremental_alter_configs_request as configs
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
from moldau.protocol.messages.elect_leaders_request import ElectLeadersRequest
from tests.unit.controller.world import World, directory

BROKERS = (1, 2, 3, 4)
TOPICS = {"one": 1, "two": 2, "all": 3}
STEPS = 300


class Play:
    """The controller is real; brokers are lists of records, and lose a random tail of them when they are killed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(seed)
        self.world.add_brokers(*BROKERS)
        for name, minimum in TOPICS.items():
            replicas = self.rng.sample(BROKERS, 3)
            self.world.create(name, assignments=[replicas], configs={"min.insync.replicas": str(minimum)})
        self.logs = {(name, broker_id): [0] for name in TOPICS for broker_id in BROKERS}
        self.committed = {name: [0] for name in TOPICS}
        self.before = {name: self.world.partition(name) for name in TOPICS}
        self.running = set(BROKERS)
        self.clean_epochs: dict[int, int] = {}
        self.lives = dict.fromkeys(BROKERS, 1)
        self.records = 0
        self.clean_elections = 0

    # What may happen

    def produce(self) -> None:
        name, partition = self.any_partition()
        leader = partition.leader
        if leader not in self.running or not self.world.image.brokers[leader].is_active:
            return
        minimum = self.world.controller.state.min_insync_replicas(name)
        if len(partition.isr) < min(minimum, len(partition.replicas)):
            return
        self.records += 1
        self.logs[name, leader].append(self.records)
        for replica in partition.isr:
            if replica in self.running:
                self.logs[name, replica] = list(self.logs[name, leader])
        if self.running.issuperset(partition.isr):
            self.committed[name] = list(self.logs[name, leader])

    def kill(self) -> None:
        if self.running:
            broker_id = self.rng.choice(sorted(self.running))
            self.running.remove(broker_id)
            for name in TOPICS:
                log = self.logs[name, broker_id]
                self.logs[name, broker_id] = log[: self.rng.randint(0, len(log))]

    def notice(self) -> None:
        """Whoever is down is fenced, some when their session ends, some before; a few who live are taken for dead."""
        silent = set(BROKERS) - self.running
        if self.rng.random() < 0.3:
            silent.add(self.rng.choice(BROKERS))
        if self.rng.random() < 0.5:
            for broker_id in sorted(silent):
                self.world.controller.brokers.connection_lost(broker_id, self.epoch(broker_id))
                self.world.run(self.world.controller.fence_broker(broker_id, self.epoch(broker_id)))
            return
        self.world.now_ms += 9_000
        self.heartbeats(silent)
        for _ in silent:
            self.world.run(self.world.controller.fence_stale_brokers(self.world.now_ms))

    def heartbeats(self, silent: set[int] | frozenset[int] = frozenset()) -> None:
        for broker_id in sorted(self.running - silent):
            self.world.heartbeat(broker_id)

    def stop(self) -> None:
        if len(self.running) < 2:
            return
        broker_id = self.rng.choice(sorted(self.running))
        for _ in range(5):
            if self.world.heartbeat(broker_id, want_shut_down=True).should_shut_down:
                self.running.remove(broker_id)
                self.clean_epochs[broker_id] = self.epoch(broker_id)
                return
            self.heartbeats({broker_id})
        # Others that are down but not known to be keep it from leaving in good order.
        self.running.remove(broker_id)

    def start(self) -> None:
        down = sorted(set(BROKERS) - self.running)
        if not down:
            return
        broker_id = self.rng.choice(down)
        previous = self.clean_epochs.pop(broker_id, -1)
        try:
            self.world.register(broker_id, None, previous, self.lives[broker_id] + 1)
        except KafkaError as error:
            assert error.code == errors.DUPLICATE_BROKER_REGISTRATION
            self.clean_epochs[broker_id] = previous
            return
        self.lives[broker_id] += 1
        self.running.add(broker_id)
        self.check()
        self.world.heartbeat(broker_id)

    def join(self) -> None:
        """A follower has caught up with its leader, which says so."""
        name, partition = self.any_partition()
        candidates = [b for b in partition.replicas if b in self.running and b not in partition.isr]
        if partition.leader in self.running and candidates:
            joining = self.rng.choice(candidates)
            log = self.logs[name, joining]
            self.logs[name, joining] = list(self.logs[name, partition.leader])
            if self.alter(name, [*partition.isr, joining]) != errors.NONE and joining not in self.isr(name):
                self.logs[name, joining] = log

    def leave(self) -> None:
        """A follower lags behind."""
        name, partition = self.any_partition()
        if partition.leader in self.running and len(partition.isr) > 1:
            lagging = self.rng.choice([b for b in partition.isr if b != partition.leader])
            self.alter(name, [b for b in partition.isr if b != lagging])

    def reassign(self) -> None:
        name, _ = self.any_partition()
        target = None if self.rng.random() < 0.3 else self.rng.sample(BROKERS, self.rng.choice((2, 3, 3)))
        topics = [ReassignableTopic(name, [ReassignablePartition(0, target)])]
        request = AlterPartitionReassignmentsRequest(topics=topics)
        self.world.run(self.world.controller.alter_partition_reassignments(request, 0))

    def change_minimum(self) -> None:
        name, _ = self.any_partition()
        changes = [configs.AlterableConfig("min.insync.replicas", 0, str(self.rng.randint(1, 3)))]
        request = configs.IncrementalAlterConfigsRequest([configs.AlterConfigsResource(2, name, changes)])
        self.world.run(self.world.controller.incremental_alter_configs(request, 0))

    def elect(self) -> None:
        if self.rng.random() < 0.2:
            self.world.run(self.world.controller.elect_leaders(ElectLeadersRequest(1, None), 0))
        self.world.run(self.world.controller.elect_leaders(ElectLeadersRequest(0, None), 0))
        self.world.run(self.world.controller.balance_leaders())

    def lose_directory(self) -> None:
        """The only directory of a broker: its process ends."""
        if self.running:
            broker_id = self.rng.choice(sorted(self.running))
            request = BrokerHeartbeatRequest(broker_id, self.epoch(broker_id), self.world.image.offset)
            request.offline_log_dirs = [directory(broker_id)]
            self.world.run(self.world.controller.broker_heartbeat(request, self.world.now_ms))
            self.running.remove(broker_id)
            for name in TOPICS:
                self.logs[name, broker_id] = []

    # Helpers

    def any_partition(self) -> tuple[str, PartitionRegistration]:
        name = self.rng.choice(list(TOPICS))
        return name, self.world.partition(name)

    def epoch(self, broker_id: int) -> int:
        return self.world.image.brokers[broker_id].broker_epoch

    def isr(self, name: str) -> tuple[int, ...]:
        return self.world.partition(name).isr

    def alter(self, name: str, isr: list[int]) -> int:
        partition = self.world.partition(name)
        data = PartitionData(0, partition.leader_epoch, partition_epoch=partition.partition_epoch)
        data.new_isr_with_epochs = [BrokerState(b, self.epoch(b)) for b in isr]
        request = AlterPartitionRequest(partition.leader, self.epoch(partition.leader))
        request.topics = [TopicData(self.world.image.topics_by_name[name].topic_id, [data])]
        answer = self.world.run(self.world.controller.alter_partition(request, self.world.now_ms))
        code: int = answer.topics[0].partitions[0].error_code
        return code

    # What must hold

    def check(self) -> None:
        for name in TOPICS:
            old, new = self.before[name], self.world.partition(name)
            self.before[name] = new
            self.check_rules(name, new)
            assert new.partition_epoch >= old.partition_epoch and new.leader_epoch >= old.leader_epoch
            assert new.leader == old.leader or new.leader_epoch > old.leader_epoch
            for broker_id in old.replicas:
                if broker_id not in new.replicas:
                    self.logs[name, broker_id] = []
            if new.leader_epoch != old.leader_epoch and new.leader in self.running:
                # One that is dead already will not lead: before it serves anybody it has to register.
                self.check_election(name, new)
        index, again = self.world.controller.state.partitions, PartitionIndex(self.world.image)
        for broker_id in BROKERS:
            assert sorted(index.with_isr_member(broker_id)) == sorted(again.with_isr_member(broker_id))
            assert sorted(index.with_elr_member(broker_id)) == sorted(again.with_elr_member(broker_id))
            assert index.leads(broker_id) == again.leads(broker_id)
        assert index.leaderless == again.leaderless and index.not_preferred == again.not_preferred
        assert index.reassigning == again.reassigning

    def check_rules(self, name: str, partition: PartitionRegistration) -> None:
        brokers = self.world.image.brokers
        minimum = self.world.controller.state.min_insync_replicas(name)
        isr, elr = set(partition.isr), set(partition.elr)
        assert all(brokers[b].is_active for b in isr), "a broker that is fenced or leaving is in no ISR"
        assert not isr & elr and isr | elr <= set(partition.replicas)
        assert partition.leader in isr if partition.leader >= 0 else not isr
        assert not elr or len(isr) < min(minimum, len(partition.replicas)), "nobody is eligible beside a full ISR"
        assert partition.leader < 0 or not partition.last_known_elr
        assert len(partition.replicas) == len(partition.directories)

    def check_election(self, name: str, partition: PartitionRegistration) -> None:
        log, committed = self.logs[name, partition.leader], self.committed[name]
        if partition.leader_recovery_state == RECOVERING:
            self.committed[name] = log[: len(committed)] if log[: len(committed)] == committed else list(log)
            return
        self.clean_elections += 1
        assert log[: len(committed)] == committed, f"{name}: {partition} lacks what was committed"


@pytest.mark.parametrize("seed", range(40))
def test_a_leader_that_was_elected_cleanly_has_everything_committed(seed: int) -> None:
    play = Play(seed)
    actions = [play.produce] * 6 + [play.join] * 5 + [play.start] * 6 + [play.heartbeats] * 2 + [play.notice] * 2
    actions += [play.kill, play.stop, play.leave, play.leave, play.reassign, play.change_minimum, play.elect]
    actions += [play.lose_directory]
    for _ in range(STEPS):
        play.rng.choice(actions)()
        play.check()
    assert play.clean_elections > 2 and play.records > 2, "hardly anything happened"
