"""One node in the simulated world: clients work, faults strike, and after every restart everything is checked.

The fault plan comes from the seed: processes killed and power lost, between two events or inside any disk operation,
disks that run full, fail, are slow or stuck, bits that flip in what was not synced, connections that break.
"""

from __future__ import annotations

import errno

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.protocol.uuids import uuid_to_text
from moldau.records.batch import BatchHeader, CorruptBatch, split_batches
from moldau.sim.kernel.clock_faults import AGES, ClockFaults
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.kernel.host import Host, Program
from moldau.sim.kernel.slow_disks import SlowDisks
from moldau.sim.kernel.trace_handler import traced
from moldau.sim.kernel.world import Violation, World
from moldau.sim.models.topics import ClusterModel
from moldau.sim.node.admin import SimAdmin
from moldau.sim.node.audit import Auditor, HostDied, NotReady
from moldau.sim.node.client import SimClient
from moldau.sim.node.consumer import SimConsumer
from moldau.sim.node.producer import SimProducer
from moldau.sim.node.program import NodeProgram
from moldau.storage.log import Log
from moldau.storage.meta_properties import MetaProperties, write_meta_properties

DATA = "data"
# Base offset and leader epoch of a batch lie outside its checksum: no reader can tell that they have changed.
LENGTH_FIELD, LEADER_EPOCH_FIELD, MAGIC_FIELD = 8, 12, 16
READY_MS_MAX = 60_000
FAILURE_MS_MAX = 2500
SETTLE_MS = 1500


