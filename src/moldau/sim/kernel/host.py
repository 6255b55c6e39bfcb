"""One simulated machine: a disk that stays, and a program that runs on it, dies and is started again.

The program is the code under test behind a few calls (`Program`); `sim/node/program.py` puts a node there. Whatever it
does runs inside `turn`, which is where a crash inside a disk operation comes out. As in the real process it is polled
when the deadline it named has come, and not after every request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.records.clocks import NEVER_MS, SteadyClock, WallClock
from moldau.sim.kernel.disk import SimDisk, SimulatedCrash
from moldau.sim.kernel.machine_clock import MachineClock
from moldau.sim.kernel.network import CLIENT_LISTENER, Wire

if TYPE_CHECKING:
    from moldau.sim.kernel.world import Event, World

STAND_STILL_MS_MAX = 30_000


class BadFrame(Exception):
    """The program refuses the frame: its connection is closed."""


class Halted(Exception):
    """The program ends itself, because it cannot go on safely (a failed disk, say)."""


class Slot:
    """The place of one reply in the order of its connection."""

    def __init__(self, side: ServerSide) -> None:
        self.done = False
        self.payload: bytes | None = None
        self.close = False
        self.mutes = False
        self._side = side

    def respond(self, payload: bytes | None, *, close: bool = False, mute_ms: int = 0) -> None:
        """Completes the reply: with None nothing is sent; `close` closes the connection after it. Nothing that comes
        from the client is looked at for `mute_ms` from now on, and not before the reply was sent."""
        if self.done:
            raise AssertionError("a request was answered twice")
        self.done = True
        self.payload = payload
        self.close = close
        self.mutes = mute_ms > 0
        if self.mutes:
            self._side.mute(mute_ms)
        self._side.send_ready()


class Program:
    """What runs on a host. One object is one life of the process."""

    def start(self, now_ms: int) -> None:
        raise NotImplementedError

    def poll(self, now_ms: int) -> int:
        """Does what is due; returns when to call again. Sooner than that: `Host.wake_at`."""
        raise NotImplementedError

    def stop(self, now_ms: int) -> None:
        """A clean shutdown."""
        raise NotImplementedError

    def accepts(self, listener: str) -> bool:
        """Whether the process listens there by now."""
        return True

    def serves(self) -> bool:
        """Whether somebody would notice that it waits: not any more a process that starts."""
        return False

    def open_connection(self, name: str, listener: str = CLIENT_LISTENER) -> object:
        """The program's own state for one connection."""
        raise NotImplementedError

    def close_connection(self, connection: object) -> None:
        """The connection is gone: what waits for it need not be answered."""

    def check_alive(self) -> None:
        """Raises Halted when the program must not go on; asked after every turn."""

    def ends_with(self, error: Exception) -> bool:
        """Whether the process just ends when this comes out of a turn, or the error is one of the code."""
        return False

    def begin_stop(self, now_ms: int, finished: Callable[[], None]) -> None:
        """What comes before `stop`; `finished` is called when the process may go."""
        finished()

    def handle(self, connection: object, frame: bytes, now_ms: int, slot: Slot) -> None:
        """Responds into the slot, now or in a later turn. May raise BadFrame."""
        raise NotImplementedError


class ServerSide:
    """The host's end of one link: replies leave in the order of their requests, and what comes while it is muted waits,
    the end of the stream as well, as it would in a socket from which nobody reads."""

    def __init__(self, link: Wire, state: object, unmute_later: Callable[[ServerSide, int], None]) -> None:
        self.link = link
        self.state = state
        self.is_muted = False
        self.timers = 0
        self.waiting: deque[bytes | None] = deque()
        self._unmute_later = unmute_later
        self._slots: list[Slot] = []

    def new_slot(self) -> Slot:
        slot = Slot(self)
        self._slots.append(slot)
        return slot

    def mute(self, mute_ms: int) -> None:
        self.is_muted = True
        self.timers += 1
        self._unmute_later(self, mute_ms)

    @property
    def may_unmute(self) -> bool:
        return self.timers == 0 and not any(slot.mutes for slot in self._slots)

    def send_ready(self) -> None:
        sent_throttled = False
        while self._slots and self._slots[0].done:
            slot = self._slots.pop(0)
            sent_throttled = sent_throttled or slot.mutes
            if slot.payload is not None:
                self.link.send_to_client(slot.payload)
            if slot.close:
                self.link.close_after_sending()
                return
        if sent_throttled and self.timers == 0:
            self._unmute_later(self, 0)  # the timer was over before the response could leave


