"""Cuts a byte stream into frames; the only place that knows the four-byte size.

Small reads land in one scratch buffer that all connections share; what was received is copied out once as immutable
`bytes`, and frames are index ranges of it. A frame too large for the scratch buffer gets a buffer of its own that grows
with what really arrives, so a size field alone costs no memory. Where one large frame follows another, the size is read
alone and the frame after it in one piece, which is then not copied at all.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.net.meter import TimeMeter
from moldau.net.turns import Turns
from moldau.quota.client_quotas import ClientQuotas

SCRATCH_BYTES = 128 * 1024
LARGE_BUFFER_KEPT_BYTES = 2 * 1024 * 1024
LARGE_BUFFER_FIRST_BYTES = 256 * 1024
PIECE_BYTES_MAX = 4 * 1024 * 1024

Frame = tuple[bytes, int, int]


class FrameError(Exception):
    """The stream cannot be a Kafka client's: negative or oversized frame."""


class Scratch:
    """What all connections of one event loop share: the receive buffer, who has something to do at a turn's end, and
    the watch over turns and over the time that each connection takes."""

    def __init__(self, size: int = SCRATCH_BYTES, turns: Turns | None = None, meter: TimeMeter | None = None) -> None:
        self.view = memoryview(bytearray(size))
        self.turns = turns if turns is not None else Turns()
        self.meter = meter if meter is not None else TimeMeter(ClientQuotas())
        self.at_end_of_turn: list[Callable[[], None]] | None = None
        """None while no connection handles frames."""


class FrameReader:
    """Frames of one connection. Receive `piece_wanted` bytes and call `received_piece`, or if none are wanted receive
    into `window()` and call `received(count)`."""

    def __init__(self, scratch: Scratch, frame_bytes_max: int) -> None:
        self._scratch = scratch
        self._frame_bytes_max = frame_bytes_max
        self._limit_name = "socket.request.max.bytes"
        self._tail = b""
        self._large: bytearray | None = None
        self._large_size = 0
        self._large_filled = 0
        self._expects_large = False

    def limit(self, frame_bytes_max: int, name: str) -> None:
        """Another limit from now on, by the setting of that name."""
        self._frame_bytes_max = frame_bytes_max
        self._limit_name = name

    @property
    def wants_more(self) -> bool:
        """Whether to read again at once: inside a large frame, or when a size was read alone."""
        return self._large_size > 0 or len(self._tail) == 4

    @property
    def piece_wanted(self) -> int:
        """So many bytes may be given to `received_piece` as they are; 0: they go into the window."""
        if self._large_size == 0 or self._large_filled > 0:
            return 0
        return min(self._large_size, PIECE_BYTES_MAX)

    def received_piece(self, piece: bytes) -> list[Frame]:
        """Takes the beginning of a large frame; all of it is a frame without a copy."""
        if len(piece) == self._large_size:
            self._large_size = 0
            self._expects_large = True
            return [(piece, 0, len(piece))]
        self._begin_large(self._large_size, piece, 0)
        return []

    def window(self) -> memoryview:
        """Where the next bytes go. Valid until the next call of `received`."""
        if self._large_size == 0:
            return self._scratch.view[:4] if self._expects_large else self._scratch.view
        large = self._large
        if large is None:
            large = self._large = bytearray(min(self._large_size, LARGE_BUFFER_FIRST_BYTES))
        elif self._large_filled == len(large):
            large = self._grow(large)
        end = min(len(large), self._large_size, self._large_filled + PIECE_BYTES_MAX)
        return memoryview(large)[self._large_filled : end]

    def received(self, count: int) -> list[Frame]:
        """Takes `count` bytes from the window; returns the frames that are complete now."""
        if self._large_size > 0:
            return self._received_large(count)
        data = bytes(self._scratch.view[:count])
        self._expects_large = False
        if self._tail:
            data = self._tail + data
            self._tail = b""
        return self._split(data)

    def _split(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        position, end = 0, len(data)
        while end - position >= 4:
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            if size < 0 or size > self._frame_bytes_max:
                raise FrameError(f"frame of {size} bytes; {self._limit_name} is {self._frame_bytes_max}")
            stop = position + 4 + size
            if stop > end:
                if size > len(self._scratch.view):
                    self._begin_large(size, data, position + 4)
                    return frames
                break
            frames.append((data, position + 4, stop))
            position = stop
        if position < end:
            self._tail = data[position:]
        return frames

    def _begin_large(self, size: int, data: bytes, start: int) -> None:
        have = len(data) - start
        self._large_size = size
        self._large_filled = have
        if have == 0:
            return
        if self._large is None:
            self._large = bytearray(max(have, min(size, LARGE_BUFFER_FIRST_BYTES)))
        elif len(self._large) < have:
            self._large = bytearray(have)
        self._large[:have] = memoryview(data)[start:]

    def _grow(self, large: bytearray) -> bytearray:
        bigger = bytearray(min(self._large_size, 2 * len(large)))
        bigger[: self._large_filled] = memoryview(large)[: self._large_filled]
        self._large = bigger
        return bigger

    def _received_large(self, count: int) -> list[Frame]:
        self._large_filled += count
        if self._large_filled < self._large_size:
            return []
        large = self._large
        assert large is not None
        frame = bytes(memoryview(large)[: self._large_size])
        if len(large) > LARGE_BUFFER_KEPT_BYTES:
            self._large = None
        self._large_size = self._large_filled = 0
        self._expects_large = True
        return [(frame, 0, len(frame))]
