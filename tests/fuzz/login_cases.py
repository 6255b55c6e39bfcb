"""Strangers at a secured listener, each a seed and a number: what they send, and what they are answered.

A quarter sends a damaged ClientHello, a quarter finishes a real handshake wrongly, the others say something wrong where
a login is asked for, through TLS and without it, and then ask what only somebody known is told.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
from collections.abc import Callable

from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from tests.interop.nodes import HOST
from tests.pace import moment, patience
from tests.unit.security.wire import authenticate, frame, handshake

NONCE = "fyko+d2lbbFgONRv9qkxdawL"
USER = "anna"
FIRST = f"n,,n={USER},r={NONCE}".encode()
DIALOGUES = [
    [frame(ApiVersionsRequest(), 0), handshake("PLAIN"), authenticate(f"\0{USER}\0guessed".encode())],
    [handshake("PLAIN", 0), f"\0{USER}\0guessed".encode()],
    [handshake("SCRAM-SHA-512"), authenticate(FIRST), authenticate(f"c=biws,r={NONCE}abc,p=AAAA".encode())],
    [
        frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
        handshake("SCRAM-SHA-256"),
        authenticate(FIRST),
    ],
    [handshake("OAUTHBEARER"), authenticate(b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm5hIn0.\x01\x01")],
]
BEHIND = frame(MetadataRequest(topics=[]), 9, 4242)
TURNS_MAX = 10
ANSWER_S = 0.1


def damage(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at : at + rng.randint(1, 40)]
        elif kind == 2:
            changed[at:at] = rng.randbytes(rng.randint(1, 40))
        elif kind == 3:
            changed[at : at + 2] = rng.choice((b"\xff\xff", b"\0\0", b"\x7f\xff", b"\x16\x03"))
        else:
            changed += changed[:at]
    return bytes(changed[:70_000])


def damaged_dialogue(rng: random.Random) -> bytes:
    frames = [struct.pack(">i", len(item)) + item for item in rng.choice(DIALOGUES)]
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(frames))
        kind = rng.randrange(4)
        if kind == 0:
            size = rng.choice((-1, 0, 1, 2, 65_536, 524_288, 524_289, 1 << 30, -(1 << 31)))
            frames[place] = struct.pack(">i", size) + frames[place][4:]
        elif kind == 1:
            frames.insert(place, rng.choice(frames))
        elif kind == 2:
            rng.shuffle(frames)
        else:
            frames[place] = frames[place][:4] + damage(frames[place][4:], rng)
    return b"".join(frames) + struct.pack(">i", len(BEHIND)) + BEHIND


class Stranger:
    """One connection; `received` is what it was told, decrypted where it spoke TLS."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self.socket = socket.create_connection((HOST, port), patience(20))
        self.received = b""
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = None if context is None else context.wrap_bio(self.into, self.out, server_hostname=HOST)

    def shake_hands(self, spoil: Callable[[bytes], bytes], first: bool) -> bool:
        """Each flight goes through `spoil`, the first one or those after it; whether a handshake came about."""
        assert self.tls is not None
        for turn in range(TURNS_MAX):
            is_done = False
            with contextlib.suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
                is_done = True
            flight = self.out.read()
            is_spoilt = bool(flight) and (turn == 0) == first and spoil is not unspoilt
            self.socket.sendall(spoil(flight) if is_spoilt else flight)
            if is_done:
                return True
            if not self._hears_more(is_spoilt):
                return False
        return False

    def _hears_more(self, is_spoilt: bool) -> bool:
        """Who has announced more than it sent gets no answer: there is no sense in waiting for the deadline."""
        self.socket.settimeout(moment(ANSWER_S) if is_spoilt else patience(20))
        try:
            answer = self.socket.recv(65_536)
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(patience(20))
        self.into.write(answer)
        return bool(answer)

    def say(self, data: bytes) -> None:
        if self.tls is None:
            self.socket.sendall(data)
            return
        self.tls.write(data)
        self.socket.sendall(self.out.read())

    def listen_to_the_end(self) -> None:
        """Says that nothing more comes, and reads until the other side has closed."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        while data := self.socket.recv(65_536):
            if self.tls is None:
                self.received += data
                continue
            self.into.write(data)
            with contextlib.suppress(ssl.SSLError):
                while part := self.tls.read(65_536):
                    self.received += part


def unspoilt(data: bytes) -> bytes:
    return data


def run_case(seed: int, number: int, ports: dict[str, int], contexts: list[ssl.SSLContext]) -> bytes:
    """What the stranger was told at the end; the same seed and number send the same, as far as TLS allows."""
    rng = random.Random(f"{seed}/{number}")
    kind = rng.choice(("hello", "finish", "secret", "open"))
    context = None if kind == "open" else rng.choice(contexts)
    stranger = Stranger(ports["open" if kind == "open" else "secret"], context)
    # A connection that is closed on the way, and bytes that are no TLS, are what is to be expected.
    with stranger.socket, contextlib.suppress(OSError):
        is_welcome = True
        if context is not None:
            spoil = unspoilt if kind == "secret" else lambda data: damage(data, rng)
            is_welcome = stranger.shake_hands(spoil, kind == "hello")
        if is_welcome:
            stranger.say(damaged_dialogue(rng))
        stranger.listen_to_the_end()
    return stranger.received
