"""A whole cluster with transactional applications: everything may fail at any moment, and transactions stay whole.

It is the cluster world with other clients: applications that write in transactions of both versions, copiers that
commit what they have read with what they write, zombies, readers of committed records, and requests that come again
when nobody expects them. After the last fault nothing may hang; then everything is held against what was promised.
"""

from __future__ import annotations

from moldau.metadata.features import TRANSACTION_VERSION
from moldau.protocol.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from moldau.sim.cluster.admin import ClusterAdmin
from moldau.sim.cluster.checks import node_of
from moldau.sim.cluster.world import HEALED_MS_MAX, ClusterWorld
from moldau.sim.kernel.world import Violation
from moldau.sim.models.replicated_topics import PRESENT, ReplicatedTopic
from moldau.sim.node.program import NodeProgram
from moldau.sim.transactions.application import Application, HastyApplication
from moldau.sim.transactions.audit import TransactionAudit
from moldau.sim.transactions.committed_reader import SimReader
from moldau.sim.transactions.copier import Copier, OffsetWatcher
from moldau.sim.transactions.late_requests import LateRequests
from moldau.sim.transactions.ledger import Place, TransactionLedger
from moldau.sim.transactions.producer_process import ProducerProcess
from moldau.sim.transactions.two_phase_application import TwoPhaseApplication

DEFAULT_MILLISECONDS = 3_000
SOURCE, TARGET = "source", "target"
TIMEOUT_CHECK_MS = 200
DISTANCE_MS, SLOW_AGAIN_MS = 20, 500
UNDER_WAY_MS_MAX = 1000  # what brokers have asked each other in a whole cluster has arrived by then
HANGING_MS_MAX = 10_000
"""How long a transaction may stay open after its timeout; the promise counts one failover in addition."""


