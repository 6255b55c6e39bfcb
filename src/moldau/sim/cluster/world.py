"""A whole cluster in the simulated world: clients work, faults strike, and no promise is broken; then it heals.

The seed chooses the shape (three or five nodes that are both broker and controller, or three of each), the settings,
the clients and the faults. After the last fault the cluster has thirty seconds to be whole again; then every replica
leads in turn, and whoever leads has everything that was ever acknowledged or read.
"""

from __future__ import annotations

from moldau.config.broker_config import BrokerConfig
from moldau.metadata.features import (
    ELR_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    default_feature_levels,
)
from moldau.metadata.image import MetadataImage
from moldau.protocol.stored.metadata_records import FeatureLevelRecord, encode_metadata_record
from moldau.protocol.uuids import uuid_to_text
from moldau.raft.snapshots import snapshot_bytes
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterSet
from moldau.sim.cluster.admin import ClusterAdmin
from moldau.sim.cluster.audit import ClusterAudit
from moldau.sim.cluster.checks import DATA, ClusterChecks, is_trusted_when_killed, node_of
from moldau.sim.cluster.client import ClusterClient
from moldau.sim.cluster.committer import ClusterCommitter
from moldau.sim.cluster.consumer import ClusterConsumer
from moldau.sim.cluster.faults import ClusterFaults
from moldau.sim.cluster.network import Network
from moldau.sim.cluster.outbox import SimOutbox
from moldau.sim.cluster.producer import ClusterProducer
from moldau.sim.kernel.clock_faults import AGES, ClockFaults
from moldau.sim.kernel.host import Host, Program
from moldau.sim.kernel.network import CLIENT_LISTENER, CONTROLLER_LISTENER, OUTER_LISTENER
from moldau.sim.kernel.trace_handler import traced
from moldau.sim.kernel.world import Violation, World
from moldau.sim.models.replicated_topics import ReplicatedModel, ReplicatedTopic
from moldau.sim.node.program import NodeProgram
from moldau.storage.meta_properties import MetaProperties, write_meta_properties

FIRST_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
HEALED_MS_MAX = 30_000
FIRST_CONTROLLER_ID = 11
DEFAULT_MILLISECONDS = 4_000
HEARTBEATS_BREAK_MS = 700
LISTENERS = ("", "", CLIENT_LISTENER, CONTROLLER_LISTENER, OUTER_LISTENER)
"""Each has the port of its place."""


