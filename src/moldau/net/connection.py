"""One client connection: receives frames, hands them to the dispatcher, sends the replies in the order of the requests.

The connection is bounded in both directions: it stops reading while too many replies wait for their turn or too many
bytes wait for the client, so a client that does not read costs a socket and nothing else. Record data leaves with
`sendfile` straight from the segment file; under TLS it is read a piece at a time and encrypted.

What is not in the system's memory is not sent before a thread has brought it there, a window at a time: the one thread
that serves all connections never waits for the medium. A connection sends so much in one turn and not more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable
from itertools import islice

from moldau.metrics.request_stats import RequestTimes
from moldau.metrics.traffic import Traffic
from moldau.net.framing import Frame, FrameError, FrameReader, Scratch
from moldau.net.log_limit import LogLimit
from moldau.net.low_water import LargeReads
from moldau.net.tls import MSG_MORE, RECORD_BYTES_MAX, TlsMisuse, TlsSocket
from moldau.net.turns import CLOSE, SEND
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.protocol.primitives import DecodeError
from moldau.protocol.records_data import FileRecords
from moldau.storage.disk import File, Reading

REPLIES_WAITING_MAX = 256
UNSENT_BYTES_MAX = 1 << 20
COALESCE_BYTES_MAX = 64 * 1024
# What is asked for and brought into memory at a time, and what may leave before the others have their turn.
WINDOW_BYTES = 1 << 20
TURN_BYTES_MAX = 2 << 20
# Who reads cold data waits for the medium anyway, and is not to make others wait while a whole window leaves at once.
COLD_TURN_BYTES_MAX = 256 << 10
# What was found in memory may be gone after this time, when the client was slow to take it.
WARM_MS = 1000
# Memory is so short that what was brought is gone again at once: then the bytes themselves are kept until they leave.
WARMINGS_MAX = 3
# Less than this is read and sent together with what stands around it: one packet and one wake-up instead of three.
READ_BYTES_MAX = 32 * 1024
# Under TLS records are read and encrypted in pieces of this size.
TLS_PIECE_BYTES = 128 * 1024
# What one connection may have read and handled before the others have their turn; `Turns` knows how long it may take.
RECEIVED_PER_TURN_MAX = 2 << 20
FRAMES_PER_TURN_MAX = 16
FRAME_BYTES_PER_TURN_MAX = 256 * 1024
FRAMES_PER_LOOK = 4  # at the clock

_HAS_SENDFILE = hasattr(os, "sendfile") and (sys.platform.startswith("linux") or sys.platform == "darwin")

log = logging.getLogger("moldau.net")

# What a dispatcher does with a frame: context, data, start, end, now_ms.
Handle = Callable[[ClientContext, bytes, int, int, int], Reply]
log.addFilter(LogLimit())


class Connection:
    """See the module. `close` may be called at any time, more than once."""

    def __init__(
        self,
        sock: socket.socket | TlsSocket,
        loop: asyncio.AbstractEventLoop,
        handle: Handle,
        context: ClientContext,
        *,
        scratch: Scratch,
        frame_bytes_max: int,
        clock: Callable[[], int],
        on_close: Callable[[Connection], None],
    ) -> None:
        self._tls: TlsSocket | None = sock if isinstance(sock, TlsSocket) else None
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._handle = handle
        self.context = context
        self._scratch = scratch
        self._frames = FrameReader(scratch, frame_bytes_max)
        self._large_reads = LargeReads()
        self._ready_frames: deque[Frame] = deque()
        self._ready_since_s = 0.0  # of the first that was left to a later turn
        self._clock = clock
        self._on_close = on_close
        self._replies: deque[Reply] = deque()
        self._unsent: deque[bytes | bytearray | memoryview | FileRecords] = deque()
        self._unsent_bytes = 0
        self._timed: list[tuple[RequestTimes, int]] = []  # whose responses are among what is unsent
        self._file_sent = 0
        self._warm_end = 0  # up to where the first part is known to be in memory, since when
        self._warm_ms = 0
        self._warming: Reading | None = None  # a thread brings the next window, nothing is sent until then
        self._warmings = 0  # how often for the same window
        self._was_cold = False  # the window that leaves now
        self._reading = False
        self._writing = False
        self._handling = False
        self._is_muted = False  # nothing is read or handled, see `_mute`
        self._muted_until_ms = 0
        self._mute_timer: asyncio.TimerHandle | None = None
        self._advances_at_end = False
        self._is_postponed = False
        self._reads_pending = False
        self._is_ending = False  # a response that is on its way is the last one
        self._close_when_sent = False
        self.closed = False
        self.traffic = Traffic()
        self.muted_total = 0
        self.opened_ms = self.last_active_ms = clock()
        self._resume_reading()

    def handle_with(self, handle: Handle, frame_bytes_max: int, limit_name: str) -> None:
        """Frames go there from now on: before a login, and when it is complete."""
        self._handle = handle
        self._frames.limit(frame_bytes_max, limit_name)

    @property
    def is_closing(self) -> bool:
        """Whether it only waits until what was answered has left."""
        return self._close_when_sent

    @property
    def frames_waiting(self) -> int:
        """Requests that were received and wait for a later turn."""
        return len(self._ready_frames)

    @property
    def is_sending(self) -> bool:
        """Whether a response waits for the client to take it."""
        return len(self._unsent) > 0

    def muted_ms(self, now_ms: int) -> int:
        """For how long yet nothing is read from it, because its client used too much; 0 when it is not so."""
        return max(0, self._muted_until_ms - now_ms) if self._is_muted else 0

    @property
    def tls(self) -> TlsSocket | None:
        return self._tls

    # Receiving

    def _resume_reading(self) -> None:
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)
            if self._tls is not None:
                self._maybe_read_pending()

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _maybe_read_pending(self) -> None:
        """The rest of a record, which TLS has and of which the system tells nobody."""
        tls = self._tls
        if tls is not None and self._reading and not self._reads_pending and not self.closed and tls.pending:
            self._reads_pending = True
            self._loop.call_soon(self._on_pending)

    def _on_pending(self) -> None:
        self._reads_pending = False
        if self._reading and not self.closed:
            self._on_readable()

    def _on_readable(self) -> None:
        turns = self._scratch.turns
        turns.begin()
        meter = self._scratch.meter
        if meter.is_on:
            before = meter.begin(self.context)
            self._receive()
            meter.end(before)
        else:
            self._receive()
        if self._tls is not None:
            self._maybe_read_pending()
        if turns.end():
            turns.tell_requests(self.context.peer)

    def _receive(self) -> None:
        now_ms = self._clock()
        self.last_active_ms = now_ms
        frames = self._frames
        left = RECEIVED_PER_TURN_MAX
        try:
            while left > 0:
                wanted = frames.piece_wanted if self._tls is None else 0
                if wanted > 0 and not self._close_when_sent:
                    sock = self._sock
                    assert isinstance(sock, socket.socket)
                    there = self._large_reads.receive(sock, wanted)
                    if there is None:
                        return
                    piece = there
                    count = len(piece)
                else:
                    window = frames.window()
                    count = self._sock.recv_into(window)
                    if self._tls is not None and count < RECORD_BYTES_MAX and count < len(window):
                        left = 0  # small records cost as much as large ones
                left -= count
                self.traffic.bytes_in += count
                if count == 0:
                    self.close()
                    return
                if self._close_when_sent or self._is_ending:
                    # Read and thrown away: closing with unread bytes would reset the connection under our response.
                    return
                complete = frames.received_piece(piece) if wanted > 0 else frames.received(count)
                if complete:
                    self.traffic.requests += len(complete)
                    self._scratch.turns.frames = complete
                    self._handle_frames(complete, now_ms)
                    return
                if not frames.wants_more:
                    return
        except (BlockingIOError, InterruptedError):
            return
        except (FrameError, TlsMisuse) as error:
            log.warning("closing connection from %s: %s", self.context.peer, error)
            self.close()
        except OSError:
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
            self._finish(finished)

    def _finish(self, finished: list[Callable[[], None]]) -> None:
        """One append can finish the fetches of very many: those that the turn has no time for have their own."""
        turns = self._scratch.turns
        for done, advance in enumerate(finished, 1):
            advance()
            if done % FRAMES_PER_LOOK == 0 and done < len(finished) and turns.is_used_up():
                self._loop.call_soon(self._finish_rest, finished[done:])
                return

    def _finish_rest(self, finished: list[Callable[[], None]]) -> None:
        turns = self._scratch.turns
        turns.begin()
        self._finish(finished)
        if turns.end():
            turns.tell(SEND, "", "sending to those who waited")

    def _handle_own_frames(self, frames: list[Frame], now_ms: int) -> None:
        ready, replies = self._ready_frames, self._replies
        ready.extend(frames)
        self._handling = True
        left = FRAME_BYTES_PER_TURN_MAX
        try:
            for number in range(min(len(ready), FRAMES_PER_TURN_MAX)):
                if left <= 0 or (number and number % FRAMES_PER_LOOK == 0 and self._scratch.turns.is_used_up()):
                    break
                if self._is_muted or len(replies) >= REPLIES_WAITING_MAX or self._unsent_bytes > UNSENT_BYTES_MAX:
                    break
                frame = ready.popleft()
                left -= frame[2] - frame[1]
                reply = self._handle(self.context, frame[0], frame[1], frame[2], now_ms)
                times = reply.times
                if times is not None:
                    since_s = self._ready_since_s
                    times.handled(since_s if since_s > 0.0 else self._scratch.turns.began_s)
                if reply.mute_ms > 0:
                    self._mute(reply.mute_ms)
                if reply.done and not replies:
                    self._queue(reply)
                else:
                    reply.on_done = self._on_reply_done
                    replies.append(reply)
                    if reply.close_connection:
                        self._is_ending = True
                if self.closed or self._close_when_sent or self._is_ending or self._is_muted:
                    break
        except DecodeError as error:
            log.warning("closing connection from %s: %s", self.context.peer, error)
            self._close_when_sent = True
        except Exception:
            log.exception("closing connection from %s after an unexpected error", self.context.peer)
            self._close_when_sent = True
        finally:
            self._handling = False
        if not ready:
            self._ready_since_s = 0.0
        elif self._ready_since_s == 0.0:
            self._ready_since_s = self._scratch.turns.began_s
        self._advance()

    # Replying

    def _on_reply_done(self, reply: Reply) -> None:
        if reply.mute_ms > 0 and not self.closed:
            self._mute(reply.mute_ms)
        if reply.close_connection:
            self._is_ending = True
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
        if self.closed:
            return
        meter = self._scratch.meter
        if meter.is_on:
            before = meter.begin(self.context)
            self._advance()
            meter.end(before)
        else:
            self._advance()

    def _queue(self, reply: Reply) -> None:
        parts = reply.parts
        times = reply.times
        if times is not None:
            times.queued()
            if parts is None:
                times.sent(reply.mute_ms)
            else:
                self._timed.append((times, reply.mute_ms))
        if parts is not None:
            self.traffic.responses += 1
            for part in parts:
                if isinstance(part, FileRecords):
                    data = read_part(part) if part.size <= READ_BYTES_MAX else None
                    if data is None:
                        self._unsent.append(part)
                    else:
                        self._unsent.append(data)
                        self._unsent_bytes += len(data)
                else:
                    self._unsent.append(part)
                    self._unsent_bytes += len(part)
        if reply.close_connection:
            self._close_when_sent = True

    def _advance(self) -> None:
        """Moves finished replies to the socket, then takes up what had to wait for them."""
        replies = self._replies
        while replies and replies[0].done:
            reply = replies.popleft()
            self._queue(reply)
            if reply.close_connection:
                self._abandon_replies()
        if self._is_ending:
            self._ready_frames.clear()
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
        if blocked or (self._is_muted and not self._maybe_unmute()):
            self._pause_reading()
        elif self._ready_frames:
            # A later turn, so that a connection with many frames does not keep the others waiting.
            self._pause_reading()
            if not self._is_postponed:
                self._is_postponed = True
                self._loop.call_soon(self._handle_postponed)
        else:
            self._resume_reading()

    def _handle_postponed(self) -> None:
        self._is_postponed = False
        if self.closed or self._is_muted or not self._ready_frames:
            return
        turns = self._scratch.turns
        turns.begin()
        turns.frames = list(islice(self._ready_frames, FRAMES_PER_TURN_MAX))
        meter = self._scratch.meter
        if meter.is_on:
            before = meter.begin(self.context)
            self._handle_frames([], self._clock())
            meter.end(before)
        else:
            self._handle_frames([], self._clock())
        if turns.end():
            turns.tell_requests(self.context.peer)

    # Muted: the client used more than its quota allows (KIP-219)

    def _mute(self, mute_ms: int) -> None:
        """Nothing is read and no frame is handled until the time is over and the response that says so was sent. Frames
        that came before wait, and so does the end of the stream: a muted connection costs a socket and a timer."""
        self._is_muted = True
        self.muted_total += 1
        self._pause_reading()
        until_ms = self._clock() + mute_ms
        if self._mute_timer is not None:
            if until_ms <= self._muted_until_ms:
                return
            self._mute_timer.cancel()
        self._muted_until_ms = until_ms
        self._mute_timer = self._loop.call_later(mute_ms / 1000, self._on_mute_over)

    def _on_mute_over(self) -> None:
        self._mute_timer = None
        turns = self._scratch.turns
        turns.begin()
        meter = self._scratch.meter
        if meter.is_on:
            before = meter.begin(self.context)
            self._go_on()
            meter.end(before)
        else:
            self._go_on()
        if turns.end():
            turns.tell(SEND, "", f"the end of the wait of {self.context.peer}")

    def _go_on(self) -> None:
        """Handles the frames that came while the connection was muted."""
        if not self._writing:
            self._advance()

    def _maybe_unmute(self) -> bool:
        if self._mute_timer is not None or self._unsent:
            return False
        for reply in self._replies:
            if reply.mute_ms > 0:
                return False
        self._is_muted = False
        return True

    def _send(self) -> None:
        """Sends until everything is sent, the client takes no more, the turn is used up or something cold comes."""
        unsent = self._unsent
        left = TURN_BYTES_MAX
        try:
            while unsent and self._warming is None:
                if left <= 0:
                    self._resume_writing()
                    return
                part = unsent[0]
                if isinstance(part, FileRecords):
                    sent = self._send_file(part)
                    if self._was_cold:
                        left = min(left, COLD_TURN_BYTES_MAX)
                    left -= sent
                else:
                    left -= self._send_bytes()
        except (BlockingIOError, InterruptedError):
            self._resume_writing()
            return
        except OSError as error:
            self._on_cannot_send(error)
            return
        if self._timed and not unsent:
            for times, throttle_ms in self._timed:
                times.sent(throttle_ms)
            self._timed.clear()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def _resume_writing(self) -> None:
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._on_writable)

    def _on_cannot_send(self, error: OSError) -> None:
        if not isinstance(error, ConnectionError):
            log.warning("closing connection from %s: cannot send: %s", self.context.peer, error)
        self.close()

    def _send_bytes(self) -> int:
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
        flags = MSG_MORE if unsent else 0  # the head of a fetch response shares a packet with its records
        try:
            sent = self._sock.send(part, flags)
        except (BlockingIOError, InterruptedError):
            unsent.appendleft(part)
            raise
        self._unsent_bytes -= sent
        self.traffic.bytes_out += sent
        if sent < len(part):
            unsent.appendleft(memoryview(part)[sent:])
        return sent

    def _send_file(self, part: FileRecords) -> int:
        """Sends of a part what is in memory; 0 if that is nothing, and a thread is at it then."""
        file = part.file
        assert isinstance(file, File)
        position = part.position + self._file_sent
        left = part.size - self._file_sent
        if self._warm_end <= self._file_sent or self.last_active_ms - self._warm_ms > WARM_MS:
            window = min(left, WINDOW_BYTES)
            if not file.is_resident(position, window):
                self._warm(file, position, window)
                return 0
            self._was_cold = self._warmings > 0
            self._warmings = 0
            self._warm_end = self._file_sent + window
            self._warm_ms = self.last_active_ms
        count = self._warm_end - self._file_sent
        if self._was_cold:
            count = min(count, COLD_TURN_BYTES_MAX)
        if self._tls is not None:
            return self._read_for_tls(part, file.read(position, min(count, TLS_PIECE_BYTES)))
        if _HAS_SENDFILE:
            sent = os.sendfile(self._fd, file.fileno(), position, count)
        else:
            sent = self._sock.send(file.read(position, min(count, COALESCE_BYTES_MAX)))
        if sent == 0:
            # The file is shorter than the reply promised (it was truncated): the stream cannot be mended.
            raise ConnectionAbortedError("segment file ended early")
        self._skip_in_file(part, sent)
        self.traffic.bytes_out += sent
        return sent

    def _read_for_tls(self, part: FileRecords, data: bytes | bytearray) -> int:
        """The bytes are kept until they have left: what TLS could not send has to come again as it was."""
        if not data:
            raise ConnectionAbortedError("segment file ended early")
        self._skip_in_file(part, len(data))
        self._unsent.appendleft(data)
        self._unsent_bytes += len(data)
        return 0

    def _skip_in_file(self, part: FileRecords, size: int) -> None:
        self._file_sent += size
        if self._file_sent == part.size:
            self._file_sent = 0
            self._warm_end = 0
            self._unsent.popleft()

    # Cold data

    def _warm(self, file: File, position: int, size: int) -> None:
        """One window at a time and connection, so that all who read cold data get their turn."""
        if self._file_sent == 0:
            self._push_out()
        self._warmings += 1
        if self._warmings <= WARMINGS_MAX:
            self._warming = Reading()  # the callback may come at once
            warming = file.warm_later(position, size, self._on_warm)
            if self._warming is not None:
                self._warming = warming
        else:
            self._warming = Reading()
            file.read_later(position, size, self._on_cold_bytes)

    def _push_out(self) -> None:
        """What was sent in the belief that more follows at once leaves now: whole responses may be among it."""
        sock = self._sock
        if isinstance(sock, socket.socket) and sock.family != socket.AF_UNIX:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                pass  # the client is gone, which the next send tells

    def _on_warm(self, failure: OSError | None) -> None:
        self._warming = None
        if self.closed:
            return
        self.last_active_ms = self._clock()
        if failure is not None:
            self._on_cannot_send(failure)
        else:
            self._go_on_sending()

    def _on_cold_bytes(self, outcome: bytes | OSError) -> None:
        self._warming = None
        if self.closed:
            return
        self.last_active_ms = self._clock()
        part = self._unsent[0]
        assert isinstance(part, FileRecords)
        if isinstance(outcome, OSError):
            self._on_cannot_send(outcome)
        elif not outcome:
            self._on_cannot_send(ConnectionAbortedError("segment file ended early"))
        else:
            self._warmings = 0
            self._skip_in_file(part, len(outcome))
            self._unsent.appendleft(outcome)
            self._unsent_bytes += len(outcome)
            self._go_on_sending()

    def _go_on_sending(self) -> None:
        meter = self._scratch.meter
        if meter.is_on:
            before = meter.begin(self.context)
            self._send_what_was_cold()
            meter.end(before)
        else:
            self._send_what_was_cold()

    def _send_what_was_cold(self) -> None:
        if not self._writing:
            self._send()
            if not self._writing and not self.closed and self._warming is None:
                self._advance()

    def _on_writable(self) -> None:
        turns = self._scratch.turns
        turns.begin()
        meter = self._scratch.meter
        if meter.is_on:
            before = meter.begin(self.context)
            self._send_more()
            meter.end(before)
        else:
            self._send_more()
        if turns.end():
            turns.tell(SEND, "", f"sending to {self.context.peer}")

    def _send_more(self) -> None:
        self.last_active_ms = self._clock()
        self._send()
        if not self._writing and not self.closed and self._warming is None:
            self._advance()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        if self._mute_timer is not None:
            self._mute_timer.cancel()
            self._mute_timer = None
        if self._writing:
            self._loop.remove_writer(self._fd)
        if self._warming is not None:
            self._warming.cancelled = True
        self._sock.close()
        self._abandon_replies()
        self._ready_frames.clear()
        self._unsent.clear()
        self._on_close(self)
        hooks = self.context.on_closed
        if hooks:
            # In a turn of their own: a connection may be closed in the middle of somebody else's work.
            self._loop.call_soon(self._tell_closed, hooks)
            self.context.on_closed = []

    def _abandon_replies(self) -> None:
        for reply in self._replies:
            reply.abandon()
        self._replies.clear()

    def _tell_closed(self, hooks: list[Callable[[int], None]]) -> None:
        turns = self._scratch.turns
        turns.begin()
        now_ms = self._clock()
        for hook in hooks:
            hook(now_ms)
        if turns.end():
            turns.tell(CLOSE, "", f"the end of the connection from {self.context.peer}")


def read_part(part: FileRecords) -> bytes | bytearray | None:
    """The records of a small part; None if they are cold or cannot be read, which then shows when they are sent."""
    file = part.file
    assert isinstance(file, File)
    try:
        return file.read_now(part.position, part.size)
    except OSError:
        return None
