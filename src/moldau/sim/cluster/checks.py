"""Looks into every node of a simulated cluster, all the time, for what must never be seen; one sentence per check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import NO_LEADER, TOPIC_RESOURCE, PartitionRegistration
from moldau.node.node import Node
from moldau.raft.replica import Raft
from moldau.raft.state import NO_REPLICA, ReplicaKey
from moldau.replication.partition import Partition
from moldau.sim.cluster.client import Place
from moldau.sim.cluster.committed_log import CommittedListener, CommittedLog, ReplicaCursor
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.network import CLIENT_LISTENER
from moldau.sim.kernel.world import Violation
from moldau.sim.node.program import NodeProgram
from moldau.storage.killed_broker import decode_ends, end_epoch
from moldau.storage.log import Log

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

DATA = "data"
"""The log directory of every node."""
SAMPLE_MS = 5
ELIGIBLE_MS = 100


def node_of(host: Host) -> Node | None:
    program = host.program
    return program.node if isinstance(program, NodeProgram) else None


def is_joining(host: Host) -> bool:
    """Whether the broker that runs there, or was the last to, does not know yet that it is registered. If it is killed
    then, the controller may know it under an epoch that it never heard of."""
    program = host.program or host.last_program
    if not isinstance(program, NodeProgram) or not program.node.is_broker:
        return False
    return program.node.loading is not None or not program.node.lifecycle.was_registered


def is_behind_its_note(host: Host) -> bool:
    """Whether the broker that runs there, or was the last to, has removed or truncated a log since it last noted where
    its logs end. If it is killed then, it is not trusted."""
    program = host.program or host.last_program
    if not isinstance(program, NodeProgram) or not program.node.is_broker:
        return False
    details = host.disk.recall_details(DATA)
    for (topic, partition), (end, epoch) in (decode_ends(details) if details else {}).items():
        log = program.node.logs.get(topic, partition)
        if log is None or (log.log_end_offset < end and end_epoch(log) <= epoch):
            return True
    return False


def is_trusted_when_killed(host: Host) -> bool:
    return not is_joining(host) and not is_behind_its_note(host)


class Known:
    """The newest that was ever seen of a partition: what the metadata or its leader said."""

    __slots__ = ("elr", "image_offset", "isr", "leader", "leader_epoch", "partition_epoch", "replicas")

    def __init__(
        self,
        replicas: tuple[int, ...],
        leader: int,
        leader_epoch: int,
        epoch: int,
        isr: tuple[int, ...],
        elr: tuple[int, ...],
        image_offset: int,
    ) -> None:
        self.replicas = replicas
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = epoch
        self.isr = isr
        self.elr = elr
        # Who is eligible may change within a partition epoch: the later image counts.
        self.image_offset = image_offset

    @property
    def eligible(self) -> tuple[int, ...]:
        return self.isr + self.elr


class ClusterChecks:
    def __init__(self, setting: ClusterWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.metadata = CommittedLog("__cluster_metadata")
        self.listener = CommittedListener()
        self.partitions: dict[Place, CommittedLog] = {}
        self.known: dict[Place, Known] = {}
        self.lossy: set[int] = set()
        """Brokers that lost what they had not synced and that the controller has not seen come back yet."""
        self.rewritten: frozenset[str] = frozenset()
        """Topics whose batches do not stay as they are: they are compacted."""
        self.looks = 0
        self._next_look_ms: dict[int, int] = {}
        self._next_eligible_ms = 0
        self._cursors: dict[tuple[int, Place | None], ReplicaCursor] = {}
        self._leaders: dict[tuple[Place, int], int] = {}
        self._quorum_leaders: dict[int, int] = {}
        self._quorum_epochs: dict[int, tuple[int, int]] = {}
        self._votes: dict[tuple[int, int], ReplicaKey] = {}
        self._quorum_high_watermarks: dict[int, int] = {}
        self.newest_offset = -1

    # When to look

    def on_turn(self, host: Host) -> None:
        now_ms = self.world.now_ms
        if now_ms >= self._next_look_ms.get(host.host_id, 0):
            self._next_look_ms[host.host_id] = now_ms + SAMPLE_MS
            self.look_at(host)
        if now_ms >= self._next_eligible_ms:
            self._next_eligible_ms = now_ms + ELIGIBLE_MS
            self.check_what_is_committed_is_on_every_replica_that_can_be_elected()

    def look_at(self, host: Host) -> None:
        node = node_of(host)
        if node is None or not hasattr(node.metadata, "raft"):
            return
        self.looks += 1
        self._look_at_quorum(host, node)
        for partition in node.replicas.all():
            self._look_at_partition(host, partition)
        registered = node.image.brokers.get(host.host_id)
        if registered is not None and registered.incarnation_id == node.incarnation_id:
            self.lossy.discard(host.host_id)

    def look_at_all(self) -> None:
        for host in self.setting.hosts.values():
            self.look_at(host)

    def on_death(self, host: Host, *, loses: bool) -> None:
        """The last that a process knew, and a new beginning for its replicas."""
        program = host.last_program
        if isinstance(program, NodeProgram):
            for partition in program.node.replicas.all():
                self._note_view_of_leader(partition)
        for key in [key for key in self._cursors if key[0] == host.host_id]:
            del self._cursors[key]
        self._quorum_high_watermarks.pop(host.host_id, None)
        if loses and host.host_id in self.setting.broker_ids:
            self.lossy.add(host.host_id)

    def on_fenced_early(self, broker_id: int, broker_epoch: int) -> None:
        """A controller took a broker for dead before its session ended: in this world it can know."""
        self.setting.early_fencings += 1
        host = self.setting.hosts[broker_id]
        program = host.program
        if isinstance(program, NodeProgram) and program.accepts(CLIENT_LISTENER):
            if program.node.lifecycle.broker_epoch == broker_epoch:
                raise Violation(f"nobody who lives is fenced before its session ends: {broker_id}")

    # The quorum

    def _look_at_quorum(self, host: Host, node: Node) -> None:
        raft, host_id = node.metadata.raft, host.host_id
        if not node.metadata.is_storing:
            self._look_at_election(host, raft, node.config.is_controller)
        high_watermark = raft.high_watermark
        if high_watermark < self._quorum_high_watermarks.get(host_id, 0):
            raise Violation(f"the high watermark never goes back: the quorum's at {host_id}, {high_watermark}")
        self._quorum_high_watermarks[host_id] = high_watermark
        cursor = self._cursor(host_id, None, node.metadata.log.log)
        if high_watermark > cursor.high_watermark or node.metadata.log.log.truncations != cursor.truncations:
            cursor.high_watermark = high_watermark
            cursor.look(host.disk, node.metadata.log.log, high_watermark, self.metadata, f"node {host_id}")

    def _look_at_election(self, host: Host, raft: Raft, is_controller: bool) -> None:
        """A voter's epoch never goes back; that of a broker, which votes for nobody, may with a kill."""
        epoch, host_id = raft.epoch, host.host_id
        life, before = self._quorum_epochs.get(host_id, (0, 0))
        if epoch < before and (is_controller or life == host.lives):
            raise Violation(f"the epoch of a voter never goes back: {host_id} is in {epoch} after {before}")
        self._quorum_epochs[host_id] = (host.lives, epoch)
        if raft.is_leader:
            leader = self._quorum_leaders.setdefault(epoch, host_id)
            if leader != host_id:
                raise Violation(f"an epoch of the quorum has one leader: {leader} and {host_id} in {epoch}")
        voted = raft.role.voted
        if voted != NO_REPLICA:
            first = self._votes.setdefault((host_id, epoch), voted)
            # The file of a static quorum has no directory ids.
            if first.id != voted.id:
                raise Violation(f"a voter votes once in an epoch: {host_id} in {epoch} for {first} and {voted}")

    def _cursor(self, host_id: int, place: Place | None, log: Log) -> ReplicaCursor:
        """A replica that was moved away and came back has a new log."""
        found = self._cursors.get((host_id, place))
        if found is None or found.log is not log:
            found = self._cursors[host_id, place] = ReplicaCursor(log)
        return found

    # Partitions

    def committed(self, topic_id: bytes, index: int, name: str) -> CommittedLog:
        found = self.partitions.get((topic_id, index))
        if found is None:
            found = self.partitions[topic_id, index] = CommittedLog(name, index, self.listener)
        found.trusted = self._is_trusted(topic_id) and name not in self.rewritten
        return found

    def _is_trusted(self, topic_id: bytes) -> bool:
        """What is not in the model is a topic of the cluster's own."""
        topic = self.setting.model.by_id(topic_id)
        return topic is None or topic.trusted

    def _look_at_partition(self, host: Host, partition: Partition) -> None:
        place = (partition.topic_id, partition.index)
        if partition.leader == host.host_id and partition.log is not None:
            leader = self._leaders.setdefault((place, partition.leader_epoch), host.host_id)
            if leader != host.host_id:
                raise Violation(
                    f"an epoch of a partition has one leader: {leader} and {host.host_id} lead"
                    f" {partition.topic}-{partition.index} in {partition.leader_epoch}"
                )
            self._note_view_of_leader(partition)
        if partition.log is None:
            return
        cursor = self._cursor(host.host_id, place, partition.log)
        high_watermark = partition.high_watermark.offset
        if high_watermark != cursor.high_watermark or partition.log.truncations != cursor.truncations:
            self._look_at_log(host, partition, partition.log, cursor)
        self.listener.on_partition(host, partition)

    def _look_at_log(self, host: Host, partition: Partition, log: Log, cursor: ReplicaCursor) -> None:
        place, high_watermark = (partition.topic_id, partition.index), partition.high_watermark.offset
        committed = self.committed(place[0], place[1], partition.topic)
        if high_watermark < cursor.high_watermark and committed.trusted:
            raise Violation(
                f"the high watermark never goes back: {committed.name} at broker {host.host_id},"
                f" {high_watermark} after {cursor.high_watermark}"
            )
        cursor.high_watermark = high_watermark
        cursor.look(host.disk, log, high_watermark, committed, f"broker {host.host_id}")

    def _note_view_of_leader(self, partition: Partition) -> None:
        """What the controller responded to a leader may be newer than any image that is left."""
        if partition.leader != partition.broker_id:
            return
        place = (partition.topic_id, partition.index)
        known = self.known.get(place)
        if known is not None and partition.partition_epoch > known.partition_epoch:
            self.known[place] = Known(
                tuple(partition.replicas),
                partition.leader,
                partition.leader_epoch,
                partition.partition_epoch,
                tuple(partition.in_sync_replicas),
                (),
                known.image_offset,
            )

    def check_what_is_committed_is_on_every_replica_that_can_be_elected(self) -> None:
        for place, committed in self.partitions.items():
            known = self.known.get(place)
            if known is None or not self._is_trusted(place[0]):
                continue
            for broker_id in known.eligible:
                behind = self._behind(broker_id, place, committed)
                if behind is not None:
                    self._confirm(place, committed, broker_id)

    def _behind(self, broker_id: int, place: Place, committed: CommittedLog) -> int | None:
        """The end of a log that lacks something committed, if this one does."""
        host = self.setting.hosts[broker_id]
        node = node_of(host)
        if node is None or broker_id in self.lossy:
            return None
        topic = node.image.topics_by_id.get(place[0])
        partition = None if topic is None else node.replicas.find(topic.name, place[1])
        if partition is None or partition.log is None or partition.topic_id != place[0]:
            return None
        end: int = partition.log.log_end_offset
        return end if end < committed.end else None

    def _confirm(self, place: Place, committed: CommittedLog, broker_id: int) -> None:
        """Before anybody is accused, all that is known is brought up to date."""
        self.look_at_all()
        known = self.known[place]
        end = self._behind(broker_id, place, committed)
        if broker_id in known.eligible and end is not None:
            raise Violation(
                f"what is committed is on every replica that can be elected: {committed.name} is committed up to"
                f" {committed.end}, broker {broker_id} has {end} (in sync {list(known.isr)}, eligible"
                f" {list(known.elr)}, partition epoch {known.partition_epoch})"
            )

    # Metadata

    def on_image(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if image.offset > self.newest_offset:
            for broker_id, broker in delta.changed_brokers.items():
                state = "gone" if broker is None else "fenced" if broker.fenced else "unfenced"
                if broker is not None and broker.in_controlled_shutdown:
                    state += " and about to stop"
                self.world.note(f"metadata {image.offset}: broker {broker_id} is {state}")
        self.newest_offset = max(self.newest_offset, image.offset)
        for topic in delta.changed_topics.values():
            for index, registration in topic.changed_partitions.items():
                self._on_registration(topic.name, (topic.topic_id, index), registration, delta, image)

    def _on_registration(
        self, topic: str, place: Place, now: PartitionRegistration, delta: MetadataDelta, image: MetadataImage
    ) -> None:
        known = self.known.get(place)
        if known is not None and now.partition_epoch < known.partition_epoch:
            return
        name = f"{topic}-{place[1]} {now!r}"
        if known is None or now.partition_epoch > known.partition_epoch:
            self.world.note(
                f"metadata {image.offset}: {topic}-{place[1]} epoch {now.leader_epoch} leader {now.leader} of"
                f" {list(now.replicas)} in sync {list(now.isr)} eligible {list(now.elr)} ({now.partition_epoch})"
            )
            self._check_rules(name, topic, now, image)
            if known is not None:
                self._check_succession(name, place, known, now, delta)
        elif (now.leader, now.leader_epoch, now.isr) != (known.leader, known.leader_epoch, known.isr) and set(
            now.isr
        ) != set(known.isr):
            raise Violation(f"a partition epoch stands for one state: {name}, known was in sync {known.isr}")
        elif image.offset < known.image_offset:
            return
        self.known[place] = Known(
            now.replicas, now.leader, now.leader_epoch, now.partition_epoch, now.isr, now.elr, image.offset
        )

    def _check_rules(self, name: str, topic: str, now: PartitionRegistration, image: MetadataImage) -> None:
        if now.leader != NO_LEADER and now.leader not in now.isr:
            raise Violation(f"the leader is in sync: {name}")
        if not set(now.isr) <= set(now.replicas) or not set(now.elr) <= set(now.replicas):
            raise Violation(f"only replicas are in sync or eligible: {name}")
        if set(now.isr) & set(now.elr):
            raise Violation(f"nobody is in sync and eligible too: {name}")
        minimum = int(
            image.config(TOPIC_RESOURCE, topic).get("min.insync.replicas", str(self.setting.default_min_insync))
        )
        if len(now.isr) >= min(minimum, len(now.replicas)) and now.elr:
            raise Violation(f"nobody is eligible while enough are in sync: {name}")
        for broker_id in now.isr:
            broker = image.brokers.get(broker_id)
            if now.leader == NO_LEADER and len(now.isr) == 1 and not image.elr_enabled:
                continue  # the last one stays, so that it is known who may lead
            if broker is None or broker.fenced:
                raise Violation(f"a fenced broker is in no ISR: {broker_id} in {name}")

    def _check_succession(
        self, name: str, place: Place, before: Known, now: PartitionRegistration, delta: MetadataDelta
    ) -> None:
        if now.leader_epoch < before.leader_epoch:
            raise Violation(f"the epoch of a partition never goes back: {name} after {before.leader_epoch}")
        changed = now.leader not in (before.leader, NO_LEADER)
        if changed and now.leader_epoch == before.leader_epoch:
            raise Violation(f"a new leader has a new epoch: {name}, before it {before.leader}")
        if not changed or now.partition_epoch != before.partition_epoch + 1 or not before.eligible:
            return
        if set(before.replicas) != set(now.replicas):
            return  # with its last step a move names who caught up, and one of them leads
        topic = self.setting.model.by_id(place[0])
        # Who comes back without a clean stop is not eligible any more; the last leader is tried when nobody is left.
        left = [replica for replica in before.eligible if replica not in delta.changed_brokers]
        if now.leader not in before.eligible and left and (topic is None or not topic.unclean):
            raise Violation(f"only who has everything is elected: {name}, before it {before.eligible}")