class ClusterWorld:
    breaks_disks = False
    """Whether disks fail as a whole; seeds that were kept from before that mean the same as then without it."""
    only_faults: frozenset[str] = frozenset()
    """Where not all of them are wanted."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.rng = self.world.derived_rng("cluster")
        self.network = Network(self.world)
        self.model = ReplicatedModel()
        self.hosts: dict[int, Host] = {}
        self.client_ports: dict[int, int] = {}
        self.quiet = False
        self.finished = False
        self.deaths = 0
        self.data_losses = 0
        self.acknowledged_records = 0
        self.fetched_records = 0
        self.committed_offsets = 0
        self.checked_offsets = 0
        self.healed_ms = 0
        self.early_fencings = 0
        self.default_min_insync = 2
        self.may_move_single_replicas = self.rng.random() < 0.5
        self.producers: list[ClusterProducer] = []
        self.committers: list[ClusterCommitter] = []
        self._clients: list[ClusterClient] = []
        self._producer_ids: set[tuple[int, int]] = set()
        self._recovering: set[int] = set()
        self.loses_at_death: set[int] = set()
        """Brokers of whose disk somebody takes something away when they die next."""
        self._failing: set[int] = set()
        self._choose_shape()
        self.checks = ClusterChecks(self)
        self.faults = ClusterFaults(self)
        self._make_hosts()
        self.clock_faults = ClockFaults(self.world, lambda: list(self.hosts.values()))

    # The shape of the cluster

    def _choose_shape(self) -> None:
        shape = self.rng.random()
        count = 5 if shape > 0.92 else 3
        self.broker_ids = list(range(1, count + 1))
        self.is_combined = shape < 0.75 or count == 5
        self.controller_ids = (
            self.broker_ids if self.is_combined else list(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + 3))
        )
        self.is_dynamic = self.rng.random() < 0.5
        self.has_eligible_replicas = self.rng.random() < 0.8
        self.has_outer_listeners = self.world.derived_rng("listeners").random() < 0.5
        session_ms = self.rng.choice((900, 1500, 4000))
        self.common_settings = {
            "controller.listener.names": CONTROLLER_LISTENER,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT",
            "inter.broker.listener.name": CLIENT_LISTENER,
            "log.dirs": DATA,
            "auto.create.topics.enable": "false",
            "min.insync.replicas": str(self.default_min_insync),
            "default.replication.factor": "3",
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": str(self.rng.choice((1, 3))),
            "offsets.commit.timeout.ms": "1000",
            "broker.session.timeout.ms": str(session_ms),
            "broker.heartbeat.interval.ms": str(session_ms // 4),
            "controlled.shutdown.retry.backoff.ms": "200",
            "replica.lag.time.max.ms": str(self.rng.choice((500, 1500, 3000))),
            "replica.fetch.wait.max.ms": str(self.rng.choice((100, 300, 500))),
            "replica.fetch.backoff.ms": str(self.rng.choice((20, 200))),
            "replica.fetch.max.bytes": str(self.rng.choice((400, 1048576))),
            "replica.high.watermark.checkpoint.interval.ms": str(self.rng.choice((300, 5000))),
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "controller.quorum.election.timeout.ms": "400",
            "controller.quorum.election.backoff.max.ms": "300",
            "controller.quorum.fetch.timeout.ms": str(self.rng.choice((500, 1000))),
            "controller.quorum.request.timeout.ms": "800",
            "controller.quorum.retry.backoff.ms": "20",
            "log.cleaner.enable": "false",
            "log.flush.offset.checkpoint.interval.ms": str(self.rng.choice((500, 60000))),
            "log.flush.start.offset.checkpoint.interval.ms": str(self.rng.choice((500, 60000))),
            "log.retention.check.interval.ms": str(self.rng.choice((1000, 300000))),
            "log.initial.task.delay.ms": "200",
            "leader.imbalance.check.interval.seconds": str(self.rng.choice((1, 300))),
            "metadata.log.max.record.bytes.between.snapshots": str(self.rng.choice((2000, 20971520))),
            "metadata.log.segment.bytes": "8388608",
            **AGES,
        }
        if self.rng.random() < 0.2:
            self.common_settings["log.flush.interval.messages"] = "1"

    def _port(self, node_id: int, listener: str) -> int:
        return 9000 + 10 * node_id + LISTENERS.index(listener)

    def _settings(self, node_id: int) -> dict[str, str]:
        is_broker, is_controller = node_id in self.broker_ids, node_id in self.controller_ids
        listeners = [f"PLAINTEXT://127.0.0.1:{self._port(node_id, CLIENT_LISTENER)}"] if is_broker else []
        if is_broker and self.has_outer_listeners:
            listeners.insert(0, f"EXTERNAL://127.0.0.1:{self._port(node_id, OUTER_LISTENER)}")
        if is_controller:
            listeners.append(f"CONTROLLER://127.0.0.1:{self._port(node_id, CONTROLLER_LISTENER)}")
        addresses = [f"127.0.0.1:{self._port(voter, CONTROLLER_LISTENER)}" for voter in self.controller_ids]
        voters = [f"{voter}@{address}" for voter, address in zip(self.controller_ids, addresses, strict=True)]
        settings = {
            **self.common_settings,
            "process.roles": ",".join(["broker"] * is_broker + ["controller"] * is_controller),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "broker.rack": f"rack{node_id}",
        }
        if not is_broker and self.has_outer_listeners:
            del settings["inter.broker.listener.name"]  # nobody told the controllers
        if self.is_dynamic:
            settings["controller.quorum.bootstrap.servers"] = ",".join(addresses)
        else:
            settings["controller.quorum.voters"] = ",".join(voters)
        return settings

    def _make_hosts(self) -> None:
        cluster_id = uuid_to_text(self.rng.randbytes(16))
        node_ids = sorted({*self.broker_ids, *self.controller_ids})
        directories = {node_id: self.rng.randbytes(16) for node_id in node_ids}
        voters = VoterSet(
            [
                Voter(
                    ReplicaKey(node_id, directories[node_id]),
                    ((CONTROLLER_LISTENER, "127.0.0.1", self._port(node_id, CONTROLLER_LISTENER)),),
                )
                for node_id in self.controller_ids
            ]
        )
        for node_id in node_ids:
            config = BrokerConfig(self._settings(node_id), warn=False)
            host = Host(self.world, node_id, lambda host, config=config: self._build(host, config))  # type: ignore[misc]
            host.on_turn = self.checks.on_turn
            host.on_death = lambda how, host=host: self._on_death(host, how)
            self.hosts[node_id] = host
            for listener in (CLIENT_LISTENER, CONTROLLER_LISTENER, OUTER_LISTENER):
                self.network.listen(self._port(node_id, listener), host, listener)
            if node_id in self.broker_ids:
                self.client_ports[node_id] = self._port(node_id, CLIENT_LISTENER)
            is_voter = self.is_dynamic and node_id in self.controller_ids
            self._format(host, cluster_id, directories[node_id], voters if is_voter else None)

    def _format(self, host: Host, cluster_id: str, directory_id: bytes, voters: VoterSet | None) -> None:
        """What `storage format` leaves, as far as a start needs it."""
        disk = host.disk
        disk.make_directory(f"{DATA}/__cluster_metadata-0" if voters is not None else DATA)
        disk.sync_directory("")
        if voters is not None:
            disk.sync_directory(DATA)
            disk.write_file(f"{DATA}/{FIRST_SNAPSHOT}", snapshot_bytes([], 0, 0, 1, voters, self.world.now_ms))
        levels = self.feature_levels().items()
        values = [encode_metadata_record(FeatureLevelRecord(name, level), 0) for name, level in levels if level > 0]
        disk.write_file(f"{DATA}/bootstrap.checkpoint", snapshot_bytes(values, 0, 0, 0, None, self.world.now_ms))
        write_meta_properties(disk, DATA, MetaProperties(cluster_id, host.host_id, directory_id), "")

    def feature_levels(self) -> dict[str, int]:
        levels = {METADATA_VERSION: LATEST_METADATA_VERSION, **default_feature_levels(LATEST_METADATA_VERSION)}
        levels[ELR_VERSION] = 1 if self.has_eligible_replicas else 0
        return levels

    def _build(self, host: Host, config: BrokerConfig) -> Program:
        program = NodeProgram(host, config, SimOutbox(self.network, host))
        program.node.metadata.add_listener(self.checks.on_image)
        program.node.failure_detection.on_fenced = self.checks.on_fenced_early
        return program

    # Running

    def run(self, duration_ms: int = DEFAULT_MILLISECONDS) -> None:
        with traced(self.world):
            self._run(duration_ms)

    def _run(self, duration_ms: int) -> None:
        self.world.note(
            f"{'combined' if self.is_combined else 'separate'} {'dynamic' if self.is_dynamic else 'static'}"
            f" brokers {self.broker_ids} controllers {self.controller_ids}"
        )
        for host in self.hosts.values():
            self.world.schedule(self.rng.randint(0, 200), lambda host=host: self._boot(host))  # type: ignore[misc]
        self._make_topics()
        self._start_clients()
        if self.begins_whole():
            self._wait_for_a_beginning()
        self.faults.start()
        self.clock_faults.start()
        self.world.run_for(duration_ms)
        self._heal()
        self._audit()
        self.finished = True

    def _audit(self) -> None:
        ClusterAudit(self).run()

    def begins_whole(self) -> bool:
        """Most worlds are whole before the first fault."""
        return self.rng.random() < 0.93

    def _wait_for_a_beginning(self) -> None:
        if not self.world.run_until(lambda: self.all_is_well() and not self.admin.is_busy, HEALED_MS_MAX):
            raise Violation(f"a new cluster is whole within 30 s: {self.what_is_wrong()}")
        self.world.note("the cluster is whole")

    def _make_topics(self) -> None:
        self.model.add(ReplicatedTopic("steady", self.rng.randint(1, 3), 3, 2, unclean=False, transient=False))
        self.model.add(ReplicatedTopic("steady-pair", 1, 2, 1, unclean=False, transient=False))
        if self.rng.random() < 0.5:
            self.model.add(ReplicatedTopic("single", 1, 1, 1, unclean=False, transient=False))
        if self.rng.random() < 0.3:
            self.model.add(ReplicatedTopic("unclean", 1, 3, 1, unclean=True, transient=False))

    def _start_clients(self) -> None:
        self.admin = ClusterAdmin(self)
        self.producers = [ClusterProducer(self, f"producer{number}") for number in range(self.rng.randint(3, 5))]
        consumers = [ClusterConsumer(self, f"consumer{number}") for number in range(self.rng.randint(1, 3))]
        self.committers = [ClusterCommitter(self, f"committer{number}") for number in range(self.rng.randint(0, 2))]
        self._clients = [producer.client for producer in self.producers]
        self._clients += [consumer.client for consumer in consumers]
        self._clients += [committer.client for committer in self.committers]
        self._clients.append(self.admin.client)

    def client_machines(self) -> list[int]:
        return [client.machine for client in self._clients]

    def check_producer_id_is_new(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) in self._producer_ids:
            raise Violation(f"a producer id is handed out once: {producer_id} epoch {epoch}")
        self._producer_ids.add((producer_id, epoch))

    def summary(self) -> str:
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.counts.items()))
        return (
            f"{self.world.events_run} events, {self.deaths} deaths, {self.data_losses} with the power,"
            f" {self.acknowledged_records} records acknowledged, {self.fetched_records} fetched,"
            f" {self.committed_offsets} offsets committed, whole after {self.healed_ms} ms; {faults}"
        )

    # Death and return

    def _on_death(self, host: Host, how: str) -> None:
        self.deaths += 1
        power = how.startswith("power")
        loses = power or host.disk.is_broken or host.disk.has_unseen_errors or host.host_id in self.loses_at_death
        self.loses_at_death.discard(host.host_id)
        if host.disk.is_broken:
            host.disk.come_back()
        self.network.on_host_death(host)
        self.checks.on_death(host, loses=loses)
        if loses:
            self.data_losses += 1
            self.model.on_power_loss()
        is_trusted = how == "stopped cleanly" or (how == "killed" and is_trusted_when_killed(host))
        if (loses or not is_trusted) and host.host_id in self.broker_ids:
            self._recovering.add(host.host_id)
        host.disk.clear_faults()
        self._failing.discard(host.host_id)
        delay_ms = self.rng.choice((5, 50, 500, 3000))
        self.world.schedule(100 if self.faults.over else self.rng.randint(1, delay_ms), lambda: self._boot(host))

    def _boot(self, host: Host) -> None:
        if host.running:
            return
        if self.rng.random() < 0.08 and self.deaths and not self.faults.over and self.may_lose_data(host):
            self.faults.plan_crash(host, 40)
        host.boot()
        self.network.on_host_boot(host)

    def may_be_killed(self, host: Host) -> bool:
        """Some are not trusted afterwards, though they have lost nothing."""
        return is_trusted_when_killed(host) or self.may_lose_data(host)

    def may_lose_data(self, host: Host) -> bool:
        """Whether the promises allow for it: of those who have everything, one must be left who lost nothing.

        A process that is killed loses nothing and is trusted when it comes back. One that lost what was not synced, or
        that died in the middle of a write or with a failing disk, is not until it has caught up; before that nobody
        else may. Without eligible leader replicas the last in-sync replica is trusted whatever happened to it.
        """
        self._update_recovering()
        host_id = host.host_id
        if host_id not in self.broker_ids:
            return True
        if not self.has_eligible_replicas or (self._recovering | self._failing) - {host_id}:
            return False
        for (topic_id, _), known in self.checks.known.items():
            topic = self.model.by_id(topic_id)
            if topic is None or topic.min_insync >= 2:
                others = [other for other in known.eligible if other != host_id]
                if host_id in known.eligible and not others:
                    return False
        return True

    def _is_settled(self, broker_id: int) -> bool:
        """It runs, the controller knows this life of it, and nothing is wrong with its disk."""
        node = node_of(self.hosts[broker_id])
        if node is None or broker_id in self._failing or broker_id in self.checks.lossy:
            return False
        registered = self.newest_image().brokers.get(broker_id)
        return registered is not None and registered.incarnation_id == node.incarnation_id

    def note_failing(self, host: Host, *, failing: bool = True) -> None:
        """Its process may end at any time, and not as if it were killed."""
        if failing:
            self._failing.add(host.host_id)
        else:
            self._failing.discard(host.host_id)

    def _update_recovering(self) -> None:
        """Who lost data is whole again when it is in sync wherever it has a replica."""
        if not self._recovering:
            return
        image = self.newest_image()
        for broker_id in list(self._recovering):
            partitions = [p for topic in image.topics_by_id.values() for p in topic.partitions.values()]
            if self._is_settled(broker_id) and all(
                broker_id in partition.isr for partition in partitions if broker_id in partition.replicas
            ):
                self._recovering.discard(broker_id)

    def newest_image(self) -> MetadataImage:
        newest = MetadataImage()
        for host in self.hosts.values():
            node = node_of(host)
            if node is not None and node.metadata.image.offset > newest.offset:
                newest = node.metadata.image
        return newest

    def leaders(self) -> list[int]:
        """Who leads the quorum, or a partition that is written to with the strongest promise."""
        found = [known.leader for known in self.checks.known.values() if known.leader >= 0]
        for host in self.hosts.values():
            node = node_of(host)
            if node is not None and node.metadata.is_active_controller:
                found.append(host.host_id)
        return found

    # Healing

    def all_is_well(self) -> bool:
        return not self.what_is_wrong()

    def what_is_wrong(self) -> str:
        down = [host.host_id for host in self.hosts.values() if not host.running]
        if down:
            return f"hosts {down} are down"
        image = self.newest_image()
        if image.offset < self.checks.newest_offset:
            return f"nobody knows the metadata up to {self.checks.newest_offset}, only to {image.offset}"
        missing = [broker_id for broker_id in self.broker_ids if not self._takes_part(broker_id, image)]
        if missing:
            return f"brokers {missing} do not take part"
        for topic in image.topics_by_id.values():
            for index, partition in topic.partitions.items():
                if partition.leader < 0 or set(partition.isr) != set(partition.replicas) or partition.is_reassigning:
                    return f"{topic.name}-{index} is {partition!r}"
        offsets = [node.metadata.image.offset for host in self.hosts.values() if (node := node_of(host)) is not None]
        if min(offsets) != max(offsets):
            return f"the images are at {offsets}"
        return ""

    def _takes_part(self, broker_id: int, image: MetadataImage) -> bool:
        """Registered as the process that runs now: the session of the one before it may not be over yet."""
        node = node_of(self.hosts[broker_id])
        if node is None or broker_id not in image.active_brokers():
            return False
        return image.brokers[broker_id].incarnation_id == node.incarnation_id

    def _heal(self) -> None:
        self.world.note("no more faults")
        self.faults.end()
        self.clock_faults.end()
        start_ms = self.world.now_ms
        self._wait_until_whole()
        self.healed_ms = self.world.now_ms - start_ms
        self.world.note(f"whole after {self.healed_ms} ms")
        self.world.run_for(500)
        self.quiet = True
        self._calm_down()
        self.world.run_for(500)
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        if not self.world.run_until(self.all_is_well, HEALED_MS_MAX):
            raise Violation(f"a cluster that is left alone becomes whole within 30 s: {self.what_is_wrong()}")

    def _calm_down(self) -> None:
        if not self.world.run_until(self._is_calm, HEALED_MS_MAX):
            waiting = [producer.name for producer in self.producers if producer.unacknowledged]
            raise Violation(f"a whole cluster answers everybody within 30 s: {waiting} wait")

    def _is_calm(self) -> bool:
        """Everybody has a response, and nothing that was given up can still arrive."""
        return (
            not any(producer.unacknowledged for producer in self.producers)
            and not self.admin.is_busy
            and not any(client.requests_on_the_way for client in self._clients)
        )


class OuterListenersWorld(ClusterWorld):
    """Controllers of their own, and brokers whose first listener refuses them; heartbeat connections break often."""

    def _choose_shape(self) -> None:
        super()._choose_shape()
        self.broker_ids = [1, 2, 3]
        self.is_combined = False
        self.controller_ids = list(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + 3))
        self.has_outer_listeners = True
        self.world.schedule(HEARTBEATS_BREAK_MS, self._break_heartbeats)

    def _break_heartbeats(self) -> None:
        if not self.faults.over:
            self.network.break_all("heartbeat")
            self.world.schedule(HEARTBEATS_BREAK_MS, self._break_heartbeats)
