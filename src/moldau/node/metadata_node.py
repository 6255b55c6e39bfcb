"""The metadata of one node: quorum, active controller and image, joined and driven.

Appends are replayed by the controller at once and published when they are committed, in order: first every listener
gets (delta, image), then the caller of `submit` its response. With one voter a commit is one sync, which everything
that was appended meanwhile shares. A broker without the controller's role follows the log and never decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.config.broker_config import BrokerConfig
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.controller.bootstrap import bootstrap_records
from moldau.controller.controller import Controller
from moldau.controller.counts import ControllerCounts
from moldau.controller.state import ControllerState
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import supports_controller_registration
from moldau.metadata.image import MetadataImage
from moldau.metadata.loader import MetadataLoader
from moldau.metadata.model import BROKER_RESOURCE
from moldau.metrics.recent_times import RecentTimes
from moldau.node.active_controller import ActiveController, Done, Verb
from moldau.node.controller_endpoints import ControllerEndpoints
from moldau.node.metadata_log import DamagedMetadataLog, MetadataLog, open_metadata_log
from moldau.node.metadata_snapshots import SnapshotWriter, read_bootstrap_records, read_snapshot_records
from moldau.node.node_identity import read_identity
from moldau.node.outbox import NoOutbox, Outbox
from moldau.node.quorum_view import describe_quorum
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from moldau.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import AbortTransactionRecord, decode_metadata_record
from moldau.raft.batches import metadata_values
from moldau.raft.core import RaftConfig
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.messages import TIMED_OUT, Reply
from moldau.raft.ready import Outbound, Ready, SnapshotRead
from moldau.raft.replica import Raft
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned
from moldau.raft.state import QuorumState, ReplicaKey
from moldau.raft.voters import Voter, VoterHistory, VoterSet
from moldau.raft.wire import error_to_wire, reply_to_wire, request_from_wire
from moldau.records.batch import split_batches
from moldau.records.clocks import NEVER_MS, WallClock
from moldau.records.random_source import RandomSource
from moldau.storage.disk import Disk
from moldau.storage.log import Log
from moldau.storage.log_directory import NO_SPACE, LogDirectory
from moldau.storage.log_manager import CannotStart

if TYPE_CHECKING:
    from moldau.node.quorum_peers import QuorumPeers

logger = logging.getLogger("moldau.metadata")

Listener = Callable[[MetadataDelta, MetadataImage], None]

HOUSEKEEPING_INTERVAL_MS = 10_000
READ_BYTES = 1 << 20
LATE_MS = 200
"""A timer that comes later than that tells of a node that was busy, with thousands of new logs for example."""


class MetadataNode:
    def __init__(
        self,
        config: BrokerConfig,
        disk: Disk,
        rng: RandomSource,
        incarnation_id: bytes,
        dynamic_config: DynamicBrokerConfig | None = None,
        outbox: Outbox | None = None,
        wall: WallClock | None = None,
    ) -> None:
        """`dynamic_config` is kept up to date by its owner; without one the node keeps its own."""
        self.config = config
        self.node_id = config.node_id
        self.incarnation_id = incarnation_id
        self.cluster_id = ""
        self.directory_id = bytes(16)
        self.on_fatal: Callable[[str], None] | None = None
        self.on_disk_failed: Callable[[], None] | None = None
        """Told before `on_fatal` when it is the disk that failed, and not only full."""
        self.on_opened: Callable[[], None] | None = None
        """Called when the log was found to be well, before anything is appended to it."""
        self.on_leader_changed: list[Callable[[int], None]] = []
        """Called with `now_ms` when this node knows another leader, and when it has become the active controller."""
        self.on_deadline: Callable[[int], None] | None = None
        """Told when `poll` has to be called, after anything but `poll` itself."""
        self.send: Callable[[Outbound], None] = self._send_to_peer
        """Takes requests to other replicas; replies come back through `on_raft_reply` and `on_raft_failure`."""
        self.endpoints = ControllerEndpoints(config)
        self.wall = wall if wall is not None else WallClock()
        self._disk = disk
        self._outbox = outbox if outbox is not None else NoOutbox()
        self._peers: QuorumPeers | None = None
        self._rng = rng
        self._dynamic = dynamic_config if dynamic_config is not None else DynamicBrokerConfig(config)
        self._owns_dynamic = dynamic_config is None
        self._listeners: list[Listener] = []
        self._loader = MetadataLoader(self._publish)
        self._active: ActiveController | None = None
        self.counts = ControllerCounts()
        self.commit_times = RecentTimes()
        """From the append of the active controller to the commit."""
        self.election_times = RecentTimes()
        """From the first vote that this node asked for to a leader, whoever it is."""
        self._election_since_ms = -1
        self._counted_leader = (-1, -1)
        self._now_ms = 0
        self._due_ms = NEVER_MS
        """When `poll` was last said to be due."""
        self._syncing = False
        self._in_step = False
        self._in_ready = False
        self._is_starting = False
        self._is_storing = False
        """The quorum state is being written; `_stored_ready` is what waited for it."""
        self._stored_ready: Ready | None = None
        self._failed = False
        self._stopped = False
        self._has_resigned = False
        """Syncs that were under way report back after the log is closed; nobody wants to know any more."""
        self._read_position = 0
        self._published_offset = -1
        self._next_housekeeping_ms = 0
        self.bootstrap: list[Message] = []
        """What the node was formatted with; it counts until the metadata log says more."""

    # Start and stop

    def start(self, now_ms: int) -> None:
        """Opens the log and takes up its role; the only voter is the active controller when this returns."""
        self._now_ms = now_ms
        self.cluster_id, self.directory_id = read_identity(self.config, self._disk)
        self.bootstrap = read_bootstrap_records(self._disk, self.config.metadata_log_dir)
        try:
            self.log: MetadataLog = open_metadata_log(
                self._disk, self.config, self._rng, now_ms, self._on_directory_failed, self.wall
            )
        except DamagedMetadataLog as error:
            raise CannotStart(str(error)) from error
        if self.on_opened is not None:
            self.on_opened()
        self._load_snapshot()
        local = ReplicaKey(self.node_id, self.directory_id)
        self.raft = Raft(
            self._raft_config(),
            local,
            self.log,
            self._configured_voters(),
            self._rng,
            tuple((name, host, port) for name, _, host, port in self.endpoints.all()),
            self.config.bootstrap_servers,
            wall=self.wall,
            listener_name=next(iter(self.config.controller_listener_names), ""),
        )
        self.log.log.on_released = self._on_log_settled
        self.raft.start(self.log.read_quorum_state(), now_ms)
        self._snapshots = SnapshotWriter(self.config, self.log, self.raft, now_ms)
        self._next_housekeeping_ms = now_ms + HOUSEKEEPING_INTERVAL_MS
        self._is_starting = True
        self._work()
        self._is_starting = False

    def stop(self, now_ms: int) -> None:
        """Closes the log; a leader of several voters should have called `resign` before."""
        self._now_ms = now_ms
        self._stopped = True
        if self._active is not None:
            self._active.fail_pending(self._now_ms)
        if self._peers is not None:
            self._peers.close()
        self.log.close(now_ms)

    def resign(self, now_ms: int) -> None:
        """Gives up the lead, if there is another voter who can take it."""
        self._now_ms = now_ms
        self.raft.resign(now_ms)
        self._has_resigned = isinstance(self.raft.role, Resigned)
        self._work()

    @property
    def _is_over(self) -> bool:
        """What a thread was still busy with comes too late."""
        return self._failed or self._stopped

    @property
    def is_storing(self) -> bool:
        """What this node knows of the quorum is not on its disk yet, so nobody has heard of it."""
        return self._is_storing

    @property
    def snapshot_records_total(self) -> int:
        """Records that were encoded for snapshots of the metadata."""
        return self._snapshots.records_total

    @property
    def is_resigning(self) -> bool:
        """This node gave up the lead and has not heard of a successor."""
        return isinstance(self.raft.role, Resigned) or (self._has_resigned and self.raft.leader_id < 0)

    def _raft_config(self) -> RaftConfig:
        get = self.config.get_int
        return RaftConfig(
            get("controller.quorum.election.timeout.ms"),
            get("controller.quorum.election.backoff.max.ms"),
            get("controller.quorum.fetch.timeout.ms"),
            get("controller.quorum.request.timeout.ms"),
            get("controller.quorum.retry.backoff.ms"),
            fetch_max_bytes=get("controller.quorum.fetch.max.bytes"),
            snapshot_max_bytes=get("controller.quorum.fetch.snapshot.max.bytes"),
            auto_join=self.config.get_bool("controller.quorum.auto.join.enable"),
        )

    def _configured_voters(self) -> VoterHistory:
        """Static voters from the configuration; those of a dynamic quorum are in the first snapshot and in the log."""
        name = self.config.controller_listener_names[0] if self.config.controller_listener_names else "CONTROLLER"
        voters = [
            Voter(ReplicaKey(voter.id, bytes(16)), ((name, voter.host, voter.port),)) for voter in self.config.voters
        ]
        return VoterHistory(VoterSet(voters), 0)

    # Driving

    def tick(self, now_ms: int) -> None:
        """The quorum's own time, before `poll`."""
        self._now_ms = now_ms
        if now_ms - self._due_ms > LATE_MS:
            self.raft.extend_deadlines(now_ms - self._due_ms, now_ms)
        self._step(lambda: self.raft.tick(now_ms))

    def poll(self, now_ms: int) -> int:
        """The active controller's duties, and those of the log; returns when to call both again at the latest."""
        self._now_ms = now_ms
        if self._active is not None and not self._failed:
            self._control(self._active)
        if now_ms >= self._next_housekeeping_ms:
            self._next_housekeeping_ms = now_ms + HOUSEKEEPING_INTERVAL_MS
            self.log.housekeeping(now_ms)
            self.log.clean(now_ms)
        if self._snapshots.is_due(now_ms):
            self.write_snapshot(now_ms)
        return min(self._next_deadline_ms(), self._snapshots.poll(now_ms))

    def _next_deadline_ms(self) -> int:
        deadline = min(self.raft.next_deadline_ms(self._now_ms), self._next_housekeeping_ms)
        if self._active is not None:
            deadline = min(deadline, self._active.controller.duties.next_ms(self._now_ms))
        self._due_ms = deadline
        return deadline

    def _control(self, active: ActiveController) -> None:
        """The active controller's own duties."""
        try:
            active.do_duties(self._now_ms)
        except KafkaError as error:
            # No space, or the node has been told that it must stop: nothing was appended, and the duty comes again.
            logger.error("the active controller cannot write its own records: %s", error.message)
        self._work()

    def _step(self, step: Callable[[], None]) -> None:
        """One input of the quorum. A log that cannot do what it is asked, or must never be asked, ends the node."""
        if self._is_over:
            return
        self._in_step = True
        try:
            step()
        except (OSError, KafkaError) as error:
            self._on_failure(error)
        except AssertionError as error:
            self._fatal(f"a promise of the quorum would be broken: {error}")
            raise
        finally:
            self._in_step = False
        self._work()

    def _work(self) -> None:
        """Works off what the quorum wants done, in the order `Ready` asks for."""
        if self._in_ready or self._is_over:
            return
        self._in_ready = True
        try:
            ready = self._next_ready()
            while ready is not None:
                self._work_off(ready)
                ready = self._next_ready()
        except (OSError, KafkaError) as error:
            self._on_failure(error)
        except AssertionError as error:
            # Some listeners have taken the new image over and others have not: the node must not go on.
            self._fatal(f"what is committed cannot be applied: {error}")
            raise
        finally:
            self._in_ready = False
        self._time_elections()
        if self.on_deadline is not None:
            self.on_deadline(self._next_deadline_ms())

    def _time_elections(self) -> None:
        role = self.raft.role
        if self._election_since_ms < 0:
            if isinstance(role, Prospective | Candidate):
                self._election_since_ms = self._now_ms
        elif role.leader_id >= 0 and not isinstance(role, Prospective):
            self.election_times.record(self._now_ms - self._election_since_ms, self._now_ms)
            self._election_since_ms = -1

    def _next_ready(self) -> Ready | None:
        """What is to be done now. Nothing is while the quorum state is on its way to the medium: what it says, a vote
        above all, must not be heard of before, and what comes after it may rest on it."""
        self._maybe_deactivate()
        while self._stored_ready is None:
            if self._is_storing:
                return None
            ready = self.raft.take_ready()
            if ready.quorum_state is None:
                return None if ready.is_empty() else ready
            self._store(ready, ready.quorum_state)
        ready, self._stored_ready = self._stored_ready, None
        return ready

    def _store(self, ready: Ready, state: QuorumState) -> None:
        version = 1 if self.raft.voter_history.kraft_version() >= 1 else 0
        voter_ids = self.raft.voters.ids()
        if self._is_starting:
            self.log.write_first_quorum_state(state, version, voter_ids)
            self._stored_ready = ready
            return
        if not self.config.is_controller:
            # A broker votes for nobody: the epoch is written down for its next start, and nothing waits for that. Its
            # heartbeats go to the new controller whatever its disk does.
            self._stored_ready = ready
            self.log.write_quorum_state(state, version, voter_ids, self._on_noted)
            return

        def on_stored(error: OSError | None) -> None:
            self._is_storing = False
            if error is not None:
                self._on_failure(error)
                return
            self._stored_ready = ready
            self._work()

        self._is_storing = True
        self.log.write_quorum_state(state, version, voter_ids, on_stored)

    def _on_noted(self, error: OSError | None) -> None:
        if error is not None:
            self._on_failure(error)

    def _work_off(self, ready: Ready) -> None:
        if ready.sync_to >= 0:
            self._sync()
        for outbound in ready.requests:
            self.send(outbound)
        for token, reply in ready.replies:
            self._give_reply(token, reply)
        for read in ready.snapshot_reads:
            self._read_snapshot_for(read)
        if ready.fetched_snapshot is not None:
            self._check_snapshot(ready.fetched_snapshot)
        if ready.leader_changed:
            self._on_leader_changed()
        if ready.loaded_snapshot is not None:
            self._load_snapshot()
        if ready.high_watermark >= 0:
            self._apply_committed(ready.high_watermark)

    def _read_snapshot_for(self, read: SnapshotRead) -> None:
        def on_read(data: bytes | OSError) -> None:
            if isinstance(data, bytes):
                read.reply.data = data
            elif isinstance(data, FileNotFoundError):
                read.reply.error = errors.SNAPSHOT_NOT_FOUND
            else:
                self._on_failure(data)
            if not self._is_over:
                self._give_reply(read.token, read.reply)

        self.log.read_snapshot_later(read.reply.snapshot, read.reply.position, read.max_bytes, on_read)

    def _check_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        def on_checked(error: OSError | ValueError | None) -> None:
            if isinstance(error, OSError):
                self._on_failure(error)
            else:
                self._step(lambda: self.raft.on_snapshot_checked(snapshot, error, self._now_ms))

        self.log.check_fetched_snapshot(snapshot, on_checked)

    def _sync(self) -> None:
        """One sync at a time; what is appended while it runs waits for the next one, together."""
        if self._syncing or self.raft.synced_offset >= self.log.end_offset():
            return
        self._syncing = True
        end, generation = self.log.end_offset(), self.raft.sync_generation

        def on_synced(error: OSError | None) -> None:
            self._syncing = False
            if error is not None or self._is_over:
                return
            self.raft.on_synced(end, generation, self._now_ms)
            self._sync()
            self._work()

        self.log.sync_later(on_synced)

    def _on_log_settled(self, _: Log) -> None:
        """A truncation is on the medium: the log takes records again."""
        if not self._in_step:  # else the step that is being taken goes on with it
            self._step(lambda: self.raft.tick(self._now_ms))

    def _on_directory_failed(self, directory: LogDirectory) -> None:
        if self.on_disk_failed is not None:
            self.on_disk_failed()
        self._fatal(directory.failure)

    def _on_failure(self, error: OSError | KafkaError) -> None:
        if isinstance(error, OSError) and error.errno not in NO_SPACE and self.on_disk_failed is not None:
            self.on_disk_failed()
        self._fatal(str(error))

    def _fatal(self, reason: str) -> None:
        """Without its metadata log a node cannot know what it may do."""
        if self._failed:
            return
        self._failed = True
        reason = f"the metadata log in {self.config.metadata_log_dir} failed: {reason}"
        logger.error("%s; stopping the node", reason)
        if self.on_fatal is not None:
            self.on_fatal(reason)

    # Committed records

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        published, self._published_offset = self._published_offset, image.offset
        assert image.offset >= published, f"the image goes back from offset {published} to {image.offset}"
        if self._owns_dynamic:
            if (BROKER_RESOURCE, "") in delta.changed_configs:
                self._dynamic.update_default(image.broker_defaults())
            if (BROKER_RESOURCE, str(self.node_id)) in delta.changed_configs:
                self._dynamic.update_broker(image.config(BROKER_RESOURCE, str(self.node_id)))
        for listener in self._listeners:
            listener(delta, image)

    def _apply_committed(self, high_watermark: int) -> None:
        active = self._active
        if active is None:
            self._read_up_to(high_watermark)
            self._maybe_activate()
            return
        pending = active.take_committed(high_watermark)
        while pending is not None:
            self.commit_times.record(self._now_ms - pending.appended_ms, self._now_ms)
            self._loader.take_over(pending.delta, pending.image)
            for done, response in pending.done:
                done(response, self._now_ms)
            pending = active.take_committed(high_watermark)

    def _read_up_to(self, end_offset: int) -> None:
        """Loads records from the log, as a follower does, and as every node does when it starts."""
        position = self._loader.image.offset + 1 if not self._loader.in_transaction else self._read_position
        while position < end_offset:
            data = self.log.read(position, READ_BYTES)
            for header in split_batches(data, 0, len(data)):
                if header.last_offset >= end_offset:
                    return
                if header.last_offset >= position:
                    records = [decode_metadata_record(value) for value in metadata_values(data, header)]
                    last = int(header.last_offset)
                    epoch, timestamp = int(header.partition_leader_epoch), int(header.max_timestamp)
                    self._loader.load_batch(records, last, epoch, timestamp)
                    position = self._read_position = last + 1

    def _load_snapshot(self) -> None:
        snapshot = self.log.latest_snapshot()
        if snapshot is None or snapshot.offset == 0:
            return
        records = read_snapshot_records(self.log, snapshot)
        self._loader.load_snapshot(records, snapshot.offset - 1, snapshot.epoch, self.wall.at(self._now_ms))
        self._read_position = snapshot.offset

    # The active controller

    @property
    def active_controller(self) -> Controller | None:
        """What decides, while this node is the one; to be changed by `submit` alone."""
        return None if self._active is None else self._active.controller

    @property
    def is_active_controller(self) -> bool:
        return self._active is not None

    def _maybe_deactivate(self) -> None:
        """At once, whatever the disk is busy with: who leads no more decides nothing."""
        active = self._active
        if not self.raft.is_leader and active is not None:
            logger.info("node %d is no longer the active controller", self.node_id)
            self._active = None
            active.fail_pending(self._now_ms)

    def _on_leader_changed(self) -> None:
        self._maybe_deactivate()
        leader = (self.raft.leader_id, self.raft.epoch)
        if leader[0] >= 0 and leader != self._counted_leader:
            self._counted_leader = leader
            self.counts.new_controllers += 1
        was_active = self._active is not None
        self._maybe_activate()
        if was_active or self._active is None:
            self._tell_leader_changed()

    def _tell_leader_changed(self) -> None:
        for callback in self.on_leader_changed:
            callback(self._now_ms)

    def _maybe_activate(self) -> None:
        """A leader is the active controller once it has applied everything before its epoch."""
        role = self.raft.role
        if not isinstance(role, Leader) or self._active is not None:
            return
        if self.raft.voters.is_only_voter(self.raft.local):
            # Nobody can overrule what is in the only voter's log: it goes on at once and all of it is synced together.
            self._read_up_to(self.log.end_offset())
        elif self._loader.image.offset < role.epoch_start_offset:
            return
        self._activate()

    def _activate(self) -> None:
        now_ms = self._now_ms
        logger.info("node %d is the active controller of epoch %d", self.node_id, self.raft.epoch)
        state = ControllerState(
            self.cluster_id,
            self.node_id,
            self._dynamic,
            self._rng,
            self._loader.image,
            self.log.end_offset(),
            self.wall,
        )
        state.counts = self.counts
        controller = Controller(state)
        controller.features.kraft_version = self.raft.voter_history.kraft_version()
        controller.features.upgrade_kraft_version = self._upgrade_kraft_version
        active = self._active = ActiveController(controller, self.log, self.raft, self.wall, self._fatal)
        if self._loader.in_transaction:
            active.append([(AbortTransactionRecord("A new controller found it open."), 0)], True, now_ms)
        if not controller.image.features:
            minimum = self.config.get_int("min.insync.replicas")
            active.append(bootstrap_records(self.bootstrap, minimum), True, now_ms)
        controller.duties.activate(now_ms)
        if self.is_registration_due(controller.image):
            # In the same batch of syncs as what a new cluster begins with.
            request = self.controller_registration()
            active.append(controller.register_controller(request, now_ms).records, True, now_ms)
        self._tell_leader_changed()

    def controller_registration(self) -> ControllerRegistrationRequest:
        return self.endpoints.registration(self.incarnation_id)

    def is_registration_due(self, image: MetadataImage) -> bool:
        """Whether this controller is not in the image as it is now."""
        known = image.controllers.get(self.node_id)
        if known is not None and known.incarnation_id == self.incarnation_id:
            return False
        return self.config.is_controller and supports_controller_registration(image.metadata_version)

    def _upgrade_kraft_version(self, level: int, validate_only: bool) -> None:
        self.raft.upgrade_kraft_version(level, validate_only, self._now_ms)

    def submit(self, verb: Verb, done: Done, now_ms: int | None = None) -> None:
        """Runs `verb` on the active controller; `done` gets its response when everything it saw is committed."""
        if now_ms is not None:
            self._now_ms = max(self._now_ms, now_ms)
        if self._active is None or self._failed or self._stopped:
            done(KafkaError(errors.NOT_CONTROLLER, "This node is not the active controller."), self._now_ms)
        elif self._active.submit(verb, done, self._now_ms):
            self._work()

    # What others read

    @property
    def image(self) -> MetadataImage:
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """The image ends with the batch that began a metadata transaction whose end is not known to be committed."""
        return self._loader.in_transaction

    @property
    def is_caught_up(self) -> bool:
        """The image has all that was committed before the present leader, and all that it has told since. A snapshot
        alone does not say that, nor does a high watermark of an earlier leader."""
        role = self.raft.role
        if isinstance(role, Follower):
            return self.image.epoch == self.raft.epoch and 0 <= role.leader_high_watermark <= self.image.offset + 1
        return self._active is not None

    @property
    def now_ms(self) -> int:
        """The time of the turn that runs."""
        return self._now_ms

    @property
    def leader_id(self) -> int:
        return self.raft.leader_id

    def leader_destination(self) -> tuple[int, str, int] | None:
        """Id, host and port of the node that leads the quorum; None when that is this node, or when nobody knows."""
        leader_id = self.raft.leader_id
        if leader_id < 0 or leader_id == self.node_id:
            return None
        # On the listener that this node talks to controllers on: others may speak another protocol.
        listener = next(iter(self.config.controller_listener_names), "")
        address = self.raft.address_of(leader_id) or self._registered_address(leader_id, listener)
        return None if address is None else (leader_id, *address)

    def _registered_address(self, controller_id: int, listener: str) -> tuple[str, int] | None:
        known = self.image.controllers.get(controller_id)
        endpoint = None if known is None else known.end_points.get(listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    @property
    def leader_epoch(self) -> int:
        return self.raft.epoch

    @property
    def high_watermark(self) -> int:
        return self.raft.high_watermark

    @property
    def kraft_version(self) -> int:
        """The finalized level of kraft.version, which is not in the image."""
        return self.raft.voter_history.kraft_version()

    def finalized_features(self) -> dict[str, int]:
        """The levels that ApiVersions shows, kraft.version among them."""
        levels = dict(self.image.features)
        if self.kraft_version > 0:
            levels["kraft.version"] = self.kraft_version
        return levels

    def add_listener(self, listener: Listener) -> None:
        """Called with (delta, image) for every batch committed from now on; what is there already is in `image`."""
        self._listeners.append(listener)

    def write_snapshot(self, now_ms: int) -> None:
        """Begins a snapshot of the image as it is now."""
        self._snapshots.write(self.image, self._loader.in_transaction, now_ms)

    # Other replicas

    def _send_to_peer(self, outbound: Outbound) -> None:
        if self._peers is None:
            from moldau.node.quorum_peers import QuorumPeers

            self._peers = QuorumPeers(
                self._outbox,
                self.raft.address_of,
                self.cluster_id,
                self.config.get_int("controller.quorum.request.timeout.ms"),
                self.on_raft_reply,
                self.on_raft_failure,
            )
        self._peers.send(outbound, self._now_ms)

    def _give_reply(self, token: object, reply: Reply) -> None:
        assert callable(token)
        token(reply)

    def on_raft_reply(self, outbound: Outbound, reply: Reply, now_ms: int) -> None:
        self._now_ms = now_ms
        self._step(lambda: self.raft.on_reply(outbound.destination, outbound.request, reply, now_ms))

    def on_raft_failure(self, outbound: Outbound, now_ms: int, reason: int = TIMED_OUT) -> None:
        self._now_ms = now_ms
        self._step(lambda: self.raft.on_failure(outbound.destination, outbound.request, now_ms, reason))

    def handle_raft_request(
        self, api_key: int, request: Message, listener: str, now_ms: int, respond: Callable[[Message], None]
    ) -> None:
        """Vote, Fetch, BeginQuorumEpoch, EndQuorumEpoch and FetchSnapshot of a controller listener; the response says
        where the leader has a listener of the same name."""

        def on_reply(reply: Reply) -> None:
            if reply.leader_address is not None:
                # A leader tells its listeners once in an epoch: who has restarted since knows them from the image.
                known = self.raft.address_for(reply.leader_id, listener)
                reply.leader_address = known or self._registered_address(reply.leader_id, listener)
            respond(reply_to_wire(reply))

        self._now_ms = now_ms
        try:
            asked = request_from_wire(request, self.cluster_id)
        except KafkaError as error:
            respond(error_to_wire(api_key, error.code, error.message))
            return
        self._step(lambda: self.raft.on_request(asked, on_reply, now_ms))

    def describe_quorum(self, request: DescribeQuorumRequest, version: int, now_ms: int) -> DescribeQuorumResponse:
        return describe_quorum(self.raft, request, version, now_ms)