class TransactionWorld(ClusterWorld):
    breaks_disks = True

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ledger = TransactionLedger(self)
        self.checks.listener = self.ledger
        self.late_requests = LateRequests(self)
        self.applications: list[Application] = []
        self.readers: list[SimReader] = []
        self.readings: list[tuple[Place, int, int, list[tuple[int, bytes]]]] = []
        self.read_up_to: dict[Place, int] = {}
        self.ended_transactions = 0
        self.zombies = 0
        self._machines = [self.late_requests.machine]

    # The shape of the cluster

    def _choose_shape(self) -> None:
        super()._choose_shape()
        if len(self.broker_ids) > 3 or (not self.is_combined and self.rng.random() < 0.6):
            self.broker_ids = self.controller_ids = [1, 2, 3]
            self.is_combined = True
        self.transaction_version = self.rng.choice((2, 2, 2, 2, 1, 0))
        backoff_ms = self.world.derived_rng("verification").choice((20, 100, 300))
        self.common_settings |= {
            "add.partitions.to.txn.retry.backoff.ms": str(backoff_ms),
            "add.partitions.to.txn.retry.backoff.max.ms": str(5 * backoff_ms),
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
            "transaction.state.log.num.partitions": str(self.rng.choice((1, 2))),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(TIMEOUT_CHECK_MS),
            "transaction.two.phase.commit.enable": "true",
            "offsets.topic.num.partitions": str(self.rng.choice((1, 2))),
            "request.timeout.ms": str(self.rng.choice((2000, 30000))),
        }

    def feature_levels(self) -> dict[str, int]:
        return {**super().feature_levels(), TRANSACTION_VERSION: self.transaction_version}

    def _make_topics(self) -> None:
        for name in (SOURCE, TARGET):
            self.model.add(ReplicatedTopic(name, 2, 3, 2, unclean=False, transient=False))

    def _start_clients(self) -> None:
        self.world.note(f"transaction version {self.transaction_version}")
        self.admin = ClusterAdmin(self, deletes=False, internal=self._internal_topics())
        sources, targets = [(SOURCE, 0), (SOURCE, 1)], [(TARGET, 0), (TARGET, 1)]
        for number in range(self.rng.randint(1, 3)):
            self.applications.append(Application(self, f"writer{number}", sources))
        if self.transaction_version >= 2 and self.rng.random() < 0.4:
            self.applications.append(TwoPhaseApplication(self, "two-phase", sources))
        for number in range(self.rng.randint(1, 2)):
            copier = Copier(self, f"copier{number}", sources[number], targets)
            self.applications.append(copier)
            self._machines.append(OffsetWatcher(self, copier).client.machine)
        self.readers = [SimReader(self, f"reader{number}") for number in range(self.rng.randint(1, 2))]
        self._machines += [self.admin.client.machine, *(reader.client.machine for reader in self.readers)]

    def _internal_topics(self) -> list[ReplicatedTopic]:
        """Where the coordinators are: they move about like any other partition."""
        found = []
        for name, key in ((TRANSACTION_TOPIC, "transaction.state.log"), (GROUP_TOPIC, "offsets.topic")):
            partitions = int(self.common_settings[f"{key}.num.partitions"])
            topic = ReplicatedTopic(name, partitions, 3, 2, unclean=False, transient=False)
            topic.state = PRESENT
            found.append(topic)
        return found

    def begins_whole(self) -> bool:
        return True

    def _wait_for_a_beginning(self) -> None:
        """Coordinators are made when somebody asks for them."""
        super()._wait_for_a_beginning()
        self.world.run_until(lambda: self.ended_transactions >= len(self.applications), HEALED_MS_MAX)

    # What clients ask

    @property
    def is_begun(self) -> bool:
        return all(topic.state == PRESENT for topic in self.model.topics)

    def topic_id(self, name: str) -> bytes:
        return next(topic.topic_id for topic in self.model.topics if topic.name == name)

    def add_machine(self, machine: int) -> None:
        self._machines.append(machine)

    def client_machines(self) -> list[int]:
        return self._machines

    def is_silent(self, process: ProducerProcess) -> bool:
        """Whether nothing that was given up can still arrive and be taken for a part of the next transaction."""
        return not process.network.is_anything_on_the_way and not self.late_requests.markers_left_behind()

    def log_ends(self) -> dict[Place, int]:
        """Where the longest log of every partition ends."""
        ends: dict[Place, int] = {}
        for host in self.hosts.values():
            program = host.program or host.last_program
            if not isinstance(program, NodeProgram):
                continue
            for partition in program.node.replicas.all():
                if partition.log is not None:
                    place = (partition.topic, partition.index)
                    ends[place] = max(ends.get(place, 0), int(partition.log.log_end_offset))
        return ends

    def summary(self) -> str:
        counts: dict[str, int] = {}
        for attempt in self.ledger.attempts:
            counts[attempt.decided or "nothing"] = counts.get(attempt.decided or "nothing", 0) + 1
        decided = ", ".join(f"{count} {how}" for how, count in sorted(counts.items()))
        return (
            f"transactions: {decided}, {self.zombies} zombies, {self.late_requests.count} requests came again,"
            f" {self.fetched_records} records read; {super().summary()}"
        )

    # The end

    def _calm_down(self) -> None:
        for application in self.applications:
            application.end()
        if not self.world.run_until(self._is_calm, HEALED_MS_MAX):
            waiting = [one.name for app in self.applications for one in app.instances if one.alive]
            raise Violation(f"a whole cluster answers everybody within 30 s: {waiting} wait")
        for application in self.applications:
            if isinstance(application, TwoPhaseApplication):
                self._run_once_more(application)
        self._wait_until_stable()
        for application in self.applications:
            if isinstance(application, Copier):
                self._catch_up(application)
        self._wait_until_stable()

    def _is_calm(self) -> bool:
        """Nobody works any more, and nothing that was given up can still arrive."""
        return (
            not any(instance.alive for application in self.applications for instance in application.instances)
            and not self.admin.is_busy
            and not self.network.frames_left_behind
            and not self.late_requests.is_anything_on_the_way
        )

    def _wait_until_stable(self) -> None:
        """Nothing is open, and stays so: a broker may still be asking a coordinator for a producer that is gone."""
        timeout_ms = max(application.timeout_ms for application in self.applications)
        deadline_ms = self.world.now_ms + timeout_ms + HANGING_MS_MAX
        while self.world.run_until(lambda: not self.what_is_open(), deadline_ms - self.world.now_ms):
            self.world.run_for(UNDER_WAY_MS_MAX)
            self.checks.look_at_all()
            if not self.what_is_open():
                return
            deadline_ms += UNDER_WAY_MS_MAX
        raise Violation(f"no transaction hangs: {self.what_is_open()}")

    def what_is_open(self) -> str:
        """Which transaction is open, or where the last stable offset is not at the end of the log; empty for none."""
        undecided = self.ledger.undecided()
        if undecided:
            return undecided
        for host in self.hosts.values():
            node = node_of(host)
            if node is None:
                return f"host {host.host_id} is down"
            for partition in node.replicas.all():
                log = partition.log
                if partition.is_leader and log is not None and partition.last_stable_offset(log) < log.log_end_offset:
                    return (
                        f"{partition.topic}-{partition.index} at {host.host_id} ends at {log.log_end_offset}, is"
                        f" committed up to {partition.high_watermark.offset}, stable up to"
                        f" {partition.last_stable_offset(log)}"
                    )
        return ""

    def _run_once_more(self, application: Application) -> None:
        """One more instance, which finishes what it finds and ends."""
        instance = application.start()
        if not self.world.run_until(lambda: not instance.alive, HEALED_MS_MAX):
            raise Violation(f"a whole cluster answers everybody within 30 s: {instance.name} waits")

    def _catch_up(self, copier: Copier) -> None:
        """One more instance copies what is left."""
        copier.goal = self.log_ends().get(copier.source, 0)
        deadline_ms = self.world.now_ms + HEALED_MS_MAX
        while self.world.now_ms < deadline_ms:
            self._run_once_more(copier)
            self.checks.look_at_all()
            if max(0, self.ledger.committed_offset(copier.source)) >= copier.goal:
                return
        raise Violation(f"a copier copies everything: {copier.name} has not come to {copier.goal}")

    def _audit(self) -> None:
        TransactionAudit(self).run()


class HastyWorld(TransactionWorld):
    """Applications in a hurry, brokers far from each other: the markers of a transaction, and the responses of its
    coordinator, are on their way while the next one is written in requests that do not wait for each other."""

    def _choose_shape(self) -> None:
        super()._choose_shape()
        self.transaction_version = self.rng.choice((1, 2))
        self.world.schedule(SLOW_AGAIN_MS, self._slow_down)

    def _slow_down(self) -> None:
        if self.faults.over:
            self.network.end_slowness()
            return
        for origin in self.broker_ids:
            for target in self.broker_ids:
                if origin != target:
                    self.network.slow_down(origin, target, DISTANCE_MS)
        self.world.schedule(SLOW_AGAIN_MS, self._slow_down)

    def _start_clients(self) -> None:
        self.admin = ClusterAdmin(self, deletes=False, internal=self._internal_topics())
        places = [(SOURCE, 0), (SOURCE, 1), (TARGET, 0), (TARGET, 1)]
        self.applications = [HastyApplication(self, f"hasty{number}", places) for number in range(3)]
        self.readers = [SimReader(self, "reader")]
        self._machines += [self.admin.client.machine, self.readers[0].client.machine]
