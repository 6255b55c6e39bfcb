"""A socket with TLS, with the calls that a connection makes of a plain one.

OpenSSL never touches the socket: within one call it would read on for as long as what comes is no data, such as key
updates of TLS 1.3, and a peer could hold up the loop with them. What arrives is read here, records are told apart by
their headers, and OpenSSL gets a few of them at a time, from memory. Who sends too many in a row that bring no data is
cut off. What was received and is not yet decrypted is nowhere to be seen by the system: `pending` tells of it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

RECORD_BYTES_MAX: Final = 16384
HEADER_BYTES: Final = 5
# With all that encryption may add to it.
ENCRYPTED_BYTES_MAX: Final = RECORD_BYTES_MAX + 2048
# So many records OpenSSL has at once, and so many may follow each other without data.
RECORDS_AT_ONCE_MAX: Final = 16
RECORDS_WITHOUT_DATA_MAX: Final = 16
# About so many bytes as well: OpenSSL's memory never shrinks, and most connections are idle.
BYTES_AT_ONCE_MAX: Final = 2 * RECORD_BYTES_MAX
# What a record begins with: its kind, and the first half of its version.
KIND_MIN: Final = 20
KIND_MAX: Final = 24
VERSION_MAJOR: Final = 3
# What a connection asks the system for: little at first, more when there was as much as that.
RECEIVE_BYTES_MIN: Final = 4 * 1024
RECEIVE_BYTES_MAX: Final = 64 * 1024
# What is encrypted before it is sent; small enough to stay in the processor's cache.
PIECE_BYTES: Final = 32 * 1024
# What OpenSSL may have to say of its own to somebody who takes nothing, such as responses to key updates.
OWN_BYTES_MAX: Final = 4 * 1024
# More follows at once: Linux waits for it to fill a packet.
MSG_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)
# How often a handshake may go on with a few records more.
HANDSHAKE_ROUNDS_MAX: Final = 256


class TlsMisuse(Exception):
    """The other side says what no client of TLS says, and only keeps this one busy."""


class TlsSocket:
    """Non-blocking: raises BlockingIOError where it has to wait, OSError or TlsMisuse where it cannot go on."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_hostname: str | None) -> None:
        """The server's side where there is no name of a server."""
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
        )
        # With a buffer it returns how much it has read; the types that Python has for it do not say so.
        self._read = cast("Callable[[int, memoryview], int]", self._tls.read)
        self._received = b""
        self._position = 0  # up to where OpenSSL has it
        self._receive_bytes = RECEIVE_BYTES_MIN
        self._missing_bytes = 0  # of the record whose beginning OpenSSL has
        self._partial_bytes = 0  # of that record, in `_incoming` or taken out of it
        self._has_rest = False  # a record was decrypted and not read to its end
        self._without_data = 0  # records since the last data
        self._has_ended = False
        self._failure: Exception | None = None  # for the next who reads
        self._unsent: bytes | memoryview = b""  # encrypted
        self._encrypted_bytes = 0  # of what `send` is given again, because it has not left
        self._rounds = 0
        self.records_total = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    def cipher_and_protocol(self) -> tuple[str, str]:
        """What the two sides have agreed on; empty before."""
        cipher = self._tls.cipher()
        return ("", "") if cipher is None else (cipher[0], self._tls.version() or "")

    # The handshake

    def shake_hands(self) -> None:
        """Goes on with what is there. SSLWantReadError or SSLWantWriteError where it has to wait."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush_or_wait()
                self._receive_or_wait()
            except ssl.SSLError:
                self._flush_if_possible()  # OpenSSL's words about it
                raise
        self._flush_or_wait()
        self._without_data = 0

    def _flush_or_wait(self) -> None:
        if not self._flush():
            raise ssl.SSLWantWriteError

    def _receive_or_wait(self) -> None:
        try:
            is_there = self._hand_over()
        except BlockingIOError:
            raise ssl.SSLWantReadError from None
        if not is_there:
            raise ConnectionResetError("closed")
        self._rounds += 1
        if self._rounds > HANDSHAKE_ROUNDS_MAX:
            raise TlsMisuse("it came in too many pieces")

    def peer_certificate(self) -> bytes | None:
        return self._tls.getpeercert(binary_form=True)

    # Receiving

    def recv_into(self, view: memoryview) -> int:
        """The data of a few records, as far as it fits; 0 at the end, with a goodbye or without one."""
        self._maybe_fail()
        if self._has_ended:
            return 0
        if not self._has_rest and not self._has_record() and not self._hand_over():
            return 0
        total = self._decrypt(view)
        if self._outgoing.pending:
            self._send_own()
        if total == 0 and not self._has_ended:
            self._maybe_fail()
            raise BlockingIOError
        return total

    def _maybe_fail(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _has_record(self) -> bool:
        """Whether OpenSSL has a record that it has not looked at and that is complete."""
        return self._incoming.pending > self._partial_bytes

    def _decrypt(self, view: memoryview) -> int:
        """Fills the view from the records that OpenSSL has."""
        size = len(view)
        total = 0
        self._has_rest = False
        try:
            while True:
                count = self._read(size - total, view[total:] if total else view)
                if count == 0:
                    self._has_ended = True
                    break
                self._without_data = 0
                total += count
                if total == size:
                    self._has_rest = self._tls.pending() > 0
                    break
                if not self._has_record():
                    break
        except ssl.SSLWantReadError:
            if self._without_data >= RECORDS_WITHOUT_DATA_MAX:
                self._failure = TlsMisuse(f"{self._without_data} TLS records in a row without data")
        except ssl.SSLError as error:
            self._failure = ConnectionAbortedError(str(error))
        return total

    def _hand_over(self) -> bool:
        """Gives OpenSSL the next records; False at the end of the stream, BlockingIOError while none is complete."""
        if len(self._received) - self._position >= HEADER_BYTES:
            self._hand_over_records()
            if self._has_record():
                return True
        while True:
            wanted = self._receive_bytes
            data = self._sock.recv(wanted)
            if not data:
                return False
            count = len(data)
            if self._position < len(self._received):
                data = self._received[self._position :] + data
            self._received = data
            self._position = 0
            self._hand_over_records()
            if count == wanted and wanted < RECEIVE_BYTES_MAX:
                self._receive_bytes = 4 * wanted
            if self._has_record():
                return True
            if count < wanted:
                raise BlockingIOError

    def _hand_over_records(self) -> None:
        """As many of those that were received as OpenSSL may have at once, and the beginning of another one."""
        data, start = self._received, self._position
        end = self._find_end(data, start)
        if start == 0 and end == len(data):
            self._incoming.write(data)
        else:
            self._incoming.write(memoryview(data)[start:end])
        if len(data) - end < HEADER_BYTES:
            self._received = data[end:]  # nothing large is kept for the sake of a few bytes
            self._position = 0
        else:
            self._position = end

    def _find_end(self, data: bytes, start: int) -> int:
        """Where the records end that may be handed over. Of a header there is all or nothing."""
        size = len(data)
        position = start + self._missing_bytes
        if position > size:
            self._missing_bytes = position - size
            self._partial_bytes += size - start
            return size
        records = 1 if self._missing_bytes > 0 else 0
        self._missing_bytes = 0
        self._partial_bytes = 0
        while (
            records < RECORDS_AT_ONCE_MAX and position - start < BYTES_AT_ONCE_MAX and size - position >= HEADER_BYTES
        ):
            if not KIND_MIN <= data[position] <= KIND_MAX or data[position + 1] != VERSION_MAJOR:
                raise TlsMisuse("it does not speak TLS")
            length = data[position + 3] << 8 | data[position + 4]
            if length > ENCRYPTED_BYTES_MAX:
                raise TlsMisuse(f"a TLS record of {length} bytes")
            end = position + HEADER_BYTES + length
            if end > size:
                self._missing_bytes = end - size
                self._partial_bytes = size - position
                position = size
                break
            position = end
            records += 1
        self._without_data += records
        self.records_total += records
        return position

    @property
    def pending(self) -> bool:
        """Whether there is something to read here, of which the system tells nobody."""
        return (
            self._has_rest
            or self._has_record()
            or len(self._received) - self._position >= HEADER_BYTES
            or self._has_ended
            or self._failure is not None
        )

    # Sending

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Sends all that the system takes. What is tried again has to begin with the same bytes. The flag is that more
        follows at once: packets leave full."""
        if self._unsent and not self._flush():
            raise BlockingIOError
        size = len(data)
        sent = self._encrypted_bytes
        assert sent <= size, "what has not left was not tried again"
        self._encrypted_bytes = 0
        while sent < size:
            count = self._encrypt(data, sent)
            if not self._flush(MSG_MORE if sent + count < size else flags):
                self._encrypted_bytes = count
                if sent == 0:
                    raise BlockingIOError
                break
            sent += count
        return sent

    def _encrypt(self, data: bytes | bytearray | memoryview, start: int) -> int:
        """The next piece of it."""
        write = self._tls.write
        try:
            if start == 0 and len(data) <= RECORD_BYTES_MAX:
                return write(data)
            view = memoryview(data)[start : start + PIECE_BYTES]
            count = write(view)
            while count < len(view):
                count += write(view[count:])
            return count
        except ssl.SSLError as error:
            raise ConnectionAbortedError(str(error)) from None

    def _flush(self, flags: int = 0) -> bool:
        """Sends what is encrypted; whether all of it has left."""
        while True:
            unsent = self._unsent
            if not unsent:
                if not self._outgoing.pending:
                    return True
                unsent = self._outgoing.read()
            try:
                count = self._sock.send(unsent, flags)
            except (BlockingIOError, InterruptedError):
                self._unsent = unsent
                return False
            if count < len(unsent):
                self._unsent = memoryview(unsent)[count:]
                return False
            self._unsent = b""

    def _send_own(self) -> None:
        """What OpenSSL says while it reads. Of that there may not be more and more that nobody takes."""
        try:
            if not self._flush() and self._outgoing.pending > OWN_BYTES_MAX:
                self._failure = TlsMisuse("it does not take the responses to its TLS messages")
        except OSError as error:
            self._failure = ConnectionAbortedError(str(error))

    def close(self) -> None:
        """Says goodbye, as far as that can be sent at once, and waits for none: nothing more is received."""
        try:
            self._tls.unwrap()
        except (OSError, ValueError):
            pass
        self._flush_if_possible()
        self._sock.close()

    def _flush_if_possible(self) -> None:
        try:
            self._flush()
        except OSError:
            pass
