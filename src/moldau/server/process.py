"""The broker process: event loop, listeners, the node's timers, signals, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import random
import resource
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator

from moldau.api.dispatch import Dispatcher
from moldau.config.broker_config import BrokerConfig
from moldau.config.listeners import EVERY_ADDRESS
from moldau.config.own_keys import (
    METRICS_LISTENER_KEY,
    METRICS_NAMES_KEY,
    TELEMETRY_ENDPOINT_KEY,
    TELEMETRY_KEY,
    split_address,
)
from moldau.metrics.recent_values import RecentValues
from moldau.net.framing import Scratch
from moldau.net.handshakes import HandshakeThreads
from moldau.net.listener import Listener, ListenerLimits
from moldau.net.listener_group import ListenerGroup
from moldau.net.meter import TimeMeter
from moldau.net.outbound import OutboundTls, SocketOutbox
from moldau.net.outbound_login import OutboundLogin
from moldau.net.request_times import RequestTimer
from moldau.net.turns import CLOSE, DISK, TIMERS, Turns
from moldau.node.node import Node
from moldau.node.outbox import Outbox
from moldau.records.clocks import NEVER_MS
from moldau.security.sasl_settings import OwnCredentials, controller_credentials, inter_broker_credentials
from moldau.server.certificates import Certificates
from moldau.server.client_list import client_list
from moldau.server.clock import Clock
from moldau.server.compaction_processes import CompactionProcesses
from moldau.server.connection_limits import ConnectionLimits, make_quotas
from moldau.server.logins import Logins, client_maker
from moldau.server.metrics.collect import Sources, collect
from moldau.server.metrics.metric import Metric
from moldau.server.metrics.page import MetricsPage
from moldau.server.otlp_export import OtlpExport
from moldau.server.posix_disk import DEFAULT_OPEN_FILES_MAX, PosixDisk
from moldau.server.recovery_processes import RecoveryProcesses
from moldau.server.sd_notify import SystemdNotifier
from moldau.storage.log_manager import CannotStart
from moldau.storage.moldau_properties import write_moldau_properties

log = logging.getLogger("moldau.server")

WAITING_TOLD_S = 5.0
IDLE_SWEEP_S = 1.0
# A node gives up waiting before that; this is for one whose timers do not come any more.
SHUTDOWN_S_MAX = 40.0
PARENT_VARIABLE = "MOLDAU_STOP_AT_END_OF_STDIN"
DESCRIPTORS_WANTED = 1 << 20
DESCRIPTORS_SPARE = 64


class StartFailed(Exception):
    """The node cannot start; the message says why and what to do."""


class CannotListen(StartFailed):
    """An address of `listeners` cannot be had; the message says which and why."""


class Pump:
    """Calls `node.poll` when the node's next deadline comes."""

    def __init__(
        self,
        node: Node,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_failed: Callable[[Exception], None],
        turns: Turns | None = None,
    ) -> None:
        self._node = node
        self._turns = turns if turns is not None else Turns()
        self._clock = clock
        self._loop = loop
        self._on_failed = on_failed
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms = NEVER_MS
        self.stopped = False
        node.set_wake_up(self.wake_at)
        node.on_step = self._turns.step

    def run(self) -> None:
        self._timer = None
        self._due_ms = NEVER_MS
        if self.stopped:
            return
        self._turns.begin_steps()
        try:
            deadline_ms = self._node.poll(self._clock())
        except Exception as error:
            # A node whose timers stand still would look alive and do nothing.
            self.stop()
            self._on_failed(error)
        else:
            self.wake_at(deadline_ms)
            self._turns.end_steps(TIMERS)

    def wake_at(self, deadline_ms: int) -> None:
        if deadline_ms >= self._due_ms or self.stopped:
            return
        # Read before the deadline is a new one: up to here nothing was late that was not due.
        now_ms = self._clock()
        self._due_ms = self._clock.steady.due_ms = deadline_ms
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0.0, min((deadline_ms - now_ms) / 1000.0, 3600.0))
        self._timer = self._loop.call_later(delay_s, self.run)

    def stop(self) -> None:
        self.stopped = True
        if self._timer is not None:
            self._timer.cancel()


