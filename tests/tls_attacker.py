"""One side of TLS that can send any record it likes after the handshake: key updates without an end, and such things.

The handshake is Python's own; the keys are what OpenSSL logs of it. From then on records are made here.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
from pathlib import Path
from typing import Final

import pytest

CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
DATA: Final = 23

KEY_UPDATE: Final = b"\x18\x00\x00\x01\x00"
KEY_UPDATE_WITH_ANSWER: Final = b"\x18\x00\x00\x01\x01"
USER_CANCELED: Final = b"\x01\x5a"
NO_RENEGOTIATION: Final = b"\x01\x64"
# Valid for an hour, of one ticket of four bytes.
NEW_SESSION_TICKET: Final = b"\x04\x00\x00\x13" + (3600).to_bytes(4, "big") + bytes(4) + b"\x02ab\x00\x04tick\x00\x00"


class Keys:
    """Those of one direction in TLS 1.3."""

    def __init__(self, secret: bytes) -> None:
        self._digest = "sha384" if len(secret) == 48 else "sha256"
        self._set(secret)

    def _set(self, secret: bytes) -> None:
        self._secret = secret
        self._cipher = aes_gcm(self._expand(b"key", 32 if len(secret) == 48 else 16))
        self._iv = self._expand(b"iv", 12)
        self._sequence = 0

    def _expand(self, label: bytes, size: int) -> bytes:
        label = b"tls13 " + label
        info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
        return hmac.new(self._secret, info + b"\x01", self._digest).digest()[:size]

    def update(self) -> None:
        self._set(self._expand(b"traffic upd", len(self._secret)))

    def _nonce(self) -> bytes:
        number = int.from_bytes(self._iv, "big") ^ self._sequence
        self._sequence += 1
        return number.to_bytes(12, "big")

    def seal(self, kind: int, content: bytes, padding: int = 0) -> bytes:
        inner = content + bytes([kind]) + bytes(padding)
        header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        return header + self._cipher.encrypt(self._nonce(), inner, header)

    def open(self, header: bytes, body: bytes) -> tuple[int, bytes]:
        inner: bytes = self._cipher.decrypt(self._nonce(), body, header).rstrip(b"\0")
        return inner[-1], inner[:-1]


class OldKeys:
    """Those of a client in TLS 1.2, after its Finished."""

    def __init__(self, master: bytes, client_random: bytes, server_random: bytes, digest: str) -> None:
        key_bytes = 32 if digest == "sha384" else 16
        block = expanded(master, b"key expansion" + server_random + client_random, 2 * key_bytes + 8, digest)
        self._cipher = aes_gcm(block[:key_bytes])
        self._salt = block[2 * key_bytes : 2 * key_bytes + 4]
        self._sequence = 1

    def seal(self, kind: int, content: bytes) -> bytes:
        number = self._sequence.to_bytes(8, "big")
        self._sequence += 1
        head = bytes([kind]) + b"\x03\x03"
        sealed = self._cipher.encrypt(self._salt + number, content, number + head + len(content).to_bytes(2, "big"))
        return head + (len(sealed) + 8).to_bytes(2, "big") + number + sealed


def aes_gcm(key: bytes):  # type: ignore[no-untyped-def]
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def expanded(secret: bytes, seed: bytes, size: int, digest: str) -> bytes:
    """The pseudo-random function of TLS 1.2."""
    found, link = b"", seed
    while len(found) < size:
        link = hmac.new(secret, link, digest).digest()
        found += hmac.new(secret, link + seed, digest).digest()
    return found[:size]


class Attacker:
    """Over a blocking socket. `context` is its own: what it logs goes into `folder`."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, folder: Path, is_server: bool = False) -> None:
        self.sock = sock
        self._log = folder / f"keys of {hashlib.sha256(repr(sock).encode()).hexdigest()[:8]} {id(self)}"
        context.keylog_filename = str(self._log)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._is_server = is_server
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=is_server, server_hostname=None if is_server else "localhost"
        )
        self._sent = self._received = b""
        self.hello = b""

    def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if not data:
                    raise ConnectionResetError("closed in the handshake") from None
                self._received += data
                self._incoming.write(data)
        self._flush()
        self._take_keys()

    def _flush(self) -> None:
        data = self._outgoing.read()
        self._sent += data
        self.sock.sendall(data)

    def _take_keys(self) -> None:
        secrets = {line.split()[0]: bytes.fromhex(line.split()[2]) for line in self._log.read_text().splitlines()[1:]}
        if self._tls.version() == "TLSv1.3":
            sides = ("SERVER", "CLIENT") if self._is_server else ("CLIENT", "SERVER")
            self.own, self.others = (Keys(secrets[f"{side}_TRAFFIC_SECRET_0"]) for side in sides)
            return
        cipher = self._tls.cipher()
        assert cipher is not None and "GCM" in cipher[0]
        digest = "sha384" if "SHA384" in cipher[0] else "sha256"
        self.hello = self._sent[5 : 5 + int.from_bytes(self._sent[3:5], "big")]
        randoms = self._sent[11:43], self._received[11:43]
        self.old = OldKeys(secrets["CLIENT_RANDOM"], *randoms, digest)

    def key_updates(self, count: int, content: bytes = KEY_UPDATE, padding: int = 0) -> bytes:
        """So many of them, one record each."""
        records: list[bytes] = []
        for _ in range(count):
            records.append(self.own.seal(HANDSHAKE, content, padding))
            self.own.update()
        return b"".join(records)

    def receive(self, size: int) -> bytes:
        """So many bytes of data that the other side sends, with the key updates that it makes."""
        data = b""
        while len(data) < size:
            header = self._exactly(5)
            kind, content = self.others.open(header, self._exactly(int.from_bytes(header[3:], "big")))
            if kind == DATA:
                data += content
            elif content == KEY_UPDATE:
                self.others.update()
            else:
                raise AssertionError(f"{kind}: {content!r}")
        return data

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise ConnectionResetError("closed")
            data += piece
        return data

    def flood(self, data: bytes) -> None:
        """Sends until the other side takes no more."""
        try:
            self.sock.sendall(data)
        except (ConnectionError, TimeoutError):
            pass
