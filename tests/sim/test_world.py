"""The world runs events in order of time, links keep their frames in order, hosts die and come back."""

from __future__ import annotations

from moldau.records.clocks import NEVER_MS
from moldau.sim.kernel.host import BadFrame, Host, Program, Slot
from moldau.sim.kernel.network import CLIENT_LISTENER, Link
from moldau.sim.kernel.world import World


class Echo(Program):
    """Answers `later` in a poll 50 ms after it came, everything else at once; keeps a journal on disk."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.parked: list[tuple[int, bytes, Slot]] = []

    def start(self, now_ms: int) -> None:
        self.file = self.host.disk.open("journal", create=True)
        self.host.disk.sync_directory("")

    def poll(self, now_ms: int) -> int:
        due = [entry for entry in self.parked if entry[0] <= now_ms]
        self.parked = [entry for entry in self.parked if entry[0] > now_ms]
        for _, frame, slot in due:
            slot.respond(frame)
        return min((entry[0] for entry in self.parked), default=NEVER_MS)

    def stop(self, now_ms: int) -> None:
        self.file.sync()

    def open_connection(self, name: str, listener: str = CLIENT_LISTENER) -> object:
        return name

    def handle(self, connection: object, frame: bytes, now_ms: int, slot: Slot) -> None:
        if frame == b"bad":
            raise BadFrame("bad")
        self.file.append([frame])
        if frame == b"silent":
            slot.respond(None)
        elif frame.startswith(b"later"):
            self.parked.append((now_ms + 50, frame, slot))
            self.host.wake_at(now_ms + 50)
        else:
            slot.respond(frame)


def run(seed: int) -> tuple[World, list[bytes]]:
    world = World(seed)
    host = Host(world, 1, Echo)
    host.boot()
    received: list[bytes] = []
    link = Link(world, "client", host, received.append, lambda: received.append(b"closed"))
    for frame in (b"later", b"1", b"silent", b"2"):
        link.send_to_host(frame)
    world.run_for(1000)
    link.send_to_host(b"bad")
    link.send_to_host(b"3")
    world.run_for(1000)
    return world, received


def test_replies_leave_in_the_order_of_their_requests_and_a_bad_frame_closes() -> None:
    for seed in range(20):
        _, received = run(seed)
        assert received == [b"later", b"1", b"2", b"closed"]


def test_the_same_seed_gives_the_same_trace() -> None:
    assert run(3)[0].trace == run(3)[0].trace


def test_a_killed_host_keeps_its_files_and_a_new_process_finds_them() -> None:
    world = World(1)
    host = Host(world, 1, Echo)
    host.boot()
    received: list[bytes] = []
    link = Link(world, "client", host, received.append, lambda: received.append(b"closed"))
    link.send_to_host(b"a")
    world.run_for(500)
    host.kill()
    world.run_for(500)
    assert received == [b"a", b"closed"]
    assert not host.running
    assert host.boot()
    assert host.disk.read_file("journal") == b"a"


def test_a_planned_crash_comes_out_of_the_disk_operation() -> None:
    world = World(1)
    host = Host(world, 1, Echo)
    host.boot()
    deaths: list[str] = []
    host.on_death = deaths.append
    host.plan_crash(2, power=False)
    link = Link(world, "client", host, lambda frame: None, lambda: None)
    link.send_to_host(b"aa")
    link.send_to_host(b"bb")
    world.run_for(500)
    assert deaths == ["killed in a disk operation"]
    assert host.disk.read_file("journal").startswith(b"aa")


def test_events_run_in_order_of_time_and_cancelled_ones_do_not() -> None:
    world = World(0)
    seen: list[int] = []
    world.schedule(30, lambda: seen.append(3))
    world.schedule(10, lambda: seen.append(1))
    world.schedule(10, lambda: seen.append(2))
    world.schedule(20, lambda: seen.append(9)).cancelled = True
    assert world.run_until(lambda: len(seen) == 3, 1000)
    assert seen == [1, 2, 3]
    assert not world.run_until(lambda: False, 1000)