class ServerProcess:
    """One node on sockets and files."""

    def __init__(
        self,
        config: BrokerConfig,
        on_ready: Callable[[ServerProcess], None],
        certificates: Certificates | None = None,
    ) -> None:
        self.config = config
        self._certificates = certificates if certificates is not None else Certificates(config)
        self._on_ready = on_ready
        self.clock = Clock()
        self.listeners: list[Listener] = []
        self.turns = Turns()
        # What limits connections counts those of the broker and those of the controller apart.
        self._broker_listeners = ListenerGroup(make_quotas(config), self.turns)
        self._controller_listeners = ListenerGroup(make_quotas(config), self.turns)
        self._groups = (self._broker_listeners, self._controller_listeners)
        spelling = config.get_str(METRICS_NAMES_KEY)
        self.metrics_page = MetricsPage(self._metrics, self._not_ready, self.turns, spelling, self._connected_clients)
        self._otlp_export: OtlpExport | None = None
        self._sources: Sources | None = None
        self._flush_times: RecentValues | None = None
        self._started_s = time.monotonic()
        self._is_serving = False
        self._is_stopping = False
        self._systemd = SystemdNotifier(os.environ)
        self._fatal: str | None = None
        self._hurry = False
        self._finished = asyncio.Event()
        self._logins: Logins | None = None
        self._descriptors_max = 0
        self._open_files_max = 0

    def _metrics(self) -> Iterator[Metric | None]:
        sources = self._sources
        if sources is None:
            outboxes = (self._outbox, *self._secured_outboxes)
            sources = self._sources = Sources(
                self.node,
                turns=self.turns,
                listener_groups=self._groups,
                request_stats=self._dispatcher.stats,
                outboxes=[outbox.traffic for outbox in outboxes],
                flush_times=self._flush_times,
                exported=None if self._otlp_export is None else self._otlp_export.counts,
                started_s=self._started_s,
            )
        sources.is_stopping = self._is_stopping
        return collect(sources, self.clock(), time.monotonic())

    def _connected_clients(self) -> Iterator[str]:
        return client_list(self.node.node_id, self._groups, self.node.telemetry, self.clock())

    def _not_ready(self) -> str:
        """Why clients cannot be served; empty when they can."""
        if not self._is_serving:
            return f"node {self.node.node_id} is {'stopping' if self._is_stopping else 'starting'}"
        if self.node.is_broker and not self.node.lifecycle.is_unfenced:
            return f"broker {self.node.node_id} is fenced"
        return ""

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT; a second one stops it without waiting for the other nodes."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, stop)
        if os.environ.get(PARENT_VARIABLE):
            watch_parent(loop, stop)
        loop.set_exception_handler(lambda _, context: self._on_broken(context.get("exception"), stop))
        self._descriptors_max = raise_descriptor_limit()
        # Loading makes many objects that stay: looking through them again and again would double the time.
        gc.disable()
        self._open_files_max = min(DEFAULT_OPEN_FILES_MAX, self._descriptors_max // 4)
        disk = PosixDisk(lambda function: post(loop, self.turns, function), self._open_files_max)
        self._flush_times = disk.flush_times
        compaction = CompactionProcesses(disk, self.turns)
        recovery = RecoveryProcesses(disk, lambda function: post(loop, self.turns, function))
        self._handshake_threads = HandshakeThreads(loop, self.turns)
        # However many strangers come: handshakes between nodes do not wait behind theirs.
        self._node_handshake_threads = HandshakeThreads(loop, self.turns)
        self._outbox = SocketOutbox(loop, self.clock, f"moldau-{self.config.node_id}", self.turns)
        self._secured_outboxes: list[SocketOutbox] = []
        self.node = Node(
            self.config,
            disk,
            random.Random(),
            uuid.uuid4().bytes,
            compaction_workers=compaction,
            recovery_workers=recovery,
            outbox=self._outbox_to(self.config.inter_broker_listener_name, inter_broker_credentials(self.config)),
            controller_outbox=self._outbox_to(
                next(iter(self.config.controller_listener_names), ""), controller_credentials(self.config)
            ),
            probe_outbox=self._outbox,
            wall=self.clock.wall,
        )
        if self._certificates.are_there:
            self.node.dynamic.check = self._certificates.check
            self._certificates.watch()
        self._connection_limits = ConnectionLimits(self._groups, self._outbox.resolver)
        self.node.on_config_changed = self._apply_limits
        self.node.on_client_quotas_changed = self._apply_client_quotas
        self.node.resolve_host = self._resolve_host
        self.node.on_fatal = lambda reason: self._on_fatal(reason, stop)
        pump = Pump(self.node, self.clock, loop, lambda error: self._on_broken(error, stop), self.turns)
        try:
            self._bind_listeners()
            self._start_node()
            self._start_otlp_export()
            await self._start_metrics_page()
            self._start_controller_listeners()
            pump.run()
            if await self._wait_until_ready(stop):
                self._start_listeners([endpoint.name for endpoint in self.config.broker_listeners()])
                gc.collect()
                gc.freeze()
                gc.enable()
                self._is_serving = True
                self._on_ready(self)
                self._systemd.ready(f"node {self.node.node_id} is ready")
                await self._serve(stop)
            await self._stop(pump, compaction)
        finally:
            pump.stop()
            recovery.close()
            await compaction.close()
            for listener in self.listeners:
                listener.close()
            self.metrics_page.close()
            if self._otlp_export is not None:
                self._otlp_export.close()
            for outbox in (self._outbox, *self._secured_outboxes):
                outbox.close()
            self._handshake_threads.close()
            self._node_handshake_threads.close()
            self._certificates.close()
            if self._logins is not None:
                self._logins.close()
            disk.close()
            self._systemd.close()
        if self._fatal is not None:
            raise StartFailed(self._fatal)

    def _outbox_to(self, listener: str, credentials: OwnCredentials | None) -> Outbox:
        """For connections to that listener of other nodes: with TLS where it speaks TLS, with a login where it wants
        to know who asks."""
        client = self._certificates.client(listener)
        if client is None and credentials is None:
            return self._outbox
        tls = OutboundTls(lambda: client.context, self._node_handshake_threads) if client is not None else None
        outbox = SocketOutbox(
            self._outbox.loop,
            self.clock,
            self._outbox.client_id,
            self.turns,
            tls,
            self._outbox.resolver,
        )
        if credentials is not None:
            outbox.login = OutboundLogin(outbox.loop, client_maker(credentials))
        self._secured_outboxes.append(outbox)
        return outbox

    def _start_node(self) -> None:
        try:
            self.node.start(self.clock())
            if self._logins is not None:
                self._logins.on_node_started()
            directories = dict.fromkeys([*self.config.log_dirs, self.config.metadata_log_dir])
            write_moldau_properties(self.node.disk, directories, self.node.incarnation_id)
        except CannotStart:
            raise
        except Exception as error:
            raise StartFailed(self._cannot_start_from_logs(error)) from error

    def _cannot_start_from_logs(self, error: BaseException) -> str:
        log.debug("the start failed", exc_info=error)
        return (
            f"the node cannot start from what is in {', '.join(self.config.log_dirs)}: "
            f"{type(error).__name__}: {error} (MOLDAU_LOG_LEVEL=DEBUG shows where)"
        )

    def _start_otlp_export(self) -> None:
        url = self.config.get_str(TELEMETRY_ENDPOINT_KEY)
        if not url or not self.node.is_broker:
            return
        if not self.config.get_bool(TELEMETRY_KEY):
            log.warning("%s has no effect while %s is false", TELEMETRY_ENDPOINT_KEY, TELEMETRY_KEY)
            return
        self._otlp_export = OtlpExport(url)
        self.node.telemetry.export = self._otlp_export.add

    async def _start_metrics_page(self) -> None:
        address = self.config.get_str(METRICS_LISTENER_KEY)
        if not address:
            return
        host, port = split_address(address)
        try:
            await self.metrics_page.start(host, port)
        except OSError as error:
            raise StartFailed(f"cannot serve metrics on {address}: {error}. Set {METRICS_LISTENER_KEY}.") from error
        log.info("metrics are on http://%s:%d/metrics", host or "localhost", self.metrics_page.port)

    def _on_signal(self, stop: asyncio.Event) -> None:
        if stop.is_set():
            self._hurry = True
            self._finished.set()
        stop.set()

    def _on_fatal(self, reason: str, stop: asyncio.Event) -> None:
        self._fatal = self._fatal or reason
        stop.set()

    def _on_broken(self, error: BaseException | None, stop: asyncio.Event) -> None:
        """Something that must not happen did: going on could do harm, a start from the disk does not."""
        if self.node.loading is not None and error is not None:
            self._on_fatal(self._cannot_start_from_logs(error), stop)
            return
        log.error("stopping the node: unexpected error", exc_info=error)
        self._on_fatal(f"unexpected error: {error!r}", stop)

    def _bind_listeners(self) -> None:
        self.node.metadata.endpoints.host_name = host_name_for(self.config)
        dispatcher = self._dispatcher = Dispatcher(self.node, RequestTimer().begin)
        scratch = Scratch(turns=self.turns, meter=TimeMeter(self.node.quotas))
        limits = self._limits(self.config)
        logins = self._logins = Logins(
            self.node, self.config, self.clock, asyncio.get_running_loop(), dispatcher.handle
        )
        for endpoint in self.config.listeners:
            is_controller = endpoint.name in self.config.controller_listener_names
            listener = Listener(
                endpoint.name,
                endpoint.host,
                endpoint.port,
                is_controller=is_controller,
                handle=dispatcher.handle,
                limits=limits,
                scratch=scratch,
                clock=self.clock,
                group=self._controller_listeners if is_controller else self._broker_listeners,
                tls=self._certificates.server(endpoint.name),
                threads=self._node_handshake_threads if is_controller else self._handshake_threads,
                gate_keeper=logins.keeper_for(endpoint.name),
            )
            self.listeners.append(listener)
            try:
                listener.bind()
            except socket.gaierror as error:
                where = f"{endpoint.host}:{endpoint.port} ({endpoint.name})"
                raise StartFailed(
                    f"cannot listen on {where}: the host name cannot be resolved ({error.strerror}). Name an address of"
                    " this machine, or none for all of them, in `listeners`; what clients are told to use is"
                    " `advertised.listeners`."
                ) from error
            except OSError as error:
                question = " Is another broker running there?" if error.errno == errno.EADDRINUSE else ""
                where = f"{endpoint.host or '*'}:{endpoint.port} ({endpoint.name})"
                raise CannotListen(f"cannot listen on {where}: {error.strerror}.{question}") from error
            self.node.bound_port(endpoint.name, listener.port)
        self._connection_limits.apply_config(self.config)

    def _limits(self, config: BrokerConfig) -> ListenerLimits:
        """What the configuration allows, and only as many connections as leave the disk its descriptors."""
        limits = listener_limits(config)
        limits.descriptors_max = self._descriptors_max - self._open_files_max - DESCRIPTORS_SPARE
        return limits

    def _apply_limits(self) -> None:
        """Dynamic settings changed: new limits hold for what comes from now on."""
        limits = self._limits(self.node.config)
        for listener in self.listeners:
            listener.change_limits(limits)
        self._connection_limits.apply_config(self.node.config)
        self._certificates.apply_config(self.node.config)
        self._apply_client_quotas()

    def _resolve_host(self, host: str, done: Callable[[str, bool], None]) -> None:
        self._outbox.resolver.resolve(host, done, 0, lambda _, found: done(host, bool(found)))

    def _apply_client_quotas(self) -> None:
        self._connection_limits.apply_client_quotas(self.node.image.client_quotas)

    def _start_controller_listeners(self) -> None:
        """Some may have to wait until the authorizer has its ACLs."""
        names = self.config.controller_listener_names
        rights = self.node.rights
        if rights is None or rights.authorizer.is_loaded:
            self._start_listeners(names)
            return
        early = self.config.early_start_listeners
        late = [name for name in names if name not in early]
        self.node.on_rights_loaded = lambda: self._start_listeners(late)
        self._start_listeners([name for name in names if name in early])

    def _start_listeners(self, names: list[str]) -> None:
        for listener in self.listeners:
            if listener.name in names:
                listener.start()

    async def _wait_until_ready(self, stop: asyncio.Event) -> bool:
        """However long it takes: the others may be started much later. Says from time to time what it waits for."""
        ready = asyncio.Event()
        self.node.on_ready = ready.set
        if self.node.is_ready:
            ready.set()
        waits = [asyncio.ensure_future(ready.wait()), asyncio.ensure_future(stop.wait())]
        while not ready.is_set() and not stop.is_set():
            await asyncio.wait(waits, timeout=WAITING_TOLD_S, return_when=asyncio.FIRST_COMPLETED)
            if not ready.is_set() and not stop.is_set():
                reason = self._waiting_for()
                log.warning("node %d is waiting: %s", self.node.node_id, reason)
                self._systemd.waiting(f"waiting: {reason}")
        for wait in waits:
            wait.cancel()
        return ready.is_set() and not stop.is_set()

    def _waiting_for(self) -> str:
        loading = self.node.loading
        if loading is not None:
            return f"{loading.logs_loaded} of {loading.logs_found} logs found so far are open"
        leader_id = self.node.metadata.leader_id
        if leader_id >= 0:
            return f"controller {leader_id} has not let this broker in yet"
        key = "controller.quorum.voters" if self.config.voters else "controller.quorum.bootstrap.servers"
        servers = f"{key}={self.config.values.get(key)}"
        return f"no leader of the metadata quorum is known. Do most of the controllers run? {servers}"

    async def _serve(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), IDLE_SWEEP_S)
            self.turns.run(CLOSE, self._close_idle)
            self._systemd.alive(self.clock() / 1000)

    def _close_idle(self) -> None:
        for listener in self.listeners:
            listener.close_idle()

    async def _stop(self, pump: Pump, compaction: CompactionProcesses) -> None:
        """The others are told before the doors close: partitions get new leaders, and so does the quorum."""
        self._is_serving, self._is_stopping = False, True
        log.info("node %d is stopping", self.node.node_id)
        self._systemd.stopping(self._fatal or f"node {self.node.node_id} gives up its leaderships")
        if self._fatal is None and not self._hurry:
            self.node.begin_shutdown(self.clock(), self._finished.set)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._finished.wait(), SHUTDOWN_S_MAX)
        for listener in self.listeners:
            listener.stop_accepting()
        pump.stop()
        for listener in self.listeners:
            listener.close()
        await compaction.close()  # what they have half written goes with the stop of the node
        self.node.stop(self.clock())
        log.info("node %d has stopped", self.node.node_id)


def watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stops when the process at the other end of the standard input is gone, however it ended."""

    def on_input() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            stop.set()

    loop.add_reader(0, on_input)


def host_name_for(config: BrokerConfig) -> str:
    """What others are told where a listener names no host: this machine's name, as Kafka has it.

    A node without others is found under `localhost`, without a question to a name server.
    """
    endpoints = [*config.advertised_listeners, *config.controller_listeners()]
    if config.is_alone or all(endpoint.host not in EVERY_ADDRESS for endpoint in endpoints):
        return "localhost"
    name = socket.getfqdn()
    return socket.gethostname() if name.startswith("localhost") else name


def listener_limits(config: BrokerConfig) -> ListenerLimits:
    return ListenerLimits(
        frame_bytes_max=config.get_int("socket.request.max.bytes"),
        idle_ms_max=config.get_int("connections.max.idle.ms"),
        backlog=config.get_int("socket.listen.backlog.size"),
        send_buffer_bytes=config.get_int("socket.send.buffer.bytes"),
        receive_buffer_bytes=config.get_int("socket.receive.buffer.bytes"),
    )


def post(loop: asyncio.AbstractEventLoop, turns: Turns, function: Callable[[], None]) -> None:
    """Runs a function in the node's own turn; called from the threads that sync files."""
    loop.call_soon_threadsafe(turns.run, DISK, function)


def raise_descriptor_limit() -> int:
    """As many open files as the system allows: segments and connections both need them. Returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS says "unlimited" and then does not take that for an answer.
    for wanted in (hard, DESCRIPTORS_WANTED, 10240):
        if soft != resource.RLIM_INFINITY and (wanted == resource.RLIM_INFINITY or wanted > soft):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                soft = wanted
    return DESCRIPTORS_WANTED if soft == resource.RLIM_INFINITY else soft
