"""A whole cluster with share groups: everything may fail at any moment, and no record is forgotten or accepted twice.

It is the cluster world with other clients: producers, writers of transactions, and members of share groups that do
what they should and much that they should not. After the last fault the members work until nothing is left; then all
nodes are killed and come back, and the groups must stand where they stood.
"""

from __future__ import annotations

from functools import partial

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.share.machine import ShareMachine
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.metadata.features import DEAD_LETTERS_SHARE_VERSION, SHARE_VERSION
from moldau.node.share.partition import ACTIVE
from moldau.node.share.record_states import is_final
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import initialize_share_group_state_request as initialize_request
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from moldau.sim.cluster.audit import ClusterAudit
from moldau.sim.cluster.checks import node_of
from moldau.sim.cluster.producer import ClusterProducer
from moldau.sim.cluster.world import HEALED_MS_MAX, ClusterWorld
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.world import Violation
from moldau.sim.models.replicated_topics import PRESENT, ReplicatedTopic
from moldau.sim.share.admin import ShareAdmin
from moldau.sim.share.checks import ShareChecks
from moldau.sim.share.ledger import NO_OFFSET, ShareLedger
from moldau.sim.share.letters import PREFIX
from moldau.sim.share.members import ShareMember, Stranger
from moldau.sim.share.writer import ShareWriter

DEFAULT_MILLISECONDS = 4_000
DRAIN_MS_MAX = 60_000
LATE_MS = (50, 2_500)
AFTER_RESTART_MS = 2_500
JOBS, KEYED = "jobs", "keyed"


class ShareGroup:
    """A group, its settings and its members."""

    def __init__(self, setting: ShareWorld, number: int) -> None:
        rng = setting.world.derived_rng(f"share group {number}")
        self.group_id = f"group{number}"
        self.is_set = False
        self.is_closed = False
        self.configs = {
            "share.auto.offset.reset": "earliest" if number == 0 else rng.choice(("earliest", "earliest", "latest")),
            "share.isolation.level": rng.choice(("read_committed", "read_uncommitted")),
        }
        if setting.has_dead_letters:
            rng_of_letters = setting.world.derived_rng(f"dead letters of group {number}")
            self.configs |= {
                "errors.deadletterqueue.topic.name": rng_of_letters.choice((f"dlq.{self.group_id}", "dlq.all")),
                "errors.deadletterqueue.copy.record.enable": rng_of_letters.choice(("true", "false")),
            }
        self.members = [ShareMember(setting, self.group_id, f"m{number}-{n}") for n in range(rng.randint(2, 5))]
        self.stranger = Stranger(setting, self.group_id)


class KeyedProducer(ClusterProducer):
    ACKS = (1, 1, -1, -1)
    RECORDS = (1, 2, 5, 20)

    def key_and_headers(self) -> tuple[bytes | None, list[tuple[str, bytes | None]] | None]:
        return b"%d" % self.rng.randrange(4), None


