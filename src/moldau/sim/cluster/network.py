"""The network of a simulated cluster: connections between machines, and everything that can go wrong with them.

Machines are numbers: nodes have their node id, every client has a machine of its own. Inside a connection frames keep
their order. A way from one machine to another may be blocked in either direction: then frames wait, as TCP repeats
them, and arrive after the way is open again. A connection that one side gave up may still have frames on their way: a
prefix of them arrives, sometimes seconds later, when newer requests have long been answered on a newer connection.
A process that is killed has its connections closed by its machine; a machine without power says nothing at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.node.outbox import CLOSED, REFUSED, UNREACHABLE
from moldau.sim.kernel.network import Wire

if TYPE_CHECKING:
    from moldau.sim.kernel.host import Host
    from moldau.sim.kernel.world import World

LATE_MS = (300, 4000)
FIRST_CLIENT_MACHINE = 1000


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.derived_rng("network")
        self.late_probability = 0.25
        # Told of every request as it is sent.
        self.on_sent: Callable[[Connection, bytes], None] | None = None
        self._ports: dict[int, tuple[Host, str]] = {}
        self._blocked: set[tuple[int, int]] = set()
        self._slow_ms: dict[tuple[int, int], int] = {}
        self._connections: dict[int, Connection] = {}
        self._next_connection = 0
        self._next_machine = FIRST_CLIENT_MACHINE

    # Who is where

    def listen(self, port: int, host: Host, listener: str) -> None:
        self._ports[port] = (host, listener)

    def at_port(self, port: int) -> tuple[Host, str] | None:
        return self._ports.get(port)

    def new_machine(self) -> int:
        self._next_machine += 1
        return self._next_machine

    def connect(
        self, origin: int, port: int, name: str, on_frame: Callable[[bytes], None], on_close: Callable[[int], None]
    ) -> Connection:
        """A new connection; `on_close` gets a reason of `node.outbox` when it ends without the client's doing."""
        self._next_connection += 1
        number = self._next_connection
        connection = Connection(self, number, origin, port, f"{name}#{number}", on_frame, on_close)
        self._connections[number] = connection
        connection.begin()
        return connection

    def forget(self, connection: Connection) -> None:
        self._connections.pop(connection.number, None)

    # Faults

    def block(self, origin: int, target: int) -> None:
        self._blocked.add((origin, target))

    def unblock_ways(self, ways: list[tuple[int, int]]) -> None:
        self._blocked.difference_update(ways)
        for connection in list(self._connections.values()):
            connection.on_way_open()

    def unblock_all(self) -> None:
        self._blocked.clear()
        self._slow_ms.clear()
        for connection in list(self._connections.values()):
            connection.on_way_open()

    def is_blocked(self, origin: int, target: int) -> bool:
        return (origin, target) in self._blocked

    @property
    def frames_left_behind(self) -> int:
        """Requests of clients on connections that were given up; they may still arrive."""
        return sum(
            connection.frames_on_the_way
            for connection in self._connections.values()
            if connection.origin >= FIRST_CLIENT_MACHINE and connection.is_given_up
        )

    def requests_of_nodes_left_behind(self) -> list[bytes]:
        """What was sent on connections between nodes that were given up; it may still arrive."""
        return [
            frame
            for connection in self._connections.values()
            if connection.origin < FIRST_CLIENT_MACHINE and connection.is_given_up
            for frame in connection.frames_to_host
            if frame is not None
        ]

    def slow_down(self, origin: int, target: int, delay_ms: int) -> None:
        self._slow_ms[origin, target] = delay_ms

    def end_slowness(self) -> None:
        self._slow_ms.clear()

    def break_one(self) -> None:
        """Some connection breaks in the middle of whatever it was used for."""
        numbers = sorted(self._connections)
        if numbers:
            self._connections[self.rng.choice(numbers)].break_()

    def break_all(self, purpose: str) -> None:
        """Something in between forgets all connections that nodes have for this purpose."""
        for connection in list(self._connections.values()):
            if f"-{purpose}->" in connection.name:
                connection.break_()

    def on_host_death(self, host: Host) -> None:
        """The process, or the machine, is gone: with it everything that it had open."""
        for connection in list(self._connections.values()):
            if connection.origin == host.host_id:
                connection.on_origin_died(host.powered)
            elif connection.host is host:
                connection.on_target_died(host.powered)

    def on_host_boot(self, host: Host) -> None:
        for connection in list(self._connections.values()):
            if connection.host is host:
                connection.on_way_open()

    def delay_ms(self, origin: int, target: int) -> int:
        slow = self._slow_ms.get((origin, target), 0)
        if slow:
            return self.rng.randint(slow // 2, slow)
        draw = self.rng.random()
        return self.rng.randint(20, 200) if draw < 0.01 else int(draw * 100) % 3


class Connection(Wire):
    """See the module. The host's end is known to the host by this object."""

    def __init__(
        self,
        network: Network,
        number: int,
        origin: int,
        port: int,
        name: str,
        on_frame: Callable[[bytes], None],
        on_close: Callable[[int], None],
    ) -> None:
        found = network.at_port(port)
        super().__init__(name, found[1] if found is not None else "")
        self.network = network
        self.number = number
        self.origin = origin
        self.port = port
        self.host: Host | None = found[0] if found is not None else None
        self.connected = False
        self._life = -1
        self._client_open = True
        self._host_open = True
        self._on_frame = on_frame
        self._on_close = on_close
        # None is the end of the stream: the other side closed it.
        self._to_host: deque[bytes | None] = deque()
        self._to_client: deque[bytes | None] = deque()
        self._generation = 0
        self._events_to_host = 0
        self._events_to_client = 0
        self._arrival_at_host_ms = 0
        self._arrival_at_client_ms = 0
        self._syn_on_the_way = False

    # The client's end

    def begin(self) -> None:
        host = self.host
        if host is None:
            self.network.world.schedule(1, lambda: self._end_for_client(UNREACHABLE))
            return
        self._send_syn()

    def _send_syn(self) -> None:
        assert self.host is not None
        self._syn_on_the_way = True
        delay_ms = self.network.delay_ms(self.origin, self.host.host_id)
        self.network.world.schedule(delay_ms, self._on_syn)

    def _on_syn(self) -> None:
        host, network = self.host, self.network
        assert host is not None
        self._syn_on_the_way = False
        if not self._client_open:
            network.forget(self)
            return
        way_there, way_back = (self.origin, host.host_id), (host.host_id, self.origin)
        if network.is_blocked(*way_there) or network.is_blocked(*way_back) or not host.powered:
            return  # it is repeated when the way is open; a machine that is off never answers
        delay_ms = network.delay_ms(*way_back)
        program = host.program
        if program is None or not program.accepts(self.listener):
            network.world.schedule(delay_ms, lambda: self._end_for_client(REFUSED))
            return
        self._life = host.lives
        network.world.schedule(delay_ms, self._on_connected)

    def _on_connected(self) -> None:
        if not self._client_open:
            self.network.forget(self)
            return
        self.connected = True
        for _ in self._to_host:
            self._schedule_to_host(0)

    def send(self, frame: bytes) -> None:
        if not self._client_open:
            return
        self._to_host.append(frame)
        if self.network.on_sent is not None:
            self.network.on_sent(self, frame)
        if self.connected:
            self._schedule_to_host(0)

    def close(self) -> None:
        """The client gives the connection up: no callback comes any more, and what was sent may still arrive."""
        if not self._client_open:
            return
        self._client_open = False
        self._leave_the_rest_to_the_network(fin=True)

    def break_(self) -> None:
        """Something in between resets the connection."""
        if not self.connected or not self._client_open:
            return
        self.network.world.note(f"connection {self.name} breaks")
        self._leave_the_rest_to_the_network(fin=True)
        self._end_for_client(CLOSED)

    def on_origin_died(self, powered: bool) -> None:
        """The client was a process of a host that is gone."""
        self._client_open = False
        self._leave_the_rest_to_the_network(fin=powered)

    @property
    def is_given_up(self) -> bool:
        """Nobody waits for its responses any more."""
        return not self._client_open

    @property
    def frames_to_host(self) -> tuple[bytes | None, ...]:
        return tuple(self._to_host)

    @property
    def frames_on_the_way(self) -> int:
        return sum(frame is not None for frame in self._to_host)

    def _leave_the_rest_to_the_network(self, *, fin: bool) -> None:
        """What is on its way arrives up to some point, in its order, maybe much later; then the end of the stream."""
        rng = self.network.rng
        if not self.connected or self.host is None:
            self._to_host.clear()
            self.network.forget(self)
            return
        frames = [frame for frame in self._to_host if frame is not None]
        kept = rng.randint(0, len(frames)) if rng.random() < 0.5 else len(frames)
        self._to_host = deque(frames[:kept])
        late_ms = rng.randint(*LATE_MS) if kept and rng.random() < self.network.late_probability else 0
        if late_ms:
            self.network.world.note(f"connection {self.name}: {kept} frames come late, in {late_ms} ms")
        if fin:
            self._to_host.append(None)
        self._generation += 1
        self._events_to_host = 0
        self._arrival_at_host_ms = self.network.world.now_ms + late_ms
        for _ in self._to_host:
            self._schedule_to_host(late_ms)
        if not self._to_host:
            self.network.forget(self)

    def _end_for_client(self, reason: int) -> None:
        if self._client_open:
            self._client_open = False
            if reason != CLOSED:
                self._to_host.clear()
                self.network.forget(self)
            self._on_close(reason)

    # On the way

    def _schedule_to_host(self, extra_ms: int) -> None:
        assert self.host is not None
        world = self.network.world
        delay_ms = extra_ms + self.network.delay_ms(self.origin, self.host.host_id)
        self._arrival_at_host_ms = max(self._arrival_at_host_ms, world.now_ms + delay_ms)
        self._events_to_host += 1
        generation = self._generation
        world.schedule(self._arrival_at_host_ms - world.now_ms, lambda: self._arrive_at_host(generation))

    def _schedule_to_client(self) -> None:
        assert self.host is not None
        world = self.network.world
        delay_ms = self.network.delay_ms(self.host.host_id, self.origin)
        self._arrival_at_client_ms = max(self._arrival_at_client_ms, world.now_ms + delay_ms)
        self._events_to_client += 1
        world.schedule(self._arrival_at_client_ms - world.now_ms, self._arrive_at_client)

    def on_way_open(self) -> None:
        """A way was opened: what waited for it is sent again. One that was not meant finds its way still closed."""
        if self.host is None:
            return
        if not self.connected:
            if self._client_open and not self._syn_on_the_way and self._life < 0:
                self._send_syn()
            return
        for _ in range(len(self._to_host) - self._events_to_host):
            self._schedule_to_host(self.network.rng.randint(0, 200))
        for _ in range(len(self._to_client) - self._events_to_client):
            self._schedule_to_client()

    def _arrive_at_host(self, generation: int) -> None:
        host = self.host
        assert host is not None
        if generation != self._generation:
            return  # the frames were given another way
        self._events_to_host -= 1
        if not self._to_host or self.network.is_blocked(self.origin, host.host_id):
            return
        if not host.powered:
            return  # it is sent again until somebody is there who says that he knows nothing of it
        frame = self._to_host.popleft()
        if not self._host_open or host.program is None or host.lives != self._life:
            # Nobody knows this connection here: the machine says so.
            self._to_client.clear()
            self._to_client.append(None)
            self._schedule_to_client()
        elif frame is not None:
            host.receive(self, frame)
        else:
            self._host_open = False
            host.forget(self)
        if not self._client_open and not self._to_host:
            self.network.forget(self)

    def _arrive_at_client(self) -> None:
        host = self.host
        assert host is not None
        self._events_to_client -= 1
        if not self._to_client or self.network.is_blocked(host.host_id, self.origin):
            return
        frame = self._to_client.popleft()
        if not self._client_open:
            return
        if frame is None:
            self._to_host.clear()
            self.network.forget(self)
            self._end_for_client(CLOSED)
        else:
            self._on_frame(frame)

    # The host's end

    def send_to_client(self, frame: bytes) -> None:
        if self._host_open:
            self._to_client.append(frame)
            self._schedule_to_client()

    def close_after_sending(self) -> None:
        self._close_host_end()

    def cut(self, reason: str) -> None:
        self._close_host_end()

    def on_target_died(self, powered: bool) -> None:
        """A machine without power says nothing; one whose process died closes its connections."""
        if powered:
            self._close_host_end()
        else:
            self._host_open = False
            self._to_client.clear()

    def _close_host_end(self) -> None:
        if self._host_open and self.connected and self.host is not None:
            self._host_open = False
            if self.host.powered:
                self._to_client.append(None)
                self._schedule_to_client()
        self._host_open = False
