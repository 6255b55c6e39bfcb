"""A cluster in which nothing fails: clocks are wrong, controllers are stopped for a while, disks are slow or stuck.

Brokers and controllers are processes of their own, often with one controller alone, as in a small installation. Every
broker lives and heartbeats all the time, whatever its own disk or that of somebody else does, so none is ever fenced;
and every record is young, so none is ever deleted.
"""

from __future__ import annotations

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.sim.cluster.checks import node_of
from moldau.sim.cluster.faults import ClusterFaults
from moldau.sim.cluster.world import FIRST_CONTROLLER_ID, ClusterWorld
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.slow_disks import SlowDisks
from moldau.sim.kernel.world import Violation
from moldau.sim.node.program import NodeProgram

PAUSES_MS = (300, 1000, 5000, 14_000)
SESSIONS_MS = (1500, 4000)
DEFAULT_MILLISECONDS = 20_000


class ClockWorld(ClusterWorld):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.faults = StoppedControllers(self)
        self.slow_disks = SlowDisks(self.world, self._disks)
        self._unfenced: set[int] = set()
        self._newest_offset = -1

    def _choose_shape(self) -> None:
        super()._choose_shape()
        self.broker_ids = [1, 2, 3]
        count = self.rng.choice((1, 1, 3))
        self.controller_ids = list(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + count))
        self.is_combined = False
        session_ms = self.rng.choice(SESSIONS_MS)
        self.common_settings |= {
            "broker.session.timeout.ms": str(session_ms),
            "broker.heartbeat.interval.ms": str(session_ms // 4),
            "log.retention.check.interval.ms": "1000",
        }

    def begins_whole(self) -> bool:
        return True

    def _disks(self) -> dict[str, SimDisk]:
        return {str(host.host_id): host.disk for host in self.hosts.values()}

    def leave_out_slowness(self) -> None:
        """No slow disks: as this world was before there were any."""
        self.slow_disks.leave_out()

    def _build(self, host: Host, config: object) -> NodeProgram:
        program = super()._build(host, config)  # type: ignore[arg-type]
        assert isinstance(program, NodeProgram)
        program.node.metadata.add_listener(self._check_nobody_is_fenced)
        return program

    def _check_nobody_is_fenced(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if image.offset <= self._newest_offset:
            return  # somebody else was told of it before
        self._newest_offset = image.offset
        for broker_id, broker in delta.changed_brokers.items():
            if broker is not None and not broker.fenced:
                self._unfenced.add(broker_id)
            elif broker_id in self._unfenced and not self.finished:
                raise Violation(f"a broker that lives and heartbeats is not fenced: {broker_id} at {image.offset}")


class StoppedControllers(ClusterFaults):
    """SIGSTOP for controllers, the active one as a rule; brokers are left alone."""

    setting: ClockWorld

    def start(self) -> None:
        self.setting.slow_disks.start()
        self.world.schedule(self.rng.randint(300, 1500), self._strike)

    def end(self) -> None:
        self.setting.slow_disks.end()
        super().end()

    def _strike(self) -> None:
        if self.over:
            return
        pause_ms = self.rng.choice(PAUSES_MS)
        self.world.schedule(pause_ms + self.rng.randint(500, 4000), self._strike)
        running = [self.setting.hosts[controller] for controller in self.setting.controller_ids]
        self._act("pause", lambda host: self._stop(host, pause_ms), self._choose_host(running))

    def _stop(self, host: Host, pause_ms: int) -> None:
        host.pause()
        self.world.schedule(pause_ms, host.resume)


class SlowSegmentsWorld(ClockWorld):
    """Three nodes that are both broker and controller. What is slow or stuck are their segments and never what they
    write for the quorum, so that nobody is fenced and no other controller is elected."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.faults = NoFaults(self)
        self.slow_disks.spares_metadata = {str(broker_id) for broker_id in self.broker_ids}

    def _choose_shape(self) -> None:
        super()._choose_shape()
        self.controller_ids = self.broker_ids
        self.is_combined = True
        # Much is flushed, so that much is under way on a stuck disk.
        self.common_settings["log.flush.interval.messages"] = "1"

    def _wait_for_a_beginning(self) -> None:
        super()._wait_for_a_beginning()
        self._epoch = self._quorum_epoch()

    def _quorum_epoch(self) -> int:
        return max(node.metadata.raft.epoch for host in self.hosts.values() if (node := node_of(host)) is not None)

    def _heal(self) -> None:
        if self._quorum_epoch() != self._epoch:
            raise Violation(f"no controller is elected because of slow segments: epoch {self._epoch} is over")
        super()._heal()


class NoFaults(StoppedControllers):
    """Nobody is stopped."""

    def _strike(self) -> None:
        return
