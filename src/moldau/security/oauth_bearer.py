"""SASL OAUTHBEARER (RFC 7628): a token that somebody else has issued, shown to the broker.

The first response to a token that is not good is a short JSON text; the client acknowledges it with one byte, and the
login fails with the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from moldau.security.bearer_tokens import BearerToken, TokenRefused
from moldau.security.exchange import LoginRefused, SaslClient, SaslServer

MECHANISM: Final = "OAUTHBEARER"
SEPARATOR: Final = "\x01"
ACKNOWLEDGEMENT: Final = b"\x01"

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)+)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.A-Za-z0-9]+=*) *")
_EXTENSION: Final = re.compile(r"[A-Za-z]+")


class OAuthBearerServer(SaslServer):
    """`validate` is given the token and the calendar's time; it raises TokenRefused."""

    def __init__(self, validate: Callable[[str, int], BearerToken]) -> None:
        super().__init__(MECHANISM)
        self._validate = validate
        self._problem: str | None = None

    def evaluate(self, token: bytes, wall_ms: int) -> bytes:
        if self._problem is not None:
            if token == ACKNOWLEDGEMENT:
                raise LoginRefused(self._problem, f"the bearer token was refused: {self._problem}")
            raise LoginRefused(None, "the refusal of a token has to be acknowledged")
        authorization_id, text = _read_first(token)
        try:
            bearer = self._validate(text, wall_ms)
        except TokenRefused as refused:
            self._problem = refused.as_json()
            return self._problem.encode()
        if authorization_id not in ("", bearer.principal_name):
            raise LoginRefused(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different "
                f"from the token's principal name ({bearer.principal_name})"
            )
        self.expires_wall_ms = bearer.expires_ms
        self.complete(bearer.principal_name)
        return b""


def _read_first(data: bytes) -> tuple[str, str]:
    """Authorization id and token of the client's first message."""
    try:
        found = _FIRST.fullmatch(data.decode("ascii"))
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise LoginRefused(None, "the first message is malformed")
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split(SEPARATOR) if pair)
    shown = _AUTH.fullmatch(pairs.get("auth", ""))
    if shown is None or shown["scheme"].lower() != "bearer":
        raise LoginRefused(None, "the first message holds no bearer token")
    return (found["authzid"] or "").replace("=2C", ",").replace("=3D", "="), shown["token"]


class OAuthBearerClient(SaslClient):
    """Shows one token, with extensions where there are some."""

    mechanism = MECHANISM

    def __init__(self, token: str, extensions: dict[str, str] | None = None) -> None:
        for name in extensions or {}:
            if not _EXTENSION.fullmatch(name) or name == "auth":
                raise LoginRefused(f"an extension of OAUTHBEARER cannot be named {name}")
        more = "".join(f"{name}={value}{SEPARATOR}" for name, value in (extensions or {}).items())
        self._said = f"n,,{SEPARATOR}auth=Bearer {token}{SEPARATOR}{more}{SEPARATOR}".encode()

    def first(self) -> bytes:
        return self._said

    def next(self, response: bytes) -> bytes | None:
        """The broker says nothing to a good token, and why to another one."""
        return ACKNOWLEDGEMENT if response else None


def status_of(text: str) -> str:
    """The status in a broker's refusal, for a sentence."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return str(found.get("status", text)) if isinstance(found, dict) else text
