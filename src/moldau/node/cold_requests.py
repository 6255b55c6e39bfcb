"""What one request reads from the medium before it can be answered: cold parts of indexes and logs, by threads.

While a request is served `Disk.refuses_cold` is set, so that whatever it reads is in memory or raises ColdRead. It then
waits here for that one read and is tried again from its beginning: reading changes nothing, and the world may have
changed meanwhile. What was read is kept with the request, in case that memory is short and it is gone again.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.storage.disk import BroughtPiece, ColdRead, Disk

# A request that is still not through then may wait for the medium in its turn, so that it ends in any case.
TRIES_MAX = 64
PIECES_MAX = 16


class ColdWait:
    """The cold reads of one request; `go_on` is called when the next try may come."""

    def __init__(self, disk: Disk, go_on: Callable[[], None]) -> None:
        self._disk = disk
        self._go_on = go_on
        self._pieces: list[BroughtPiece] = []
        self._path = ""
        self._position = 0
        self._changes = 0
        self.tries = 0
        self.is_reading = False
        self.abandoned = False

    def begin_try(self) -> None:
        """From here to `end_try` nothing waits for the medium."""
        self._disk.refuses_cold = self.tries < TRIES_MAX
        self._disk.brought = self._pieces

    def end_try(self) -> None:
        self._disk.refuses_cold = False
        self._disk.brought = ()

    def bring(self, cold: ColdRead) -> None:
        self.tries += 1
        self.is_reading = True
        self._path = cold.file.path
        self._position = cold.position
        self._changes = self._disk.changes_seen
        self._disk.read_later(cold.file, cold.position, cold.size, self._on_read)

    def _on_read(self, outcome: bytes | OSError) -> None:
        self.is_reading = False
        if isinstance(outcome, OSError):
            # A file that is gone was deleted, and the next try sees that; else the directory is told, and says so.
            if not isinstance(outcome, FileNotFoundError) and self._disk.on_read_failed is not None:
                self._disk.on_read_failed(self._path, outcome)
        else:
            self._pieces.append(BroughtPiece(self._path, self._position, outcome, self._changes))
            del self._pieces[:-PIECES_MAX]
        if not self.abandoned:
            self._go_on()

    def forget(self) -> None:
        """The request has what it waited for; what it needs next is another matter."""
        self.tries = 0
        self._pieces.clear()

    def abandon(self) -> None:
        """Nobody wants the response any more."""
        self.abandoned = True
