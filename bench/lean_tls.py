"""The client's side of TLS for loads: few calls of the system, and it can count what comes without decrypting it.

OpenSSL works between two buffers, so that what several answers bring is one read, and what a frame becomes is one
write. Who measures a broker that encrypts need not decrypt: the sizes of TLS 1.3 records stand in front of them.
"""

from __future__ import annotations

import socket
import ssl

from side_by_side import HOST, Wire

TIMEOUT_S = 120.0
RECEIVED_BYTES_MAX = 256 * 1024
RECORD_HEADER_BYTES = 5
# Behind the data of a TLS 1.3 record: what kind of record it is, and the tag of the authenticated encryption. Java puts
# zeros in between.
TRAILER_BYTES_MIN = 1 + 16


def client_context() -> ssl.SSLContext:
    """Checks no certificate: that would be work of the load only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


class LeanTls:
    """A socket with the calls that a `Wire` makes of one; a handshake in two steps, so that many can run at once."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._socket = socket.create_connection((HOST, port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._kept: bytearray | None = None
        self._trailer_bytes = TRAILER_BYTES_MIN

    def fileno(self) -> int:
        return self._socket.fileno()

    def greet(self) -> None:
        """The first step: says hello."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        raise AssertionError("a handshake cannot end before the broker has answered")

    def shake_hands(self) -> None:
        """The second step: waits for the broker, and ends the handshake."""
        while True:
            self._receive()
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
            else:
                self._flush()
                return

    def cipher(self) -> str:
        found = self._tls.cipher()
        assert found is not None, "there is none before the handshake"
        return f"{found[1]} {found[0]}"

    def sendall(self, data: bytes | bytearray) -> None:
        sent = self._tls.write(data)
        while sent < len(data):
            sent += self._tls.write(memoryview(data)[sent:])
        self._flush()

    def recv_into(self, view: memoryview) -> int:
        while True:
            try:
                return self._tls.read(len(view), view)  # type: ignore[arg-type, return-value]
            except ssl.SSLWantReadError:
                self._receive()

    def keep(self) -> None:
        """Keeps records as they come, until `learn`."""
        self._kept = bytearray()

    def learn(self, size: int) -> None:
        """Finds out how long the records' trailers are; those that were kept had `size` bytes in them."""
        kept = self._kept
        assert kept is not None
        self._kept = None
        records = lengths = place = 0
        while place < len(kept):
            length = kept[place + 3] << 8 | kept[place + 4]
            place += RECORD_HEADER_BYTES + length
            lengths += length
            records += 1
        self._trailer_bytes, rest = divmod(lengths - size, records)
        if self._trailer_bytes < TRAILER_BYTES_MIN or rest != 0:
            raise RuntimeError("records are not padded alike, so their data cannot be counted")

    def skip(self, size: int, buffer: memoryview) -> None:
        """Receives records with `size` bytes in them and leaves them encrypted; nothing may follow them, and nothing
        can be read on this connection any more. `buffer` has room for all of it."""
        filled = place = 0
        while size > 0 or place > filled:
            count = self._socket.recv_into(buffer[filled:])
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            filled += count
            while place + RECORD_HEADER_BYTES <= filled:
                length = buffer[place + 3] << 8 | buffer[place + 4]
                size -= length - self._trailer_bytes
                place += RECORD_HEADER_BYTES + length
        if size < 0 or place < filled:
            raise RuntimeError("more came than was asked for")

    def close(self) -> None:
        self._socket.close()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._socket.sendall(data)

    def _receive(self) -> None:
        data = self._socket.recv(RECEIVED_BYTES_MAX)
        if not data:
            raise ConnectionError("the broker closed the connection")
        if self._kept is not None:
            self._kept += data
        self._incoming.write(data)


class TlsWire(Wire):
    """A `Wire` over TLS."""

    def __init__(self, port: int, context: ssl.SSLContext, *, waits: bool = True) -> None:
        """With `waits` the handshake is over afterwards; else `channel.shake_hands` is to follow."""
        self.channel = LeanTls(port, context)
        self.socket = self.channel  # type: ignore[assignment]
        self.channel.greet()
        if waits:
            self.channel.shake_hands()