class NodeWorld:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.rng = self.world.derived_rng("faults")
        self.model = ClusterModel()
        self.clients: list[SimClient] = []
        self.paused = True
        self.calm = False
        self.deaths = 0
        self.data_losses = 0
        self.audits = 0
        self.acknowledged_records = 0
        self.fetched_records = 0
        self.stable_topics = self.rng.randint(1, 2)
        self._producer_ids: set[tuple[int, int]] = set()
        self._power_lost = False
        self._failing = False
        self._boot_ms = 0
        self._audit_due = False
        self.config = BrokerConfig(self._settings(), warn=False)
        self.host = Host(self.world, 1, self._build)
        self.host.on_death = self._on_death
        self.host.disk.observer = lambda line: self.world.note(f"disk {line}")
        self.clock_faults = ClockFaults(self.world, self._hosts_for_clock_faults)
        self.clock_faults.add_pauses()
        self.slow_disks = SlowDisks(self.world, self._disks_that_may_be_slow)
        self.format()

    def _hosts_for_clock_faults(self) -> list[Host]:
        """Not while somebody looks at the node and waits for its responses."""
        return [] if self.world.events_run and (self.paused or self.calm) else [self.host]

    def leave_out_slowness(self) -> None:
        """No slow disks: as this world was before there were any."""
        self.slow_disks.leave_out()

    def _disks_that_may_be_slow(self) -> dict[str, SimDisk]:
        return {} if self.paused or self.calm else {"1": self.host.disk}

    def _settings(self) -> dict[str, str]:
        values = single_node_values()
        del values["controller.quorum.bootstrap.servers"]
        return {
            **values,
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "log.dirs": DATA,
            "auto.create.topics.enable": "false",
            "log.flush.offset.checkpoint.interval.ms": str(self.rng.choice((500, 60000))),
            "log.flush.start.offset.checkpoint.interval.ms": str(self.rng.choice((500, 60000))),
            "log.flush.scheduler.interval.ms": "200",
            "log.retention.check.interval.ms": str(self.rng.choice((1000, 300000))),
            "log.initial.task.delay.ms": "200",
            "replica.high.watermark.checkpoint.interval.ms": "1000",
            **AGES,
            "metadata.log.max.record.bytes.between.snapshots": str(self.rng.choice((3000, 20971520))),
        }

    def format(self) -> None:
        """What `storage format` leaves of a node with a static quorum, as far as a start needs it."""
        disk = self.host.disk
        disk.make_directory(DATA)
        disk.sync_directory("")
        properties = MetaProperties(uuid_to_text(self.rng.randbytes(16)), 1, self.rng.randbytes(16))
        write_meta_properties(disk, DATA, properties, "")

    def _build(self, host: Host) -> Program:
        return NodeProgram(host, self.config)

    # Running

    def run(self, duration_ms: int) -> None:
        """Runs the world for so long, lets the node rest, and checks everything once more."""
        with traced(self.world):
            self._run(duration_ms)

    def _run(self, duration_ms: int) -> None:
        self._boot()
        self._start_clients()
        self.world.schedule(self.rng.randint(500, 3000), self._fault)
        self.world.schedule(self.rng.randint(100, 1000), self._break_connection)
        self.clock_faults.start()
        self.slow_disks.start()
        self.world.run_for(duration_ms)
        self._calm_down()
        self.world.run_for(FAILURE_MS_MAX + 1000)
        if not self.world.run_until(lambda: not self.paused and self.host.running, READY_MS_MAX * 2):
            raise Violation("a node that is left alone comes back")
        self.paused = True
        self.world.run_for(1000)
        self._audit()

    def _start_clients(self) -> None:
        self.clients.append(SimAdmin(self).client)
        for number in range(self.rng.randint(2, 5)):
            self.clients.append(SimProducer(self, f"producer{number}").client)
        for number in range(self.rng.randint(1, 3)):
            self.clients.append(SimConsumer(self, f"consumer{number}").client)

    def summary(self) -> str:
        return (
            f"{self.world.events_run} events, {self.deaths} deaths, {self.data_losses} with the power,"
            f" {self.acknowledged_records} records acknowledged, {self.fetched_records} fetched"
        )

    # Death and return

    def _on_death(self, how: str) -> None:
        self.deaths += 1
        self.paused = True
        if how.startswith("power"):
            self._power_lost = True
            self.data_losses += 1
            self._maybe_flip_bits()
        self.host.disk.clear_faults()
        self.slow_disks.repair(self.host.disk)
        self._failing = False
        self.world.schedule(self.rng.randint(1, 500), self._boot)

    def _boot(self) -> None:
        if self.host.running:
            return
        self._boot_ms = self.world.now_ms
        if self.rng.random() < 0.15 and self.deaths and not self.calm:
            self.host.plan_crash(self.rng.randint(1, 40), power=self.rng.random() < 0.5)
        if self.host.boot():
            life = self.host.lives
            self.world.schedule(50, lambda: self._audit_when_ready(life))

    def _audit_when_ready(self, life: int) -> None:
        if not self.host.running or self.host.lives != life:
            return
        try:
            self._audit()
        except HostDied:
            return
        except NotReady as reason:
            if self.world.now_ms - self._boot_ms > READY_MS_MAX:
                raise Violation(f"a node that was started becomes ready: {reason}") from reason
            self.world.schedule(50, lambda: self._audit_when_ready(life))

    def audit_soon(self) -> None:
        """Somebody is uncertain about a topic: look, once what is on its way has arrived."""
        if not self._audit_due:
            self._audit_due = True
            self.world.schedule(SETTLE_MS, self._settle)

    def _settle(self) -> None:
        self._audit_due = False
        if self.paused or not self.host.running:
            return
        # What came while it was stopped, or its disk was slow, is done only now.
        since_ms = max(self.host.resumed_ms, self.slow_disks.ended_ms)
        if self.host.paused or self.slow_disks.is_any_slow or self.world.now_ms - since_ms < SETTLE_MS:
            self.audit_soon()
            return
        try:
            Auditor(self.host, self.model, self.rng).check_topics()
        except (HostDied, NotReady):
            self.audit_soon()

    def _audit(self) -> None:
        auditor = Auditor(self.host, self.model, self.rng)
        auditor.check_topics()
        power_lost = self._power_lost
        for topic in self.model.present():
            auditor.check_configs(topic)
            for index in range(len(topic.partitions)):
                auditor.check_partition(topic, index, power_lost=power_lost)
        self._audit_more(auditor, power_lost=power_lost)
        self._check_nothing_is_left_of_deleted_topics()
        self._power_lost = False
        self.audits += 1
        ends = [
            f"{model.name}:{model.acknowledged_end}" for topic in self.model.present() for model in topic.partitions
        ]
        self.world.note(f"audit {self.audits}: all is well ({', '.join(ends)})")
        self.paused = False

    def _check_nothing_is_left_of_deleted_topics(self) -> None:
        program = self.host.program
        if isinstance(program, NodeProgram):
            left = program.node.topics_with_log_configs() - set(program.node.image.topics_by_name)
            if left:
                raise Violation(f"nothing is remembered of topics that are gone: {sorted(left)}")

    def _audit_more(self, auditor: Auditor, *, power_lost: bool) -> None:
        """What the clients of other worlds have to look at."""

    def check_producer_id_is_new(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) in self._producer_ids:
            raise Violation(f"a producer id is handed out once: {producer_id} epoch {epoch}")
        self._producer_ids.add((producer_id, epoch))

    # Faults

    def _fault(self) -> None:
        self.world.schedule(self.rng.randint(200, 3500), self._fault)
        if self.paused or not self.host.running or self._failing or self.calm:
            return
        choice = self.rng.random()
        if choice < 0.15:
            self.host.kill()
        elif choice < 0.30:
            self.host.lose_power()
        elif choice < 0.40:
            self.host.stop()
        elif choice < 0.65:
            changes = self.rng.choice((1, 3, 10, 50))
            self.host.plan_crash(self.rng.randint(1, changes), power=self.rng.random() < 0.5)
        elif choice < 0.80:
            self._fill_disk()
        else:
            self._fail_disk()

    def _break_connection(self) -> None:
        """A client and the node lose each other in the middle of whatever they were doing."""
        self.world.schedule(self.rng.randint(50, 1500), self._break_connection)
        if not self.calm and self.host.running:
            self.rng.choice(self.clients).disconnect("it broke")

    def _fill_disk(self) -> None:
        disk = self.host.disk
        disk.capacity_bytes = disk.used_bytes() + self.rng.randint(0, 3000)
        self.world.note("the disk is full")
        self._end_failure_later()

    def _fail_disk(self) -> None:
        operation = self.rng.choice(("append", "sync", "read", "open", "rename", "sync_directory", "truncate"))
        fragment = self.rng.choice((".log", ".index", "steady", "__cluster_metadata", "checkpoint", ""))
        self.host.disk.fail(operation, fragment, errno.EIO, self.rng.randint(1, 3), self.rng.randint(0, 5))
        self.world.note(f"the next {operation} of *{fragment}* fails")
        self._end_failure_later()

    def _end_failure_later(self) -> None:
        """A failed disk is repaired by restarting the node, as an operator would."""
        self._failing = True
        life = self.host.lives

        def end() -> None:
            if self.host.lives != life or not self.host.running:
                return
            self.host.disk.clear_faults()
            self._failing = False
            if self.rng.random() < 0.5:
                self.host.kill()
            else:
                self.host.stop()

        self.world.schedule(self.rng.randint(100, FAILURE_MS_MAX), end)

    def _maybe_flip_bits(self) -> None:
        """Flips a bit in what lies behind a recovery point: the next start looks there, and must find it."""
        program = self.host.last_program
        if not isinstance(program, NodeProgram) or self.rng.random() < 0.7:
            return
        logs = [log for _, log in sorted(program.node.logs.logs.items()) if log.recovery_point < log.log_end_offset]
        if not logs:
            return
        log = self.rng.choice(logs)
        path = log.active.path(".log")
        if not self.host.disk.exists(path):
            return
        data = self.host.disk.peek(path)
        try:
            headers = split_batches(data, 0, len(data))
        except CorruptBatch:
            return  # the power loss has damaged it already
        headers = [header for header in headers if header.base_offset >= log.recovery_point]
        if headers:
            self._flip(log, path, self.rng.choice(headers))

    def _flip(self, log: Log, path: str, header: BatchHeader) -> None:
        covered = [*range(LENGTH_FIELD, LEADER_EPOCH_FIELD), *range(MAGIC_FIELD, int(header.size))]
        self.host.disk.flip_bit(path, int(header.position) + self.rng.choice(covered), self.rng.randrange(8))
        topic = self.model.current(log.topic)
        if topic is not None and log.partition < len(topic.partitions):
            model = topic.partitions[log.partition]
            model.durable_end = min(model.durable_end, int(header.base_offset))
        else:
            self._on_internal_log_damaged()

    def _on_internal_log_damaged(self) -> None:
        """A bit was flipped in a log that is not in the model."""

    def _calm_down(self) -> None:
        """No more faults: the node must come back by itself."""
        self.calm = True
        self.clock_faults.end()
        self.slow_disks.end()
        self.host.resume()
        self.host.disk.clear_faults()
        self.host.disk.crash_after(0)
