"""One client connection: receives frames, hands them to the dispatcher, sends the replies in the order of the requests.

The connection is bounded in both directions: it stops reading while too many replies wait for their turn or too many
bytes wait for the client, so a client that does not read costs a socket and nothing else. Record data leaves with
`sendfile` straight from the segment file.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable

from moldau.net.framing import Frame, FrameError, FrameReader, Scratch
from moldau.net.log_limit import LogLimit
from moldau.net.low_water import LargeReads
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.protocol.primitives import DecodeError
from moldau.protocol.records_data import FileRecords
from moldau.storage.disk import File

REPLIES_WAITING_MAX = 256
UNSENT_BYTES_MAX = 1 << 20
COALESCE_BYTES_MAX = 64 * 1024
SENDFILE_BYTES_MAX = 1 << 24
# Less than this is read and sent together with what stands around it: one packet and one wake-up instead of three.
READ_BYTES_MAX = 32 * 1024
FRAMES_PER_TURN_MAX = 16

# More data follows at once: lets the head of a fetch reply share a packet with its records (Linux only).
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_HAS_SENDFILE = hasattr(os, "sendfile") and (sys.platform.startswith("linux") or sys.platform == "darwin")

log = logging.getLogger("moldau.net")

# What a dispatcher does with a frame: context, data, start, end, now_ms.
Handle = Callable[[ClientContext, bytes, int, int, int], Reply]
log.addFilter(LogLimit())


class Connection:
    """See the module. `close` may be called at any time, more than once."""

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        handle: Handle,
        context: ClientContext,
        scratch: Scratch,
        frame_bytes_max: int,
        clock: Callable[[], int],
        on_close: Callable[[Connection], None],
    ) -> None:
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._handle = handle
        self.context = context
        self._scratch = scratch
        self._frames = FrameReader(scratch, frame_bytes_max)
        self._large_reads = LargeReads()
        self._ready_frames: deque[Frame] = deque()
        self._clock = clock
        self._on_close = on_close
        self._replies: deque[Reply] = deque()
        self._unsent: deque[bytes | memoryview | FileRecords] = deque()
        self._unsent_bytes = 0
        self._file_sent = 0
        self._reading = False
        self._writing = False
        self._handling = False
        self._advances_at_end = False
        self._close_when_sent = False
        self.closed = False
        self.last_active_ms = clock()
        self._resume_reading()

    # Receiving

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _on_readable(self) -> None:
        now_ms = self._clock()
        self.last_active_ms = now_ms
        frames = self._frames
        try:
            while True:
                wanted = frames.piece_wanted
                if wanted > 0 and not self._close_when_sent:
                    there = self._large_reads.receive(self._sock, wanted)
                    if there is None:
                        return
                    piece = there
                    count = len(piece)
                else:
                    count = self._sock.recv_into(frames.window())
                if count == 0:
                    self.close()
                    return
                if self._close_when_sent:
                    # Read and thrown away: closing with unread bytes would reset the connection under our answer.
                    return
                complete = frames.received_piece(piece) if wanted > 0 else frames.received(count)
                if complete:
                    self._handle_frames(complete, now_ms)
                    return
                if not frames.wants_more:
                    return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
        except FrameError as error:
            log.warning("closing connection from %s: %s", self.context.peer, error)
            self.close()

    def _handle_frames(self, frames: list[Frame], now_ms: int) -> None:
        """What the frames finish on other connections leaves at the end, so that several replies leave together."""
        scratch = self._scratch
        if scratch.at_end_of_turn is not None:
            self._handle_own_frames(frames, now_ms)
            return
        finished: list[Callable[[], None]] = []
        scratch.at_end_of_turn = finished
        try:
            self._handle_own_frames(frames, now_ms)
        finally:
            scratch.at_end_of_turn = None
            for advance in finished:
                advance()

    def _handle_own_frames(self, frames: list[Frame], now_ms: int) -> None:
        ready, replies = self._ready_frames, self._replies
        ready.extend(frames)
        self._handling = True
        try:
            for _ in range(min(len(ready), FRAMES_PER_TURN_MAX)):
                if len(replies) >= REPLIES_WAITING_MAX or self._unsent_bytes > UNSENT_BYTES_MAX:
                    break
                frame = ready.popleft()
                reply = self._handle(self.context, frame[0], frame[1], frame[2], now_ms)
                if reply.done and not replies:
                    self._queue(reply)
                else:
                    reply.on_done = self._on_reply_done
                    replies.append(reply)
                if self.closed or self._close_when_sent:
                    break
        except DecodeError as error:
            log.warning("closing connection from %s: %s", self.context.peer, error)
            self._close_when_sent = True
        except Exception:
            log.exception("closing connection from %s after an unexpected error", self.context.peer)
            self._close_when_sent = True
        finally:
            self._handling = False
        self._advance()

    # Replying

    def _on_reply_done(self, reply: Reply) -> None:
        if self._handling or self.closed or not self._replies or self._replies[0] is not reply:
            return
        finished = self._scratch.at_end_of_turn
        if finished is None:
            self._advance()
        elif not self._advances_at_end:
            self._advances_at_end = True
            finished.append(self._advance_at_end)

    def _advance_at_end(self) -> None:
        self._advances_at_end = False
        if not self.closed:
            self._advance()

    def _queue(self, reply: Reply) -> None:
        parts = reply.parts
        if parts is not None:
            for part in parts:
                if isinstance(part, FileRecords) and part.size <= READ_BYTES_MAX:
                    part = read_part(part)
                self._unsent.append(part)
                if isinstance(part, bytes):
                    self._unsent_bytes += len(part)
        if reply.close_connection:
            self._close_when_sent = True

    def _advance(self) -> None:
        """Moves finished replies to the socket, then takes up what had to wait for them."""
        replies = self._replies
        while replies and replies[0].done:
            self._queue(replies.popleft())
        if self._unsent and not self._writing:
            self._send()
        if self.closed:
            return
        if self._close_when_sent:
            # Nothing that came after the request that ends the connection is looked at.
            self._ready_frames.clear()
            if not self._unsent:
                self.close()
            else:
                self._resume_reading()
            return
        blocked = len(replies) >= REPLIES_WAITING_MAX or self._unsent_bytes > UNSENT_BYTES_MAX
        if blocked:
            self._pause_reading()
        elif self._ready_frames:
            # A later turn, so that a connection with many frames does not keep the others waiting.
            self._pause_reading()
            self._loop.call_soon(self._handle_postponed)
        else:
            self._resume_reading()

    def _handle_postponed(self) -> None:
        if self.closed or not self._ready_frames:
            return
        self._handle_frames([], self._clock())

    def _send(self) -> None:
        unsent = self._unsent
        try:
            while unsent:
                part = unsent[0]
                if isinstance(part, FileRecords):
                    self._send_file(part)
                else:
                    self._send_bytes()
        except (BlockingIOError, InterruptedError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._on_writable)
            return
        except OSError as error:
            if not isinstance(error, ConnectionError):
                log.warning("closing connection from %s: cannot send: %s", self.context.peer, error)
            self.close()
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def _send_bytes(self) -> None:
        unsent = self._unsent
        part = unsent.popleft()
        assert not isinstance(part, FileRecords)
        if unsent and not isinstance(unsent[0], FileRecords):
            parts = [part]
            size = len(part)
            while unsent and size < COALESCE_BYTES_MAX:
                following = unsent[0]
                if isinstance(following, FileRecords):
                    break
                parts.append(following)
                size += len(following)
                unsent.popleft()
            part = b"".join(parts)
        flags = _MSG_MORE if unsent else 0
        try:
            sent = self._sock.send(part, flags)
        except (BlockingIOError, InterruptedError):
            unsent.appendleft(part)
            raise
        self._unsent_bytes -= sent
        if sent < len(part):
            unsent.appendleft(memoryview(part)[sent:])

    def _send_file(self, part: FileRecords) -> None:
        file = part.file
        assert isinstance(file, File)
        position = part.position + self._file_sent
        left = part.size - self._file_sent
        if _HAS_SENDFILE:
            sent = os.sendfile(self._fd, file.fileno(), position, min(left, SENDFILE_BYTES_MAX))
        else:
            sent = self._sock.send(file.read(position, min(left, COALESCE_BYTES_MAX)))
        if sent == 0:
            # The file is shorter than the reply promised (it was truncated): the stream cannot be mended.
            raise ConnectionAbortedError("segment file ended early")
        self._file_sent += sent
        if self._file_sent == part.size:
            self._file_sent = 0
            self._unsent.popleft()

    def _on_writable(self) -> None:
        self.last_active_ms = self._clock()
        self._send()
        if not self._writing and not self.closed:
            self._advance()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        if self._writing:
            self._loop.remove_writer(self._fd)
        self._sock.close()
        for reply in self._replies:
            reply.abandon()
        self._replies.clear()
        self._ready_frames.clear()
        self._unsent.clear()
        self._on_close(self)
        hooks = self.context.on_closed
        if hooks:
            # In a turn of their own: a connection may be closed in the middle of somebody else's work.
            self._loop.call_soon(self._tell_closed, hooks)
            self.context.on_closed = []

    def _tell_closed(self, hooks: list[Callable[[int], None]]) -> None:
        now_ms = self._clock()
        for hook in hooks:
            hook(now_ms)


def read_part(part: FileRecords) -> bytes | FileRecords:
    """The records of a small part; the part itself when they cannot be read, which then ends the connection."""
    file = part.file
    assert isinstance(file, File)
    try:
        data = file.read(part.position, part.size)
    except OSError:
        return part
    return data if len(data) == part.size else part