class ShareWorld(ClusterWorld):
    breaks_disks = True

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ledger = ShareLedger(self)
        self.checks.listener = self.ledger
        if self.compacts:
            self.checks.rewritten = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC})
        self.share_checks = ShareChecks(self)
        self.groups: list[ShareGroup] = []
        self.writers: list[ShareWriter] = []
        self.refused = 0
        self.strange_requests = 0
        self.late_copies = 0
        self._late_rng = self.world.derived_rng("late copies")
        self._machines: list[int] = []
        self._states_seen: dict[int, tuple[int, ...]] = {}
        self._resets: dict[SharePartitionKey, set[int]] = {}
        for host in self.hosts.values():
            host.on_turn = self._on_turn

    # The shape of the cluster

    def _choose_shape(self) -> None:
        super()._choose_shape()
        self.broker_ids = self.controller_ids = [1, 2, 3]
        self.is_combined = True
        rng = self.world.derived_rng("share settings")
        self.alters_groups = rng.random() < 0.35
        self.deletes_groups = rng.random() < 0.3  # those whose offsets are not altered
        self.deletes_records = rng.random() < 0.35
        self.compacts = rng.random() < 0.3
        self.common_settings |= {
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
            "transaction.state.log.num.partitions": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
            "offsets.topic.num.partitions": str(rng.choice((1, 2))),
            "request.timeout.ms": str(rng.choice((1000, 2000, 30000))),
            "share.coordinator.state.topic.replication.factor": "3",
            "share.coordinator.state.topic.min.isr": "2",
            "share.coordinator.state.topic.num.partitions": str(rng.choice((1, 2, 3))),
            "share.coordinator.snapshot.update.records.per.snapshot": str(rng.choice((0, 2, 10, 500))),
            "share.coordinator.cold.partition.snapshot.interval.ms": str(rng.choice((300, 1000, 300000))),
            "share.coordinator.state.topic.prune.interval.ms": str(rng.choice((400, 1500, 300000))),
            "share.coordinator.write.timeout.ms": str(rng.choice((500, 5000))),
            "group.share.session.timeout.ms": "1500",
            "group.share.min.session.timeout.ms": "1000",
            "group.share.heartbeat.interval.ms": "100",
            "group.share.min.heartbeat.interval.ms": "100",
            "group.share.record.lock.duration.ms": str(rng.choice((1000, 1500))),
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.delivery.count.limit": str(rng.choice((2, 3, 5, 10))),
            "group.share.partition.max.record.locks": str(rng.choice((100, 200))),
            "group.share.assignment.interval.ms": str(rng.choice((0, 200))),
            "group.share.initialize.retry.interval.ms": "1000",
        }
        letters = self.world.derived_rng("dead letters")
        self.has_dead_letters = letters.random() < 0.5
        if self.has_dead_letters:
            self.default_min_insync = 2
            self.common_settings |= {
                "min.insync.replicas": "2",
                "num.partitions": str(letters.choice((1, 2))),
                "errors.deadletterqueue.auto.create.topics.enable": "true",
            }
        if self.compacts:
            self.common_settings |= {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "200"}

    def feature_levels(self) -> dict[str, int]:
        levels = super().feature_levels()
        if self.has_dead_letters:
            levels[SHARE_VERSION] = DEAD_LETTERS_SHARE_VERSION
        return levels

    def _make_topics(self) -> None:
        partitions = self.world.derived_rng("share topics").randint(1, 3)
        self.model.add(ReplicatedTopic(JOBS, partitions, 3, 2, unclean=False, transient=False))
        if self.compacts:
            keyed = ReplicatedTopic(KEYED, 1, 3, 2, unclean=False, transient=False)
            keyed.trusted = False  # its batches do not stay as they are
            self.model.add(keyed)

    def _start_clients(self) -> None:
        rng = self.world.derived_rng("share clients")
        self.groups = [ShareGroup(self, number) for number in range(rng.choice((1, 1, 2)))]
        self.admin = ShareAdmin(self, self._internal_topics())
        kind = KeyedProducer if self.compacts else ClusterProducer
        self.producers = [kind(self, f"producer{number}") for number in range(rng.randint(1, 3))]
        self.writers = [ShareWriter(self, f"writer{number}") for number in range(rng.choice((0, 1, 2)))]
        self._clients = [producer.client for producer in self.producers]
        self._clients += [member.client for group in self.groups for member in group.members]
        self._clients += [group.stranger.client for group in self.groups]
        self._clients.append(self.admin.client)

    def _internal_topics(self) -> list[ReplicatedTopic]:
        """Where the coordinators are: they move about like any other partition."""
        found = []
        for name, key in (
            (SHARE_TOPIC, "share.coordinator.state.topic"),
            (GROUP_TOPIC, "offsets.topic"),
            (TRANSACTION_TOPIC, "transaction.state.log"),
        ):
            topic = ReplicatedTopic(
                name, int(self.common_settings[f"{key}.num.partitions"]), 3, 2, unclean=False, transient=False
            )
            topic.state = PRESENT
            found.append(topic)
        return found

    def begins_whole(self) -> bool:
        return True

    def _wait_for_a_beginning(self) -> None:
        super()._wait_for_a_beginning()
        if not self.world.run_until(lambda: self.share_checks.acquired > 20, HEALED_MS_MAX):
            raise Violation("members of share groups get records within 30 s")

    # What others ask

    @property
    def is_begun(self) -> bool:
        return all(topic.state == PRESENT for topic in self.model.topics) and all(group.is_set for group in self.groups)

    def subscription(self, group_id: str) -> list[str]:
        return [topic.name for topic in self.model.present()]

    def may_join(self, group_id: str) -> bool:
        return not self._group(group_id).is_closed

    def _group(self, group_id: str) -> ShareGroup:
        return next(group for group in self.groups if group.group_id == group_id)

    def is_read_committed(self, group_id: str) -> bool:
        return self._group(group_id).configs["share.isolation.level"] == "read_committed"

    def begins_with_earliest(self, group_id: str) -> bool:
        return self._group(group_id).configs["share.auto.offset.reset"] == "earliest"

    def copies_records(self, group_id: str) -> bool:
        return self._group(group_id).configs.get("errors.deadletterqueue.copy.record.enable") == "true"

    def is_compacted(self, topic: str) -> bool:
        return topic == KEYED

    def note_reset(self, key: SharePartitionKey, offset: int) -> None:
        self._resets.setdefault(key, set()).add(offset)

    def is_reset(self, key: SharePartitionKey, offset: int) -> bool:
        return offset in self._resets.get(key, ())

    def send_late_copy(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """The request that a state began with arrives once more, much later, at whoever coordinates it then: its sender
        had heard no response on one connection and asked again on another."""
        snapshots_only = self.common_settings["share.coordinator.snapshot.update.records.per.snapshot"] == "0"
        if start_offset == NO_OFFSET or self.deletes_groups or snapshots_only:
            # Where a leader's writes are snapshots they look like the beginning of a state after a failover.
            return
        row = initialize_request.PartitionData(key[2], state_epoch, start_offset)
        copy = LateCopy(self, key, row)
        self.world.schedule(self._late_rng.randint(*LATE_MS), copy.arrive)

    def add_machine(self, machine: int) -> None:
        self._machines.append(machine)

    def client_machines(self) -> list[int]:
        return super().client_machines() + self._machines

    def _on_turn(self, host: Host) -> None:
        self.checks.on_turn(host)
        self._look_at_states(host)
        self.share_checks.on_turn(host)
        self.ledger.letters.check()

    def _look_at_states(self, host: Host) -> None:
        """What is committed of states and dead letters is looked at at once: its leader may answer, and be gone
        before the next look."""
        node = node_of(host)
        if node is None:
            return
        topics = node.image.topics_by_name
        names = [SHARE_TOPIC, *sorted(name for name in topics if name.startswith(PREFIX))]
        places = [(name, index) for name in names if name in topics for index in topics[name].partitions]
        partitions = [node.replicas.find(name, index) for name, index in places]
        seen = tuple([0 if partition is None else partition.high_watermark.offset for partition in partitions])
        if seen != self._states_seen.get(host.host_id):
            self._states_seen[host.host_id] = seen
            self.checks.look_at(host)

    def summary(self) -> str:
        ledger, checks = self.ledger, self.share_checks
        return (
            f"share groups: {checks.acquired} records locked, {checks.delivered_again} of them again,"
            f" {ledger.told_accepted} accepted, {ledger.told_rejected} rejected, {self.refused} requests refused,"
            f" {self.strange_requests} of strangers, {ledger.resets} resets, {self.late_copies} late copies,"
            f" {ledger.letters.written} dead letters"
            f" ({ledger.letters.repeated} again); {super().summary()}"
        )

    # The end

    def _wait_until_whole(self) -> None:
        """A call that is stuck in a disk may come back half a minute after the last fault, but not later."""
        self.world.run_until(self.all_is_well, HEALED_MS_MAX)
        super()._wait_until_whole()

    def _calm_down(self) -> None:
        for group in self.groups:
            group.is_closed = False
        super()._calm_down()
        if not self.world.run_until(lambda: all(writer.is_done for writer in self.writers), HEALED_MS_MAX):
            raise Violation("a whole cluster answers everybody within 30 s: writers of transactions wait")
        self._drain()

    def _drain(self) -> None:
        if not self.world.run_until(lambda: not self.what_is_left(), DRAIN_MS_MAX):
            raise Violation(f"every record is done with in the end: {self.what_is_left()}")

    def share_keys(self) -> list[SharePartitionKey]:
        return [
            (group.group_id, topic.topic_id, index)
            for group in self.groups
            for topic in self.model.present()
            for index in range(len(topic.partitions))
        ]

    def what_is_left(self) -> str:
        """Some record that is not done with; empty for none."""
        for key in self.share_keys():
            topic = self.model.by_id(key[1])
            registration = self.newest_image().partition(key[1], key[2])
            assert topic is not None and registration is not None
            node = node_of(self.hosts[registration.leader])
            partition = None if node is None else node.replicas.find(topic.name, key[2])
            one = None if node is None else node.shares.found.get(key)
            if partition is None or partition.log is None:
                return f"{topic.name}-{key[2]} is not there"
            end = int(partition.high_watermark.offset)
            if end < partition.log.log_end_offset or partition.last_stable_offset(partition.log) < end:
                return f"{topic.name}-{key[2]} is stable up to {partition.last_stable_offset(partition.log)} of {end}"
            share = self.ledger.share(key)
            if share.start >= end or (end <= max(share.start, 0) and share.exists):
                continue
            if one is None or one.state != ACTIVE:
                return f"{self.ledger.name_of(key)} is not loaded, stored up to {share.start} of {end}"
            if one.window.start_offset < end:
                return f"{self.ledger.name_of(key)} is done up to {one.window.start_offset} of {end}, {one.window.gaps}"
        return ""

    def _audit(self) -> None:
        self.checks.look_at_all()
        for key in self.share_keys():
            self._check_finished(key)
        self.ledger.letters.check_end()
        self._check_coordinators()
        ShareAudit(self).run()

    def _check_finished(self, key: SharePartitionKey) -> None:
        topic = self.model.by_id(key[1])
        assert topic is not None
        self.ledger.check_start(key, self.ledger.log_of(topic.name, key[2]).end, "the end")

    def _check_coordinators(self) -> None:
        """What share coordinators know is what their records say."""
        for host in self.hosts.values():
            node = node_of(host)
            assert node is not None
            for shard in node.coordinators.shares.runtime.shards.values():
                machine = shard.machine
                if not isinstance(machine, ShareMachine):
                    continue
                for key, state in machine.states.items():
                    share = self.ledger.share(key)
                    stored = {
                        offset: (batch.count, batch.state)
                        for batch in state.batches
                        for offset in range(batch.first, batch.last + 1)
                    }
                    if (state.start_offset, state.leader_epoch) != (share.start, share.leader_epoch):
                        raise Violation(
                            f"a coordinator knows what is stored: {self.ledger.name_of(key)} starts at"
                            f" {state.start_offset} (epoch {state.leader_epoch}), stored is {share.start}"
                            f" ({share.leader_epoch})"
                        )
                    if stored != share.states:
                        raise Violation(
                            f"a coordinator knows what is stored: {self.ledger.name_of(key)}: {stored} is not"
                            f" {share.states}"
                        )


class LateCopy:
    """A request to begin a state that arrives long after it was carried out."""

    def __init__(self, setting: ShareWorld, key: SharePartitionKey, row: initialize_request.PartitionData) -> None:
        self._setting = setting
        self._key = key
        self._row = row

    def arrive(self) -> None:
        for host in self._setting.hosts.values():
            host.turn(partial(self._run, host))

    def _run(self, host: Host) -> None:
        node = node_of(host)
        if node is not None:
            node.coordinators.shares.run(self._key, partial(self._decide, host.now_ms), self._done, host.now_ms)

    def _decide(self, now_ms: int, machine: ShareMachine) -> Outcome:
        self._setting.late_copies += 1
        return machine.initialize(self._key, self._row, now_ms)

    def _done(self, result: Message | KafkaError) -> None:
        """Nobody waits for it any more."""


class ShareAudit(ClusterAudit):
    """Every replica leads in turn, then all nodes are killed: whatever was done with stays so."""

    def __init__(self, setting: ShareWorld) -> None:
        super().__init__(setting)
        self.share_setting = setting

    def run(self) -> None:
        setting = self.share_setting
        self.check_topics()
        self.rotate()
        self.world.run_for(AFTER_RESTART_MS)
        before = self._finished()
        for host in setting.hosts.values():
            host.kill()
        if not self.world.run_until(setting.all_is_well, HEALED_MS_MAX):
            raise Violation(f"a cluster that is left alone becomes whole within 30 s: {setting.what_is_wrong()}")
        self.world.run_for(AFTER_RESTART_MS)
        setting.checks.look_at_all()
        setting._drain()
        setting.ledger.letters.check_end()
        setting._check_coordinators()
        after = self._finished()
        for key, count in before.items():
            if after[key] < count:
                name = setting.ledger.name_of(key)
                raise Violation(
                    f"what was done with before a restart is so after it: {name} {count}, then {after[key]}"
                )
        self.check_images_are_equal()

    def _finished(self) -> dict[SharePartitionKey, int]:
        found = {}
        for key in self.share_setting.share_keys():
            share = self.share_setting.ledger.share(key)
            found[key] = max(0, share.start) + sum(is_final(state) for _, state in share.states.values())
        return found
