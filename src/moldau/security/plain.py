"""SASL PLAIN (RFC 4616): a name and a password as they are, which only TLS keeps from others."""

from __future__ import annotations

import hashlib
import hmac

from moldau.security.exchange import LoginRefused, SaslClient, SaslServer

MECHANISM = "PLAIN"
PARTS = 3
USER_OPTION_PREFIX = "user_"


def plain_message(user: str, password: str) -> bytes:
    """What a client says."""
    return f"\0{user}\0{password}".encode()


def users_of(options: dict[str, str]) -> dict[str, str]:
    """The users of a listener's JAAS entry: user_<name>="<password>"."""
    return {
        name.removeprefix(USER_OPTION_PREFIX): password
        for name, password in options.items()
        if name.startswith(USER_OPTION_PREFIX)
    }


class PlainClient(SaslClient):
    """Everything is said at once."""

    mechanism = MECHANISM

    def __init__(self, user: str, password: str) -> None:
        self._said = plain_message(user, password)

    def first(self) -> bytes:
        return self._said

    def next(self, response: bytes) -> bytes | None:
        return None


class PlainServer(SaslServer):
    """One message, one decision. An unknown user and a wrong password cannot be told apart."""

    def __init__(self, users: dict[str, str]) -> None:
        super().__init__(MECHANISM)
        self._users = users

    def evaluate(self, token: bytes, wall_ms: int) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", PARTS)
        if len(parts) != PARTS:
            raise LoginRefused(f"Invalid SASL/PLAIN response: expected {PARTS} tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            raise LoginRefused("Authentication failed: username not specified")
        if not password:
            raise LoginRefused("Authentication failed: password not specified")
        if not self._is_right(user, password):
            raise LoginRefused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.complete(user)
        return b""

    def _is_right(self, user: str, password: str) -> bool:
        """Digests of one length are compared, whoever it is: neither the time nor its length tells of a password."""
        expected = self._users.get(user)
        given = hashlib.sha256(password.encode("utf-8", "replace")).digest()
        stored = hashlib.sha256((expected if expected is not None else "").encode()).digest()
        return hmac.compare_digest(given, stored) and expected is not None
