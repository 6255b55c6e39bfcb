"""One node: its logs, replicas, metadata and waiting requests, driven from outside by frames, timers and the disk.

Everything here runs in one turn at a time, on the time it is given. A server process and the simulator drive the same
object: `start`, then `poll` whenever the deadline it returned has come, `begin_shutdown` and `stop` at the end.
By `process.roles` it is a broker, a controller or both; one that is no broker keeps the metadata log and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.config.broker_config import BrokerConfig
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.config.log_config import LogConfig, log_config_for
from moldau.config.own_keys import FREE_BYTES_MIN_KEY, SCRUB_RATE_KEY
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import SUPPORTED_FEATURES
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BROKER_RESOURCE, TOPIC_RESOURCE, EndPoint
from moldau.node.authorization import Authorization, make_authorization
from moldau.node.broker_channels import BrokerChannels
from moldau.node.broker_lifecycle import BrokerLifecycle
from moldau.node.client_telemetry import ClientTelemetry
from moldau.node.context import ClientContext
from moldau.node.controller_channel import ControllerChannel
from moldau.node.controller_endpoints import SECURITY_PROTOCOLS
from moldau.node.controller_registration import ControllerRegistration
from moldau.node.coordinators import Coordinators
from moldau.node.directory_assignments import DirectoryAssignments
from moldau.node.directory_moves import DirectoryMoves
from moldau.node.failed_topics import FailedTopics
from moldau.node.failure_detection import FailureDetection
from moldau.node.fetch_session import FetchSessionCache
from moldau.node.fetchers import Fetchers
from moldau.node.isr_changes import IsrChanges
from moldau.node.lag_watch import LagWatch
from moldau.node.later_turns import LaterTurns
from moldau.node.latest_offsets import LatestOffsets
from moldau.node.marker_writer import MarkerWriter
from moldau.node.metadata_node import MetadataNode
from moldau.node.outbox import NoOutbox, Outbox
from moldau.node.producer_ids import ProducerIds
from moldau.node.replicas import Replicas
from moldau.node.responsive_endpoints import ResponsiveEndpoints
from moldau.node.schedule import Schedule
from moldau.node.share.dead_letter_topics import LetterTopics
from moldau.node.share.dead_letters import DeadLetters
from moldau.node.share.groups import ShareGroupStates
from moldau.node.share.partitions import SharePartitions
from moldau.node.share.states import ShareStates
from moldau.node.topic_encodings import TopicEncodings
from moldau.node.turn import Call, Stretch
from moldau.node.txn_markers import TxnMarkers
from moldau.node.txn_verification import TxnVerification
from moldau.node.version_encodings import VersionEncodings
from moldau.node.waiting import WaitingRoom
from moldau.protocol.errors import KafkaError
from moldau.quota.client_quotas import ClientQuotas
from moldau.records.clocks import NEVER_MS, WallClock
from moldau.records.random_source import RandomSource
from moldau.replication.replica_selector import RACK_AWARE_SELECTOR
from moldau.storage.compaction.cleaner import CleanerSettings, CompactionWorkers, LogCleaner
from moldau.storage.compaction.inline import InlineWorkers
from moldau.storage.disk import Disk
from moldau.storage.killed_broker import forget_run
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_loading import LogLoading
from moldau.storage.log_manager import CannotStart, LogManager
from moldau.storage.recovery_task import RecoveryWorkers
from moldau.storage.scrub import Scrub

log = logging.getLogger("moldau.node")

HOUSEKEEPING_MS = 1000
TURN_MS_MAX = 1000
RETENTION_TURN_MS = 10  # between the parts of a retention run
RESIGNATION_MAX_MS = 1000
"""How long a leader of the quorum that stops waits for a successor."""
SESSION_ID_MAX = 0x7FFFFFFF


def cleaner_settings(config: BrokerConfig) -> CleanerSettings:
    return CleanerSettings(
        config.get_bool("log.cleaner.enable"),
        config.get_int("log.cleaner.threads"),
        config.get_int("log.cleaner.dedupe.buffer.size"),
        config.get_float("log.cleaner.io.buffer.load.factor"),
        config.get_int("log.cleaner.backoff.ms"),
        config.get_float("log.cleaner.io.max.bytes.per.second"),
    )


def no_step(name: str) -> None:
    """Nobody watches."""


def make_client_quotas(config: BrokerConfig) -> ClientQuotas:
    return ClientQuotas(config.get_int("quota.window.num"), config.get_int("quota.window.size.seconds") * 1000)


class Node:
    """See the module."""

    def __init__(
        self,
        config: BrokerConfig,
        disk: Disk,
        rng: RandomSource,
        incarnation_id: bytes,
        *,
        compaction_workers: CompactionWorkers | None = None,
        recovery_workers: RecoveryWorkers | None = None,
        outbox: Outbox | None = None,
        controller_outbox: Outbox | None = None,
        probe_outbox: Outbox | None = None,
        wall: WallClock | None = None,
    ) -> None:
        """`outbox` leads to brokers; to controllers and to whom a controller asks whether it is there, which may be
        secured otherwise, lead the other two where they are given.

        `now_ms` is everywhere the steady clock's; `wall`, kept up to date by whoever runs the node, is for what is
        stored and for ages (`moldau.records.clocks`)."""
        self.wall = wall if wall is not None else WallClock()
        self.node_id = config.node_id
        self.is_broker = config.is_broker
        self.outbox = outbox if outbox is not None else NoOutbox()
        self.controller_outbox = controller_outbox if controller_outbox is not None else self.outbox
        self.probe_outbox = probe_outbox if probe_outbox is not None else self.outbox
        self.dynamic = DynamicBrokerConfig(config)
        self.disk = disk
        self.incarnation_id = incarnation_id
        self._rng = rng
        self._now_ms = 0
        self.on_ready: Callable[[], None] | None = None
        self.on_fatal: Callable[[str], None] | None = None
        self.on_rights_loaded: Callable[[], None] | None = None
        """Called when the authorizer has its ACLs; only now may listeners open that do not start early."""
        self.on_config_changed: Callable[[], None] | None = None
        self.on_client_quotas_changed: Callable[[], None] | None = None
        # Looks a host up off the loop and tells its name and whether it has an address; None where nobody can.
        self.resolve_host: Callable[[str, Callable[[str, bool], None]], None] | None = None
        self.on_step: Callable[[str], None] = no_step
        """Told at the end of each part of a poll, for whoever watches how long they take."""
        self.is_ready = False
        self.image = MetadataImage()
        self.quotas = make_client_quotas(config)
        self.rights = make_authorization(config)
        """Who may do what; None where everyone may do everything."""
        self.waiting = WaitingRoom()
        self.later_turns = LaterTurns()
        self.fetch_sessions = FetchSessionCache(config.get_int("max.incremental.fetch.session.cache.slots"))
        self.fetch_bytes_max = config.get_int("fetch.max.bytes")
        self.topic_encodings = TopicEncodings()
        self.version_encodings = VersionEncodings()
        self.telemetry = ClientTelemetry(config, rng)
        self.topics_in_creation: set[str] = set()
        self.failed_topics = FailedTopics()
        self._log_configs: dict[str, LogConfig] = {}
        self.logs = self._make_logs(config, recovery_workers)
        self.metadata = self._make_metadata(config)
        # A heartbeat must not wait for anything, and what brokers ask not for what their clients ask.
        self._heartbeats = ControllerChannel(self.metadata, self.controller_outbox, "heartbeat")
        self.controller = ControllerChannel(self.metadata, self.controller_outbox, "controller")
        self.forwarding = ControllerChannel(self.metadata, self.controller_outbox, "forwarding")
        self.lifecycle = self._make_lifecycle()
        self.failure_detection = self._make_failure_detection(config)
        self.watch_heartbeats: Callable[[ClientContext, int, int], None] | None = self.failure_detection.on_heartbeat
        """Told of every heartbeat that came over a connection: from where, of which broker, and when."""
        self.fetchers = Fetchers(config, self.logs, self.outbox, lambda: self.lifecycle.broker_epoch)
        self.fetchers.context.on_no_response = self.failure_detection.on_channel_failed
        self.directory_moves = self._make_directory_moves(config)
        self.replicas = self._make_replicas(config)
        self.isr_changes = IsrChanges(
            self.node_id, lambda: self.lifecycle.broker_epoch, self.controller, self.replicas.context
        )
        self.cleaner = self._make_cleaner(config, compaction_workers)
        self.scrub = Scrub(self.logs, config.get_int(SCRUB_RATE_KEY))
        self.coordinators = Coordinators(config, self.replicas, rng)
        self._controller_registration = ControllerRegistration(self.metadata, self.controller)
        self._directory_assignments = DirectoryAssignments(self.controller, self.lifecycle, self.replicas)
        self.producer_ids = ProducerIds(self.node_id, self.controller, self.lifecycle)
        self._make_transactions(config)
        self._make_shares(config)
        self._schedule = Schedule()
        self._alone, self._following = self._parts_before_joining(), self._parts_of_a_member()
        self._turn_ms_max = min(TURN_MS_MAX, config.get_int("broker.heartbeat.interval.ms"))
        self._bound_ports: dict[str, int] = {}
        self._is_started = False
        self._loading: LogLoading | None = None
        self._wake_at: Callable[[int], None] | None = None
        self._is_following = False
        self._on_finished: Callable[[], None] | None = None
        self._resigned_at_ms = NEVER_MS

    # What it is made of

    def _make_logs(self, config: BrokerConfig, recovery_workers: RecoveryWorkers | None) -> LogManager:
        logs = LogManager(
            self.disk,
            config.log_dirs,
            self.log_config_of,
            self._rng.randrange,
            self._on_directory_failed,
            config.get_int("producer.id.expiration.ms"),
            self.wall,
        )
        logs.recovery_workers = recovery_workers
        logs.recovery_workers_max = config.get_int("num.recovery.threads.per.data.dir")
        logs.retention_interval_ms = config.get_int("log.retention.check.interval.ms")
        logs.checkpoint_interval_ms = config.get_int("log.flush.offset.checkpoint.interval.ms")
        logs.log_start_checkpoint_interval_ms = config.get_int("log.flush.start.offset.checkpoint.interval.ms")
        logs.first_retention_delay_ms = config.get_int("log.initial.task.delay.ms")
        logs.expiration_interval_ms = config.get_int("producer.id.expiration.check.interval.ms")
        self.disk.on_read_failed = logs.on_read_failed
        logs.on_durable = lambda flushed: self.replicas.on_durable(flushed, self._now_ms)
        logs.on_released = lambda released: self.replicas.on_released(released, self._now_ms)
        return logs

    def _make_metadata(self, config: BrokerConfig) -> MetadataNode:
        metadata = MetadataNode(
            config, self.disk, self._rng, self.incarnation_id, self.dynamic, self.controller_outbox, self.wall
        )
        metadata.on_fatal = self._fatal
        metadata.on_disk_failed = self._on_metadata_disk_failed
        metadata.on_opened = self.logs.runs.take_clean_shutdown_files
        metadata.add_listener(self._on_metadata)
        return metadata

    def _make_cleaner(self, config: BrokerConfig, workers: CompactionWorkers | None) -> LogCleaner:
        return LogCleaner(
            self.logs,
            workers if workers is not None else InlineWorkers(self.disk),
            cleaner_settings(config),
            self.replicas.high_watermark_of,
            self._rng.randrange(1 << 62),
        )

    def _make_lifecycle(self) -> BrokerLifecycle:
        lifecycle = BrokerLifecycle(self.metadata, self._heartbeats)
        lifecycle.on_registered = self.logs.runs.note_run
        lifecycle.on_gave_up = self._fatal
        return lifecycle

    def _make_failure_detection(self, config: BrokerConfig) -> FailureDetection:
        # A controller alone need not have been told which listener brokers use among themselves.
        knows = config.is_broker or config.is_given("inter.broker.listener.name")
        listener = config.inter_broker_listener_name if knows else None
        failure_detection = FailureDetection(
            lambda: self.metadata.active_controller,
            self.metadata.submit,
            self.probe_outbox,
            ResponsiveEndpoints(self.probe_outbox, listener, self.node_id),
            self.node_id,
            config.get_int("broker.heartbeat.interval.ms"),
        )
        self.metadata.on_leader_changed.append(failure_detection.on_leader_changed)
        return failure_detection

    def _make_directory_moves(self, config: BrokerConfig) -> DirectoryMoves:
        return DirectoryMoves(
            self.logs,
            config.get_int("alter.log.dirs.replication.quota.window.num"),
            config.get_int("alter.log.dirs.replication.quota.window.size.seconds") * 1000,
        )

    def _make_replicas(self, config: BrokerConfig) -> Replicas:
        replicas = Replicas(self.node_id, self.logs, self.log_config_of, self.fetchers, self.directory_moves)
        replicas.context.brokers.lag_max_ms = config.get_int("replica.lag.time.max.ms")
        selector = config.get_str_or_none("replica.selector.class")
        replicas.context.selects_by_rack = selector == RACK_AWARE_SELECTOR
        return replicas

    def _make_transactions(self, config: BrokerConfig) -> None:
        listener = config.inter_broker_listener_name
        timeout_ms = config.get_int("request.timeout.ms")
        groups, transactions = self.coordinators.groups, self.coordinators.transactions
        self.marker_writer = MarkerWriter(self.replicas, groups.runtime, self.waiting, timeout_ms)
        self.txn_markers = TxnMarkers(
            self.node_id,
            transactions.runtime,
            self.marker_writer,
            BrokerChannels(self.outbox, "markers", listener),
            timeout_ms,
        )
        verification_channels = BrokerChannels(self.outbox, "verification", listener)
        self.txn_verification = TxnVerification(config, self.node_id, transactions, verification_channels)
        self.txn_markers.on_completed = self.txn_verification.on_completed
        transactions.markers = self.txn_markers
        transactions.producer_ids = self.producer_ids.next

    def _make_shares(self, config: BrokerConfig) -> None:
        channels = BrokerChannels(self.outbox, "share state", config.inter_broker_listener_name)
        coordinator = self.coordinators.shares
        self.share_states = ShareStates(self.node_id, coordinator, channels, config.get_int("request.timeout.ms"))
        timeout_ms = config.get_int("request.timeout.ms")
        self.dead_letters = DeadLetters(
            self.node_id,
            self.replicas,
            self.waiting,
            BrokerChannels(self.outbox, "dead letters", config.inter_broker_listener_name),
            timeout_ms,
            self.log_config_of,
            LetterTopics(self.controller).create,
        )
        self.shares = SharePartitions(config, self.replicas, self.share_states, self.dead_letters)
        self.share_groups = ShareGroupStates(self.share_states, self.coordinators.groups.run)
        lag_channels = BrokerChannels(self.outbox, "latest offsets", config.inter_broker_listener_name)
        self.latest_offsets = LatestOffsets(self.node_id, self.replicas, lag_channels, timeout_ms)
        self.lag_watch = LagWatch(
            self.replicas,
            self.coordinators.groups,
            self.latest_offsets,
            BrokerChannels(self.outbox, "record times", config.inter_broker_listener_name),
            disk=self.disk,
            wall=self.wall,
            timeout_ms=timeout_ms,
            image=lambda: self.image,
        )

    def _parts_before_joining(self) -> list[Stretch]:
        """What every turn calls, in this order. The own broker's heartbeat comes before the controller's duties: after
        a long pause it must not count as silent."""
        return [
            Stretch("quorum", Call(self.quotas.poll), Call(self.metadata.tick)),
            Stretch(
                "controller",
                self.lifecycle,
                self._heartbeats,
                self.metadata,
                Call(self._controller_registration.poll),
            ),
            Stretch(
                "channels",
                self.controller,
                self.forwarding,
                self.failure_detection,
                Call(self._check_resigned),
                Call(self._load_more),
            ),
        ]

    def _parts_of_a_member(self) -> list[Stretch]:
        """What follows once the broker takes part in the cluster."""
        return [
            Stretch("replicas", self.replicas, Call(self._directory_assignments.poll)),
            Stretch("fetchers", self.fetchers, self.directory_moves),
            Stretch("waiting requests", self.waiting, self.later_turns),
            Stretch("coordinators", self.coordinators),
            Stretch("transactions", self.txn_markers, self.txn_verification),
            Stretch("share groups", self.share_states, self.shares, self.dead_letters),
            Stretch("cleaner", self.cleaner),
            Stretch("scrub", self.scrub),
            Stretch("rounds over logs", Call(self._run_schedule), Call(self.logs.rounds.poll)),
            Stretch("in-sync replicas", self.isr_changes),
            Stretch("lag of groups", self.lag_watch),
            Stretch("client telemetry", self.telemetry),
        ]

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force, dynamic changes included."""
        return self.dynamic.current

    @property
    def cluster_id(self) -> str:
        return self.metadata.cluster_id

    # Start, turn by turn, and the end

    def start(self, now_ms: int) -> None:
        """Opens the metadata log and the first of the others; the turns that follow open the rest, and then it joins
        the cluster. `on_ready` is called when clients may come."""
        self._now_ms = now_ms
        self.logs.lock()
        self.metadata.start(now_ms)
        self.image = self.metadata.image
        self.quotas.apply(self.image.client_quotas)
        self._update_dynamic_config()
        self._maybe_complete_rights()
        self._is_started = True
        if self.is_broker:
            self._loading = self.logs.begin_load()
            self._loading.on_progress = self._on_logs_recovered
            self._load(self._loading, now_ms)
        else:
            self.is_ready = True

    @property
    def loading(self) -> LogLoading | None:
        """The logs of this broker, while they are being opened."""
        return self._loading

    def _load(self, loading: LogLoading, now_ms: int) -> int:
        """A few logs a turn: a controller on the same node must not wait for them. Returns when the next are due."""
        if loading.has_work:
            loading.run_turn(now_ms)
        if loading.is_done:
            self._loading = None
            self._join(now_ms)
        return now_ms if loading.has_work else NEVER_MS

    def _load_more(self, now_ms: int) -> int:
        loading = self._loading
        if loading is None:
            return NEVER_MS
        try:
            return self._load(loading, now_ms)
        except CannotStart as error:
            loading.stop()
            self._fatal(str(error))
            return NEVER_MS

    def _on_logs_recovered(self) -> None:
        if self._wake_at is not None:
            self._wake_at(self._now_ms)

    def _join(self, now_ms: int) -> None:
        log_dirs = [directory.directory_id for directory in self.logs.online_directories()]
        previous_epoch = self.logs.runs.previous_broker_epoch()
        self.lifecycle.join(self._advertised(), log_dirs, previous_epoch, now_ms, self._on_caught_up, self._on_unfenced)

    def _on_caught_up(self) -> None:
        """The metadata here has this broker's registration, so what it says of replicas is true: only now may a log
        it does not name be set aside, and one that it names be cleaned."""
        now_ms = self._now_ms = max(self._now_ms, self.metadata.now_ms)
        self.image = self.metadata.image
        self.quotas.apply(self.image.client_quotas)
        self._update_dynamic_config()
        self._is_following = True
        self.telemetry.start(self.image)
        if self.rights is not None:
            self._complete_rights(self.rights)
        self.replicas.apply_image(self.image, now_ms)
        self.replicas.rename_stray_logs(now_ms)
        self._schedule.add("housekeeping", lambda: HOUSEKEEPING_MS, self._keep_house, now_ms)
        self._schedule.add("retention", self._retention_wait_ms, self._continue_retention, now_ms)
        checkpoint_ms = self.config.get_int("replica.high.watermark.checkpoint.interval.ms")
        lag_check_ms = self.replicas.context.brokers.lag_max_ms // 2
        self._schedule.add("in-sync replicas", lambda: lag_check_ms, self._check_in_sync_replicas, now_ms)
        self._schedule.add("high watermarks", lambda: checkpoint_ms, self._checkpoint_high_watermarks, now_ms)

    def _advertised(self) -> list[EndPoint]:
        endpoints = []
        for endpoint in self.config.advertised():
            port = endpoint.port or self._bound_ports.get(endpoint.name, 0)
            security = SECURITY_PROTOCOLS.get(endpoint.protocol, 0)
            endpoints.append(
                EndPoint(endpoint.name, endpoint.host or self.metadata.endpoints.host_name, port, security)
            )
        return endpoints

    def _on_unfenced(self) -> None:
        self.is_ready = True
        self.txn_markers.on_metadata(self.image, self._now_ms)
        self.txn_verification.on_metadata(self.image, self._now_ms)
        self.coordinators.start(self.image, self._now_ms)
        self.share_states.on_metadata(self.image, self._now_ms)
        self.dead_letters.on_metadata(self.image, self._now_ms)
        self.shares.start(self.image)
        prune_ms = self.coordinators.shares.settings.prune_interval_ms
        self._schedule.add("share state pruning", lambda: prune_ms, self.coordinators.shares.prune, self._now_ms)
        if self.on_ready is not None:
            self.on_ready()

    def poll(self, now_ms: int) -> int:
        """Does what is due; returns when to call again at the latest. That is soon enough to tell a process that did
        not run from one that had nothing to do (`SteadyClock`)."""
        return min(self._poll(now_ms), now_ms + self._turn_ms_max)

    def _poll(self, now_ms: int) -> int:
        self._now_ms = now_ms
        self.quotas.begin_turn(now_ms)
        deadline_ms = NEVER_MS
        for stretch in self._alone:
            deadline_ms = min(deadline_ms, stretch.poll(now_ms))
            self.on_step(stretch.name)
        self._maybe_complete_rights()
        if self._is_following:
            for stretch in self._following:
                deadline_ms = min(deadline_ms, stretch.poll(now_ms))
                self.on_step(stretch.name)
        return deadline_ms

    def set_wake_up(self, wake_at: Callable[[int], None]) -> None:
        """`wake_at` is told when `poll` must be called earlier than it said."""
        self._wake_at = wake_at
        for stretch in self._alone + self._following:
            stretch.set_wake_up(wake_at)

    def begin_shutdown(self, now_ms: int, finished: Callable[[], None]) -> None:
        """Hands leadership over, of partitions and of the quorum; `finished` is called when this node may go."""
        self._now_ms = now_ms
        self._on_finished = finished
        if self._loading is not None:
            self._loading.stop()
        if self.is_broker and self.config.get_bool("controlled.shutdown.enable"):
            self.lifecycle.leave(now_ms, self._resign)
        else:
            self._resign()

    def _resign(self) -> None:
        """The broker has left; a controller that leads others tells them, so that they need not find out."""
        self._now_ms = max(self._now_ms, self.metadata.now_ms)
        self._resigned_at_ms = self._now_ms
        self.metadata.resign(self._now_ms)
        self._check_resigned(self._now_ms)

    def _check_resigned(self, now_ms: int) -> int:
        """Done when somebody else leads, or nobody took over in time."""
        if self._resigned_at_ms == NEVER_MS or self._on_finished is None:
            return NEVER_MS
        give_up_ms = self._resigned_at_ms + RESIGNATION_MAX_MS
        if self.metadata.is_resigning and now_ms < give_up_ms:
            return min(now_ms + 20, give_up_ms)
        callback, self._on_finished = self._on_finished, None
        callback()
        return NEVER_MS

    def stop(self, now_ms: int) -> None:
        """Writes everything down. The node cannot be used afterwards."""
        self.fetchers.close()
        self.coordinators.stop(now_ms)
        self.txn_markers.close()
        self.txn_verification.close()
        self.share_states.close()
        self.dead_letters.close()
        self.latest_offsets.close()
        self.lag_watch.close()
        broker_epoch = self.lifecycle.broker_epoch
        if not self.lifecycle.was_registered:
            # It never joined, so the logs are as the run before left them.
            broker_epoch = self.logs.runs.previous_broker_epoch()
        high_watermarks = self.replicas.high_watermarks() if self._is_following else None
        self.failure_detection.close()
        for channel in (self._heartbeats, self.controller, self.forwarding):
            channel.close()
        try:
            self.metadata.stop(now_ms)
        except (OSError, KafkaError) as error:
            log.error("cannot close the metadata log, the next start recovers it: %s", error)
            for directory in self.logs.directories:
                if directory.path == self.config.metadata_log_dir.rstrip("/"):
                    # So that it does not get the marker of a clean stop.
                    directory.fail(OSError(str(error)))
        if not self._is_started:
            return
        if self._loading is not None:
            self._loading.abandon(now_ms)
        elif self.is_broker:
            self.logs.shutdown(now_ms, broker_epoch, high_watermarks)
        else:
            self.logs.release()

    def _fatal(self, reason: str) -> None:
        if self.on_fatal is not None:
            self.on_fatal(reason)

    # Following the metadata

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        self._now_ms = max(self._now_ms, self.metadata.now_ms)
        if delta.changed_quotas:
            self.quotas.apply(image.client_quotas, delta.base.client_quotas, list(delta.changed_quotas))
        if self.rights is not None and delta.changed_acls:
            self.rights.authorizer.apply(delta.changed_acls)
        for resource_type, name in delta.changed_configs:
            if resource_type == TOPIC_RESOURCE:
                self._log_configs.pop(name, None)
            elif resource_type == BROKER_RESOURCE:
                self._update_dynamic_config()
        if delta.changed_quotas and self.on_client_quotas_changed is not None:
            self.on_client_quotas_changed()
        if self._is_following:
            self.telemetry.apply(delta, image)
            self.replicas.apply(delta, image, self._now_ms)
            self.txn_markers.on_metadata(image, self._now_ms)
            self.txn_verification.on_metadata(image, self._now_ms)
            self.coordinators.apply(delta, image, self._now_ms)
            self.share_states.on_metadata(image, self._now_ms)
            self.shares.apply(delta, image, self._now_ms)
            self.dead_letters.on_metadata(image, self._now_ms)
        for deleted in delta.deleted_topics.values():
            if deleted.name not in image.topics_by_name:
                self._log_configs.pop(deleted.name, None)
        if self.config.is_controller:
            self.failure_detection.apply(delta, image, self._now_ms)
        if self.is_broker:
            self.lifecycle.on_metadata(delta, image, self._now_ms)

    def _maybe_complete_rights(self) -> None:
        """The active controller knows all ACLs, another one those that it knows to be committed. A broker waits until
        it sees its own registration, which comes after all that was there before it."""
        rights = self.rights
        if rights is None or rights.authorizer.is_loaded:
            return
        metadata = self.metadata
        if metadata.is_active_controller or (not self.is_broker and metadata.is_caught_up):
            self._complete_rights(rights)

    def _complete_rights(self, rights: Authorization) -> None:
        if not rights.authorizer.is_loaded:
            rights.authorizer.complete_load()
            if self.on_rights_loaded is not None:
                self.on_rights_loaded()

    def _update_dynamic_config(self) -> None:
        self.dynamic.update_default(self.image.broker_defaults())
        self.dynamic.update_broker(self.image.config(BROKER_RESOURCE, str(self.node_id)))
        self._log_configs.clear()
        self.cleaner.change_settings(cleaner_settings(self.config))
        cordoned = [path.rstrip("/") for path in self.config.get_list("cordoned.log.dirs")]
        self.lifecycle.cordoned_log_dirs = [
            directory.directory_id
            for directory in self.logs.directories
            if "*" in cordoned or directory.path.rstrip("/") in cordoned
        ]
        self.fetch_bytes_max = self.config.get_int("fetch.max.bytes")
        free_bytes_min = self.config.get_int(FREE_BYTES_MIN_KEY)
        if self.logs.free_bytes_min != free_bytes_min:
            self.logs.free_bytes_min = free_bytes_min
            self.logs.watch_space()
        self.scrub.change_rate(self.config.get_int(SCRUB_RATE_KEY))
        self.coordinators.update_config(self.config)
        self.shares.update_config(self.config)
        self.fetchers.update_config(self.config)
        if self.on_config_changed is not None:
            self.on_config_changed()

    def _on_directory_failed(self, directory: LogDirectory) -> None:
        self.replicas.on_directory_failed(directory, self._now_ms)
        if directory.path == self.config.metadata_log_dir.rstrip("/"):
            self._fatal(f"the metadata log directory {directory.path} failed: {directory.failure}")
        elif not self.logs.online_directories():
            self._fatal("all log directories have failed")
        else:
            self.lifecycle.report_offline_directory(directory.directory_id, self._now_ms)

    def _on_metadata_disk_failed(self) -> None:
        """If there are partitions on it too, this node is not to be trusted with them when the disk is back."""
        forget_run(self.disk, self.config.metadata_log_dir.rstrip("/"))

    def _run_schedule(self, now_ms: int) -> int:
        return self._schedule.run(now_ms, self.on_step)

    def _keep_house(self, now_ms: int) -> None:
        self.logs.housekeeping(now_ms, self.replicas.high_watermark_of)
        self.replicas.create_late(now_ms)

    def _retention_wait_ms(self) -> int:
        return HOUSEKEEPING_MS if self.logs.retention.is_over else RETENTION_TURN_MS

    def _continue_retention(self, now_ms: int) -> None:
        self.logs.retention.go_on(now_ms, self.replicas.high_watermark_of)

    def _check_in_sync_replicas(self, now_ms: int) -> None:
        self.isr_changes.check(self.replicas.all(), now_ms)

    def _checkpoint_high_watermarks(self, now_ms: int) -> None:
        self.logs.rounds.begin_high_watermarks(self.logs.logs.values(), self.replicas.high_watermark_of)

    def log_config_of(self, topic: str) -> LogConfig:
        """The settings of a topic's logs, shared by its partitions until one of them changes."""
        found = self._log_configs.get(topic)
        if found is None:
            found = log_config_for(self.image.config(TOPIC_RESOURCE, topic), self.config)
            if topic in self.image.topics_by_name:
                self._log_configs[topic] = found
        return found

    def topics_with_log_configs(self) -> set[str]:
        """Those whose settings are kept: what is kept must not outlive its topic."""
        return set(self._log_configs)

    # What the APIs ask

    def new_session_id(self) -> int:
        return 1 + self._rng.randrange(SESSION_ID_MAX - 1)

    def any_live_broker(self) -> int:
        """Where clients send what only the controller can do: any broker forwards it."""
        live = self.image.active_brokers()
        if not live:
            return -1
        return self.node_id if self.node_id in live else live[0]

    def leader_of(self, topic: str, index: int) -> tuple[int, int]:
        found = self.image.topics_by_name.get(topic)
        partition = None if found is None else found.partitions.get(index)
        return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)

    def endpoint_of(self, broker_id: int, listener: str) -> tuple[int, str, int, str | None] | None:
        broker = self.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.end_points.get(listener)
        if broker is None or endpoint is None:
            return None
        return broker_id, endpoint.host, endpoint.port, broker.rack

    def supported_features(self) -> dict[str, tuple[int, int]]:
        return {name: (levels.low, levels.high) for name, levels in SUPPORTED_FEATURES.items()}

    def finalized_features(self) -> dict[str, int]:
        return self.metadata.finalized_features()

    def features_epoch(self) -> int:
        """The offset of the metadata these features were read at."""
        return max(0, self.image.offset)

    def controller_endpoints(self, listener: str) -> list[tuple[int, str, int]]:
        found = []
        for controller in self.image.controllers.values():
            endpoint = controller.end_points.get(listener)
            if endpoint is not None:
                found.append((controller.controller_id, endpoint.host, endpoint.port))
        return found

    def bound_port(self, listener: str, port: int) -> None:
        """Tells which port a listener really has, when it was given as 0."""
        self._bound_ports[listener] = port
        self.metadata.endpoints.ports[listener] = port
