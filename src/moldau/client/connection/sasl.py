"""Who a client is: the mechanisms of SASL that Kafka's brokers offer, each as a dialogue of a few messages.

A Login says one message after the other, and is done when the broker has proved what the mechanism wants proved. One
dialogue belongs to one connection.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

from moldau.client.errors import ClientError, ConfigError, error_for
from moldau.protocol.errors import SASL_AUTHENTICATION_FAILED

SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *SCRAM_HASHES)

ITERATIONS_MIN = 4096
# What a server may ask a client to compute; Kafka's own brokers store at most 16,384.
ITERATIONS_MAX = 1_000_000


class Login:
    """One dialogue."""

    mechanism = ""

    def first(self) -> bytes:
        raise NotImplementedError

    def next(self, response: bytes) -> bytes | None:
        """What to say to an answer; None when everything is said. Raises if the broker is not who it should be."""
        raise NotImplementedError


class PlainLogin(Login):
    """RFC 4616: name and password as they are, which only TLS keeps from others."""

    mechanism = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._said = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._said

    def next(self, response: bytes) -> bytes | None:
        return None


class ScramLogin(Login):
    """RFC 5802, as Kafka has it (no channel binding, no SASLprep): both sides prove that they know the password."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        self.mechanism = mechanism
        self._hash = SCRAM_HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._expected: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def next(self, response: bytes) -> bytes | None:
        try:
            fields = dict(item.split("=", 1) for item in response.decode().split(","))
            if "e" in fields:
                raise _refused(f"the broker says {fields['e']}")
            if self._expected is not None:
                if not hmac.compare_digest(base64.b64decode(fields["v"], validate=True), self._expected):
                    raise _refused("the broker does not know the password, so it is not the one it should be")
                return None
            return self._proof(
                response.decode(), fields["r"], base64.b64decode(fields["s"], validate=True), fields["i"]
            )
        except (KeyError, ValueError):
            raise _refused("the broker's response is not a SCRAM message") from None

    def _proof(self, server_first: str, nonce: str, salt: bytes, iterations: str) -> bytes:
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise _refused("the broker's nonce does not begin with ours")
        count = int(iterations)
        if not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
            raise _refused(f"the broker wants {count} iterations, {ITERATIONS_MIN} to {ITERATIONS_MAX} are allowed")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, count)
        client_key = self._hmac(salted, b"Client Key")
        final = f"c=biws,r={nonce}"
        message = f"{self._first_bare},{server_first},{final}".encode()
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._expected = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._hash).digest()


def _refused(reason: str) -> ClientError:
    return error_for(SASL_AUTHENTICATION_FAILED, f"Authentication failed: {reason}.")


def login_maker(mechanism: str, user: str | None, password: str | None, jaas: str | None) -> Callable[[], Login]:
    """What begins a dialogue for each connection; raises ConfigError where settings are missing or not for us."""
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"The client cannot log in with sasl.mechanism={mechanism}: choose one of {', '.join(MECHANISMS)}."
        )
    if jaas is not None:
        options = parse_jaas(jaas)
        user, password = options.get("username", user), options.get("password", password)
    if user is None or password is None:
        raise ConfigError(
            f"sasl.mechanism={mechanism} needs a name and a password: set sasl.username and sasl.password, or"
            ' sasl.jaas.config with username="…" password="…".'
        )
    name, secret = user, password
    if mechanism == "PLAIN":
        return lambda: PlainLogin(name, secret)
    return lambda: ScramLogin(mechanism, name, secret)


_JAAS = re.compile(
    r"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)((?:\s+.*)?);\s*", re.DOTALL | re.IGNORECASE
)
_OPTION = re.compile(r'\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([^\s"\';]+))', re.DOTALL)


def parse_jaas(text: str) -> dict[str, str]:
    """The options of a JAAS line: `…PlainLoginModule required username="alice" password="secret";`."""
    found = _JAAS.fullmatch(text)
    rest = found[1].strip() if found is not None else ""
    options: dict[str, str] = {}
    while found is not None and rest:
        option = _OPTION.match(rest)
        if option is None:
            break
        name, *values = option.groups()
        value = next(item for item in values if item is not None)
        options[name] = value if values[2] is not None else re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        rest = rest[option.end() :].strip()
    if found is None or rest:
        raise ConfigError(
            'sasl.jaas.config cannot be read: write it as `ModuleName required username="…" password="…";`, with the'
            " semicolon."
        )
    return options