class Host:
    def __init__(self, world: World, host_id: int, build: Callable[[Host], Program]) -> None:
        self.world = world
        self.host_id = host_id
        self.rng = world.derived_rng(f"host {host_id}")
        self.disk = SimDisk(self.rng.getrandbits(32), self._schedule_sync)
        self.disk.memory.choose_chance()
        self.program: Program | None = None
        self.last_program: Program | None = None
        self.lives = 0
        self.paused = False
        self.resumed_ms = 0
        self.powered = True
        self.clock = MachineClock(world)
        self.steady = SteadyClock(0, world.now_ms)
        self.wall = WallClock()
        """Those of the process that runs: they begin with it."""
        self._now_ms = world.now_ms
        self.on_death: Callable[[str], None] | None = None
        self.on_turn: Callable[[Host], None] | None = None
        """Called after every turn of a program that lives on."""
        self._backlog: list[Callable[[], None]] = []
        self._build = build
        self._sides: dict[Wire, ServerSide] = {}
        self._poll_event: Event | None = None
        self._poll_due_ms = NEVER_MS
        self._power_goes_too = False
        self._is_stopping = False
        world.hosts[host_id] = self

    @property
    def running(self) -> bool:
        return self.program is not None

    @property
    def now_ms(self) -> int:
        """What the process takes for now, after a look at the machine's clocks; one that is stopped does not look."""
        if not self.paused:
            monotonic_ms = self.clock.monotonic_ms()
            self._now_ms = self.steady.read(monotonic_ms)
            self.wall.note(self._now_ms, monotonic_ms, self.clock.wall_ms())
        return self._now_ms

    def _begin_clocks(self) -> None:
        """A process cannot know that the clock is wrong when it starts, so here it is right then."""
        self.clock.set_right()
        self.steady = SteadyClock(self.clock.monotonic_ms(), self.clock.wall_ms())
        self.wall = WallClock()

    # Life and death

    def boot(self) -> bool:
        """Starts a new process on whatever the disk holds; False when it died while starting."""
        self.lives += 1
        self.powered = True
        self.world.note(f"host {self.host_id} boots (life {self.lives})")
        self._begin_clocks()
        self._is_stopping = False
        self.program = self._build(self)
        program = self.program
        self.turn(lambda: program.start(self.now_ms))
        self.turn(self._poll)
        return self.program is program

    def stop(self) -> None:
        """A clean shutdown, as by SIGTERM."""
        program = self.program
        if program is None:
            return
        self._is_stopping = True
        self.turn(lambda: program.stop(self.now_ms))
        if self.program is program:
            self._end("stopped cleanly")

    def shut_down(self) -> None:
        """A clean shutdown that hands over first what others can go on with; ends when the program says so."""
        program = self.program
        if program is None:
            return

        def finished() -> None:
            self.world.schedule(0, lambda: self.stop() if self.program is program else None)

        self.world.note(f"host {self.host_id} begins to shut down")
        self.turn(lambda: program.begin_stop(self.now_ms, finished))

    def pause(self) -> None:
        """SIGSTOP: nothing in the process goes on, time does."""
        if self.program is not None and not self.paused:
            self.world.note(f"host {self.host_id} is stopped")
            self.paused = True

    def resume(self) -> None:
        if not self.paused:
            return
        self.world.note(f"host {self.host_id} goes on")
        self.paused = False
        self.resumed_ms = self.world.now_ms
        backlog, self._backlog = self._backlog, []
        for action in backlog:
            self.turn(action)  # one that waits for the disk puts the rest off again

    def turn_of(self, life: int, action: Callable[[], None]) -> None:
        """A turn that only the process of that life takes."""
        if self.lives == life:
            self.turn(action)

    def kill(self) -> None:
        """kill -9 between two events."""
        if self.program is not None:
            self._end("killed")

    def lose_power(self) -> None:
        if self.program is not None:
            self._end("power loss", power=True)

    def plan_crash(self, changes: int, *, power: bool) -> None:
        """The process dies (with the machine's power, if asked for) inside the n-th disk change from now."""
        self.disk.crash_after(changes)
        self._power_goes_too = power

    def turn(self, action: Callable[[], None]) -> None:
        """Runs code of the program; the one place where a crash inside it ends up."""
        if self.program is None:
            return
        if self.paused:
            self._backlog.append(action)
            return
        program, watch = self.program, self.disk.watch
        watch.begin(is_serving=program.serves() and not self._is_stopping)
        try:
            try:
                action()
            finally:
                watch.end()
            program.check_alive()
        except SimulatedCrash:
            power = self._power_goes_too
            self._end("power loss in a disk operation" if power else "killed in a disk operation", power=power)
        except Halted as halt:
            self._end(f"halted: {halt}")
        except Exception as error:
            if not program.ends_with(error):
                raise
            self._end(f"halted: {error}")
        else:
            self._stand_still(self.disk.take_blocked_ms())
            if self.on_turn is not None:
                self.on_turn(self)

    def _stand_still(self, blocked_ms: int) -> None:
        """The turn waited for the disk, and so does everything else in the process."""
        if blocked_ms <= 0 or self.paused or self.program is None:
            return
        self.world.note(f"host {self.host_id} waits {blocked_ms} ms for its disk")
        self.paused = True
        life = self.lives
        self.world.schedule(min(blocked_ms, STAND_STILL_MS_MAX), lambda: self.resume() if self.lives == life else None)

    def _end(self, how: str, *, power: bool = False) -> None:
        self.world.note(f"host {self.host_id} ends: {how}")
        self.last_program = self.program
        self.program = None
        self.paused = False
        self.powered = not power
        self._backlog.clear()
        self._cancel_poll()
        links = list(self._sides)
        self._sides.clear()
        for link in links:
            link.cut("the host died")
        # A crash that was planned and not reached is called off: the process ended before it.
        self._power_goes_too = False
        if power:
            self.disk.power_loss()
        else:
            self.disk.process_crash()
        if self.on_death is not None:
            self.on_death(how)

    def wake_at(self, deadline_ms: int) -> None:
        """The program wants to be polled no later than this."""
        if deadline_ms >= self._poll_due_ms or self.program is None:
            return
        self._cancel_poll()
        self._poll_due_ms = self.steady.due_ms = deadline_ms
        # At least a millisecond ahead: a program that is due at once is polled in the next turn of the clock.
        self._poll_event = self.world.schedule(max(1, deadline_ms - self.now_ms), lambda: self.turn(self._poll))

    def poll_now(self) -> None:
        """The clock was changed: whatever it says, nothing more may be due than before."""
        self.turn(self._poll)

    def _poll(self) -> None:
        self._cancel_poll()
        if self.program is not None:
            self.wake_at(self.program.poll(self.now_ms))

    def _cancel_poll(self) -> None:
        self._poll_due_ms = NEVER_MS
        if self._poll_event is not None:
            self._poll_event.cancelled = True
            self._poll_event = None

    def _schedule_sync(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.schedule(delay_ms, lambda: self.turn(action))

    # The network

    def receive(self, link: Wire, frame: bytes) -> None:
        """A frame arrives from a client."""
        if self.program is None:
            link.cut("nobody listens")
            return
        self.turn(lambda: self._handle(link, frame))

    def forget(self, link: Wire) -> None:
        """The end of the stream arrives."""
        side = self._sides.get(link)
        if side is None or self.program is None:
            self._sides.pop(link, None)
        elif side.is_muted:
            side.waiting.append(None)
        else:
            self._end_side(side)

    def _end_side(self, side: ServerSide) -> None:
        program = self.program
        if self._sides.pop(side.link, None) is not None and program is not None:
            self.turn(lambda: program.close_connection(side.state))

    @property
    def muted_connections(self) -> int:
        return sum(side.is_muted for side in self._sides.values())

    def _unmute_later(self, side: ServerSide, delay_ms: int) -> None:
        life = self.lives
        is_timer = delay_ms > 0

        def over() -> None:
            if is_timer:
                side.timers -= 1
            self._unmute(side)

        self.world.schedule(delay_ms, lambda: self.turn_of(life, over))

    def _unmute(self, side: ServerSide) -> None:
        if self._sides.get(side.link) is not side or not side.is_muted or not side.may_unmute:
            return
        side.is_muted = False
        while side.waiting and not side.is_muted:
            frame = side.waiting.popleft()
            if frame is None:
                self._end_side(side)
            else:
                self._handle_frame(side, frame)

    def _handle(self, link: Wire, frame: bytes) -> None:
        program = self.program
        if program is None:
            return
        side = self._sides.get(link)
        if side is None:
            side = ServerSide(link, program.open_connection(link.name, link.listener), self._unmute_later)
            self._sides[link] = side
        if side.is_muted:
            side.waiting.append(frame)
        else:
            self._handle_frame(side, frame)

    def _handle_frame(self, side: ServerSide, frame: bytes) -> None:
        program, link = self.program, side.link
        if program is None:
            return
        try:
            program.handle(side.state, frame, self.now_ms, side.new_slot())
        except BadFrame as bad:
            link.cut(f"bad frame: {bad}")
