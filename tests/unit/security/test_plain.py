"""PLAIN: who is taken, and what is told to those who are not."""

from __future__ import annotations

import hmac

import pytest

from moldau.security import plain
from moldau.security.exchange import LoginRefused
from moldau.security.plain import PlainServer, plain_message, users_of

USERS = {"alice": "secret", "": "nobody", "empty": ""}


def test_a_right_password() -> None:
    for token in (plain_message("alice", "secret"), b"alice\0alice\0secret"):
        server = PlainServer(USERS)
        assert server.evaluate(token, 0) == b""
        assert server.principal == "User:alice" and not server.token_authenticated


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 500_000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\xff\xfe\0\xff", "Authentication failed: Invalid username or password"),
        (b"admin\0alice\0wrong", "Authentication failed: Invalid username or password"),
    ],
)
def test_who_is_refused(token: bytes, sentence: str) -> None:
    server = PlainServer(USERS)
    with pytest.raises(LoginRefused) as caught:
        server.evaluate(token, 0)
    assert caught.value.told == sentence and not server.is_complete


def test_nobody_acts_for_another_user() -> None:
    """CVE-2017-12610: the authorization id was trusted."""
    server = PlainServer(USERS)
    with pytest.raises(LoginRefused, match="authorization id that is different from username"):
        server.evaluate(b"admin\0alice\0secret", 0)
    assert not server.is_complete


def test_passwords_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CVE-2021-38153. Also for a user who does not exist, and with digests, whose length tells nothing."""
    compared: list[tuple[int, int]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return hmac.compare_digest(a, b)

    monkeypatch.setattr(plain, "hmac", type("Fake", (), {"compare_digest": staticmethod(compare)}))
    for token in (b"\0alice\0secret", b"\0alice\0x", b"\0nobody\0" + b"y" * 1000):
        try:
            PlainServer(USERS).evaluate(token, 0)
        except LoginRefused:
            continue
    assert compared == [(32, 32)] * 3


def test_users_of_a_jaas_entry() -> None:
    options = {"username": "broker", "password": "x", "user_alice": "a", "user_user_b": "b"}
    assert users_of(options) == {"alice": "a", "user_b": "b"}
