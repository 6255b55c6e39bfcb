"""What joins a simulated client to a host; and a link: frames in order, with delay, until it is cut.

A TCP stream neither loses nor repeats nor reorders inside one connection, so a link does not either. What can happen
is that it breaks: then a prefix of what the client had sent still arrives, and everything on its way back is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.sim.kernel.host import Host
    from moldau.sim.kernel.world import World

CLIENT_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
OUTER_LISTENER = "EXTERNAL"
"""Advertised with an address that only outsiders can use: from where other nodes are it is refused."""


class Wire:
    """A connection as the host at its end sees it."""

    def __init__(self, name: str, listener: str = CLIENT_LISTENER) -> None:
        self.name = name
        self.listener = listener

    def send_to_client(self, frame: bytes) -> None:
        raise NotImplementedError

    def close_after_sending(self) -> None:
        """The host closes its end in good order: what it sent still arrives."""
        raise NotImplementedError

    def cut(self, reason: str) -> None:
        """The host drops the connection, or dies."""
        raise NotImplementedError


class Link(Wire):
    def __init__(
        self,
        world: World,
        name: str,
        host: Host,
        on_frame: Callable[[bytes], None],
        on_close: Callable[[], None],
    ) -> None:
        super().__init__(name)
        self.world = world
        self.host = host
        self.open = True
        self._life = host.lives
        self._on_frame = on_frame
        self._on_close = on_close
        self._rng = world.derived_rng(f"link {name}")
        self._arrival_at_host_ms = 0
        self._arrival_at_client_ms = 0
        self._on_the_way = 0
        self._may_still_arrive = 0
        self._slow = self._rng.random() < 0.1

    def send_to_host(self, frame: bytes) -> None:
        if not self.open:
            return
        self._arrival_at_host_ms = max(self._arrival_at_host_ms, self.world.now_ms + self._delay_ms())
        self._on_the_way += 1
        self.world.schedule(self._arrival_at_host_ms - self.world.now_ms, lambda: self._arrive_at_host(frame))

    def send_to_client(self, frame: bytes) -> None:
        if not self.open:
            return
        self._arrival_at_client_ms = max(self._arrival_at_client_ms, self.world.now_ms + self._delay_ms())
        self.world.schedule(self._arrival_at_client_ms - self.world.now_ms, lambda: self._arrive_at_client(frame))

    def cut(self, reason: str) -> None:
        """Breaks the connection for both sides; some requests on their way may still arrive."""
        if not self.open:
            return
        self.open = False
        self._may_still_arrive = self._rng.randint(0, self._on_the_way)
        self.world.note(f"link {self.name} closed: {reason}")
        if self._may_still_arrive == 0:
            self.host.forget(self)
        self.world.schedule(self._delay_ms(), self._on_close)

    def close_after_sending(self) -> None:
        """The host closes its end in good order: what it sent still arrives."""
        delay_ms = max(0, self._arrival_at_client_ms - self.world.now_ms)
        self.world.schedule(delay_ms, lambda: self.cut("the host closed it"))

    def _delay_ms(self) -> int:
        if self._rng.random() < 0.02:
            return self._rng.randint(20, 200)
        return self._rng.randint(1, 20) if self._slow else self._rng.randint(0, 2)

    def _arrive_at_host(self, frame: bytes) -> None:
        self._on_the_way -= 1
        if self.host.lives != self._life:
            self.cut("the process at the other end is another one")
        elif self.open:
            self.host.receive(self, frame)
        elif self._may_still_arrive > 0:
            self._may_still_arrive -= 1
            self.host.receive(self, frame)
            if self._may_still_arrive == 0:
                self.host.forget(self)

    def _arrive_at_client(self, frame: bytes) -> None:
        if self.open:
            self._on_frame(frame)
