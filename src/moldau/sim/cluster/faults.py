"""What befalls a simulated cluster: a plan of faults that the seed makes up as it goes."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.sim.cluster.checks import DATA, node_of
from moldau.sim.kernel.host import Host
from moldau.storage.checkpoints import Partition
from moldau.storage.killed_broker import DirectoryEnds, decode_ends

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

SHUTDOWN_MS_MAX = 3000


def _is_not_of_a_partition(path: str) -> bool:
    return METADATA_TOPIC in path or path.endswith("meta.properties")


class ClusterFaults:
    def __init__(self, setting: ClusterWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.network = setting.network
        self.rng = setting.world.derived_rng("faults")
        self.counts: dict[str, int] = {}
        self.over = False
        self.pace_ms = self.rng.choice((120, 250, 400, 900))
        self._rolling = False
        self._copies: dict[int, list[tuple[int, dict[Partition, int], dict[str, bytes]]]] = {}
        """Of each broker: in which life a copy was made, where its logs ended, and the files."""
        self._kinds: list[tuple[str, int, Callable[[Host], None]]] = [
            ("kill", 14, self._kill),
            ("power loss", 10, self._lose_power),
            ("crash in a disk operation", 8, self._plan_crash),
            ("pause", 12, self._pause),
            ("isolation", 14, self._isolate),
            ("one-way loss", 10, self._block_one_way),
            ("slow links", 6, self._slow_links),
            ("slow disk", 6, self._slow_disk),
            ("full disk", 3, self._fill_disk),
            ("failing disk", 4, self._fail_disk),
            ("clean restart", 8, self._restart),
            ("rolling restart", 3, self._roll),
        ]
        if setting.breaks_disks:
            self._kinds.append(("broken disk", 6, self._break_disk))
        self._kinds.append(("lost writes", 6, self._lose_writes))
        self._kinds.append(("restored copy", 6, self._restore_copy))
        self._kinds = [kind for kind in self._kinds if not setting.only_faults or kind[0] in setting.only_faults]

    def start(self) -> None:
        self.world.schedule(self.rng.randint(300, 1500), self._strike)
        self.world.schedule(self.rng.randint(100, 500), self._break_connections)
        self.world.schedule(400, self._make_copies)

    def _strike(self) -> None:
        if self.over:
            return
        self.world.schedule(self.rng.randint(self.pace_ms // 4, 2 * self.pace_ms), self._strike)
        kind, action = self._choose()
        running = [host for host in self.setting.hosts.values() if host.running and not host.paused]
        if not running:
            return
        self._act(kind, action, self._choose_host(running))

    def _choose_host(self, running: list[Host]) -> Host:
        """Often one that matters: who leads a partition or the quorum."""
        if self.rng.random() < 0.5:
            leaders = self.setting.leaders()
            chosen = [host for host in running if host.host_id in leaders]
            if chosen:
                return self.rng.choice(chosen)
        return self.rng.choice(running)

    def _choose(self) -> tuple[str, Callable[[Host], None]]:
        total = sum(weight for _, weight, _ in self._kinds)
        draw = self.rng.randrange(total)
        for kind, weight, action in self._kinds:
            draw -= weight
            if draw < 0:
                return kind, action
        raise AssertionError("the weights are wrong")

    def _act(self, kind: str, action: Callable[[Host], None], host: Host) -> None:
        before = len(self.world.trace)
        self.world.note(f"fault: {kind} at {host.host_id}")
        action(host)
        if len(self.world.trace) > before:
            self.counts[kind] = self.counts.get(kind, 0) + 1

    def _break_connections(self) -> None:
        if self.over:
            return
        self.world.schedule(self.rng.randint(50, 800), self._break_connections)
        self.network.break_one()

    def end(self) -> None:
        """No more faults, and everything that still lasts ends now."""
        self.over = True
        self.network.unblock_all()
        for host in self.setting.hosts.values():
            host.disk.clear_faults()
            host.disk.crash_after(0)
            host.disk.end_slowness()
            host.resume()
            if host.disk.is_broken:
                host.lose_power()

    # Processes and machines

    def _kill(self, host: Host) -> None:
        if self.setting.may_be_killed(host):
            host.kill()

    def _lose_power(self, host: Host) -> None:
        if self.setting.may_lose_data(host):
            host.lose_power()

    def _plan_crash(self, host: Host) -> None:
        if self.setting.may_lose_data(host):
            self.plan_crash(host, self.rng.choice((1, 3, 10)))

    def plan_crash(self, host: Host, changes_max: int) -> None:
        """In one of the next changes of its disk the process dies, or the machine; soon, or not at all."""
        host.plan_crash(self.rng.randint(1, changes_max), power=self.rng.random() < 0.4)
        self.setting.note_failing(host)
        life = host.lives

        def call_off() -> None:
            if host.lives <= life + 1:
                host.disk.crash_after(0)
                self.setting.note_failing(host, failing=False)

        self.world.schedule(50, call_off)

    def _pause(self, host: Host) -> None:
        host.pause()
        self.world.schedule(self.rng.choice((100, 500, 2000, 5000)), host.resume)

    def _restart(self, host: Host) -> None:
        life = host.lives
        host.shut_down()
        self.world.schedule(SHUTDOWN_MS_MAX, lambda: host.stop() if host.lives == life else None)

    def _roll(self, host: Host) -> None:
        """All nodes, one after the other, each when the one before is back."""
        if self._rolling:
            return
        self._rolling = True
        left = list(self.setting.hosts.values())

        def next_one() -> None:
            if self.over or not left:
                self._rolling = False
                return
            if self.setting.all_is_well():
                self._restart(left.pop())
            self.world.schedule(500, next_one)

        next_one()

    # The network

    def _isolate(self, host: Host) -> None:
        """A node, or the way between two nodes, is cut off in both directions; clients may still reach it."""
        others = [other.host_id for other in self.setting.hosts.values() if other is not host]
        if self.rng.random() < 0.4:
            others = [self.rng.choice(others)]
        if self.rng.random() < 0.3:
            others += self.setting.client_machines()
        ways = [(host.host_id, other) for other in others] + [(other, host.host_id) for other in others]
        self._block(ways)

    def _block_one_way(self, host: Host) -> None:
        others = [other.host_id for other in self.setting.hosts.values() if other is not host]
        if self.rng.random() < 0.5:
            others = [self.rng.choice(others)]
        if self.rng.random() < 0.5:
            self._block([(host.host_id, other) for other in others])
        else:
            self._block([(other, host.host_id) for other in others])

    def _block(self, ways: list[tuple[int, int]]) -> None:
        self.world.note(f"blocked: {' '.join(f'{a}->{b}' for a, b in ways if a < 1000 and b < 1000)}")
        for way in ways:
            self.network.block(*way)
        duration_ms = self.rng.choice((200, 1000, 3000, 6000))

        def heal() -> None:
            self.world.note(f"open again: {' '.join(f'{a}->{b}' for a, b in ways if a < 1000 and b < 1000)}")
            self.network.unblock_ways(ways)

        self.world.schedule(duration_ms, heal)

    def _slow_links(self, host: Host) -> None:
        delay_ms = self.rng.choice((30, 150, 600))
        for other in self.setting.hosts:
            if other != host.host_id:
                self.network.slow_down(host.host_id, other, delay_ms)
                if self.rng.random() < 0.5:
                    self.network.slow_down(other, host.host_id, delay_ms)
        self.world.schedule(self.rng.choice((500, 3000)), self.network.end_slowness)

    # Disks

    def _slow_disk(self, host: Host) -> None:
        """Somewhat, very, or stuck: no call that waits for the medium comes back for half a minute."""
        host.disk.slow_down(self.rng.choice(((20, 100), (200, 1500), (5000, 5000), (30_000, 30_000))))
        self.world.schedule(self.rng.choice((500, 3000, 8000)), host.disk.end_slowness)

    def _fill_disk(self, host: Host) -> None:
        if self.setting.may_lose_data(host):
            host.disk.capacity_bytes = host.disk.used_bytes() + self.rng.randint(0, 5000)
            self._repair_later(host)

    def _fail_disk(self, host: Host) -> None:
        if self.setting.may_lose_data(host):
            operation = self.rng.choice(("append", "sync", "read", "open", "rename", "sync_directory", "truncate"))
            fragment = self.rng.choice((".log", ".index", "steady", "__cluster_metadata", "checkpoint", ""))
            host.disk.fail(operation, fragment, errno.EIO, self.rng.randint(1, 3), self.rng.randint(0, 5))
            self.world.note(f"the next {operation} of *{fragment}* fails at {host.host_id}")
            self._repair_later(host)

    def _break_disk(self, host: Host) -> None:
        """Whatever the process does there fails; when it is gone the disk works again, as far as it was synced."""
        if not self.setting.may_lose_data(host):
            return
        life = host.lives
        host.disk.break_down()
        self.setting.note_failing(host)
        # One that has nothing to write does not notice.
        self.world.schedule(2000, lambda: host.lose_power() if host.lives == life and not self.over else None)

    def _lose_writes(self, host: Host) -> None:
        """The system gives up writing what it was handed and tells nobody; before the process asks, it is killed. Some
        time later memory does not show it any more."""
        if not self.setting.may_lose_data(host):
            return
        life = host.lives
        host.disk.fail_write_back(".log")
        self.setting.note_failing(host)
        self.world.schedule(self.rng.randint(0, 50), lambda: host.kill() if host.lives == life else None)
        self.world.schedule(2000, lambda: host.disk.evict() if host.lives == life + 1 else None)

    def _make_copies(self) -> None:
        """Somebody copies the files of running brokers from time to time."""
        if self.over:
            return
        self.world.schedule(400, self._make_copies)
        for host in self.setting.hosts.values():
            node = node_of(host)
            if node is not None and host.host_id in self.setting.broker_ids:
                ends = {partition: log.log_end_offset for partition, log in node.logs.logs.items()}
                copies = self._copies.setdefault(host.host_id, [])
                copies.append((host.lives, ends, host.disk.copy_files()))
                del copies[:-4]

    def _restore_copy(self, host: Host) -> None:
        """The broker is killed and its partitions are replaced by a copy that was made while it ran. What it wrote in
        the last second before its end is not in its note: a copy that lacks nothing else cannot be told from it. A
        partition that came after the copy stays as it is."""
        noted = decode_ends(host.disk.recall_details(DATA) or DirectoryEnds().encoded())
        for life, ends, copy in self._copies.get(host.host_id, ()):
            is_older = any(end > ends.get(partition, end) for partition, (end, _) in noted.items())
            if life == host.lives and is_older and self.setting.may_lose_data(host):
                self.world.note(f"an older copy is put in place at {host.host_id}")
                self.setting.loses_at_death.add(host.host_id)
                host.kill()
                host.disk.restore_files(copy, _is_not_of_a_partition)
                if self.rng.random() < 0.5:
                    # So that it may be the first to come back.
                    for other in self.setting.hosts.values():
                        self._kill(other)
                return

    def _repair_later(self, host: Host) -> None:
        """A failed disk is repaired by restarting the node, as an operator would."""
        life = host.lives
        self.setting.note_failing(host)

        def end() -> None:
            if host.lives == life and host.running and not self.over:
                host.disk.clear_faults()
                host.kill()

        self.world.schedule(self.rng.randint(100, 2500), end)
