"""SIGINT and SIGTERM are heard between two steps of a loop, never in the middle of what the client is doing.

An exception out of a signal handler may come between any two lines: between taking what was said of records and sending
it, for one, and then those records are delivered again. So the first signal sets a flag and interrupts whatever waits;
whoever sends a second one does not want to wait, and gets the exception.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """`with Stopping() as stop:` and a loop that ends when stop.requested; outside of the main thread it hears nothing.

    interrupt: what is to be called at the first signal, so that nothing waits any longer; it must be quick and take no
    lock. It may be set later, when there is something to interrupt.
    """

    def __init__(self, interrupt: Callable[[], object] | None = None) -> None:
        self.interrupt = interrupt
        self._number = 0
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    @property
    def requested(self) -> bool:
        """Somebody wants the command to end."""
        return self._number != 0

    @property
    def exit_code(self) -> int:
        """As shells have it: 0 if nobody asked, 130 after SIGINT, 143 after SIGTERM."""
        return 128 + self._number if self._number else 0

    def raise_requested(self) -> None:
        """What the signal would have raised at once, for a caller that is done with everything."""
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number:
            raise SystemExit(self.exit_code)

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                # A shell's background job ignores Ctrl-C, and goes on doing so.
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        again = self.requested
        self._number = number
        if again:
            self.raise_requested()
        if self.interrupt is not None:
            self.interrupt()
