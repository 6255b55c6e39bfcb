"""The heartbeat thread: keeps a member alive while the user works on records and does not call poll()."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from moldau.client.group.gate import Gate

logger = logging.getLogger("moldau.client")

# How long the thread sleeps and waits at most, so that it notices what the user's thread changed.
TURN_MS = 200


class HeartbeatThread:
    """Drives the group when nobody else does: whoever is inside the gate drives it."""

    def __init__(
        self,
        gate: Gate,
        drive: Callable[[int], None],
        in_flight: Callable[[], bool],
        until_due_ms: Callable[[], int],
        name: str,
    ) -> None:
        """drive(timeout_ms) moves the network and the group; until_due_ms() is how long nothing is to be sent."""
        self._gate = gate
        self._drive = drive
        self._in_flight = in_flight
        self._until_due_ms = until_due_ms
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """To be called outside of the gate."""
        self._stop.set()
        self._gate.wake()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        wait_ms = TURN_MS
        while not self._stop.wait(wait_ms / 1000):
            wait_ms = TURN_MS
            if self._gate.try_enter():
                try:
                    wait_ms = self._turn()
                except Exception:
                    # The user's thread will meet the same trouble and can tell the user.
                    logger.exception("Unexpected error in the heartbeat thread; it continues.")
                finally:
                    self._gate.__exit__()

    def _turn(self) -> int:
        """Drives as long as something is on its way and nobody wants in; how long to sleep then."""
        while self._in_flight() or self._until_due_ms() <= 0:
            if self._gate.wanted or self._stop.is_set():
                return 1
            self._drive(TURN_MS)
        return max(1, min(TURN_MS, self._until_due_ms()))
