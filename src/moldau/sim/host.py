"""One simulated machine: a disk that stays, and a program that runs on it, dies and is started again.

The program is the code under test behind four calls (`Program`); `node_program.py` puts a node there. Whatever it does
runs inside `turn`, which is where a crash inside a disk operation comes out, and after which the program is polled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.sim.disk import SimDisk, SimulatedCrash
from moldau.sim.network import Link

if TYPE_CHECKING:
    from moldau.sim.world import Event, World

NEVER_MS = 1 << 60
Answer = Callable[[bytes | None], None]


class BadFrame(Exception):
    """The program refuses the frame: its connection is closed."""


class Halted(Exception):
    """The program ends itself, because it cannot go on safely (a failed disk, say)."""


class Program:
    """What runs on a host. One object is one life of the process."""

    def start(self, now_ms: int) -> None:
        raise NotImplementedError

    def poll(self, now_ms: int) -> int:
        """Does what is due; returns when to call again."""
        raise NotImplementedError

    def stop(self, now_ms: int) -> None:
        """A clean shutdown."""
        raise NotImplementedError

    def open_connection(self, name: str) -> object:
        """The program's own state for one connection."""
        raise NotImplementedError

    def handle(self, connection: object, frame: bytes, now_ms: int, answer: Answer) -> None:
        """Calls `answer` once, now or in a later turn; with None when nothing is to be sent. May raise BadFrame."""
        raise NotImplementedError


class Slot:
    """The place of one reply in the order of its connection."""

    __slots__ = ("done", "payload")

    def __init__(self) -> None:
        self.done = False
        self.payload: bytes | None = None


class ServerSide:
    """The host's end of one link: replies leave in the order of their requests."""

    def __init__(self, link: Link, state: object) -> None:
        self.link = link
        self.state = state
        self.slots: list[Slot] = []

    def answerer(self) -> Answer:
        slot = Slot()
        self.slots.append(slot)

        def answer(payload: bytes | None) -> None:
            if slot.done:
                raise AssertionError("a request was answered twice")
            slot.done = True
            slot.payload = payload
            self._send_ready()

        return answer

    def _send_ready(self) -> None:
        while self.slots and self.slots[0].done:
            payload = self.slots.pop(0).payload
            if payload is not None:
                self.link.send_to_client(payload)


class Host:
    def __init__(self, world: World, host_id: int, build: Callable[[Host], Program]) -> None:
        self.world = world
        self.host_id = host_id
        self.rng = world.derived_rng(f"host {host_id}")
        self.disk = SimDisk(self.rng.getrandbits(32), self._schedule_sync)
        self.program: Program | None = None
        self.lives = 0
        self.on_death: Callable[[str], None] | None = None
        self._build = build
        self._sides: dict[Link, ServerSide] = {}
        self._poll_event: Event | None = None
        self._power_goes_too = False
        world.hosts[host_id] = self

    @property
    def running(self) -> bool:
        return self.program is not None

    # Life and death

    def boot(self) -> bool:
        """Starts a new process on whatever the disk holds; False when it died while starting."""
        self.lives += 1
        self.world.note(f"host {self.host_id} boots (life {self.lives})")
        self.program = self._build(self)
        program = self.program
        self.turn(lambda: program.start(self.world.now_ms))
        return self.program is program

    def stop(self) -> None:
        """A clean shutdown, as by SIGTERM."""
        program = self.program
        if program is None:
            return
        self.turn(lambda: program.stop(self.world.now_ms), poll=False)
        if self.program is program:
            self._end("stopped cleanly")

    def kill(self) -> None:
        """kill -9 between two events."""
        if self.program is not None:
            self._end("killed")

    def lose_power(self) -> None:
        if self.program is not None:
            self._power_goes_too = True
            self._end("power loss")

    def plan_crash(self, changes: int, *, power: bool) -> None:
        """The process dies (with the machine's power, if asked for) inside the n-th disk change from now."""
        self.disk.crash_after(changes)
        self._power_goes_too = power

    def turn(self, action: Callable[[], None], *, poll: bool = True) -> None:
        """Runs code of the program; polls it afterwards."""
        program = self.program
        if program is None:
            return
        try:
            action()
            if poll and self.program is program:
                self._schedule_poll(program.poll(self.world.now_ms))
        except SimulatedCrash:
            self._end("power loss in a disk operation" if self._power_goes_too else "killed in a disk operation")
        except Halted as halt:
            self._end(f"halted: {halt}")

    def _end(self, how: str) -> None:
        self.world.note(f"host {self.host_id} ends: {how}")
        self.program = None
        if self._poll_event is not None:
            self._poll_event.cancelled = True
            self._poll_event = None
        links = list(self._sides)
        self._sides.clear()
        for link in links:
            link.cut("the host died")
        if self._power_goes_too:
            self._power_goes_too = False
            self.disk.power_loss()
        else:
            self.disk.process_crash()
        if self.on_death is not None:
            self.on_death(how)

    def _schedule_poll(self, deadline_ms: int) -> None:
        if self._poll_event is not None:
            self._poll_event.cancelled = True
            self._poll_event = None
        if deadline_ms < NEVER_MS:
            # At least a millisecond ahead: a program that is due at once is polled in the next turn of the clock.
            delay_ms = max(1, deadline_ms - self.world.now_ms)
            self._poll_event = self.world.schedule(delay_ms, lambda: self.turn(lambda: None))

    def _schedule_sync(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.schedule(delay_ms, lambda: self.turn(action))

    # The network

    def receive(self, link: Link, frame: bytes) -> None:
        """A frame arrives from a client."""
        if self.program is None:
            link.cut("nobody listens")
            return
        self.turn(lambda: self._handle(link, frame))

    def forget(self, link: Link) -> None:
        self._sides.pop(link, None)

    def _handle(self, link: Link, frame: bytes) -> None:
        program = self.program
        if program is None:
            return
        side = self._sides.get(link)
        if side is None:
            side = ServerSide(link, program.open_connection(link.name))
            self._sides[link] = side
        try:
            program.handle(side.state, frame, self.world.now_ms, side.answerer())
        except BadFrame as bad:
            link.cut(f"bad frame: {bad}")
