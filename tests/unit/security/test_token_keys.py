"""The secrets of delegation tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from moldau.security import token_keys
from moldau.security.token_keys import TokenKeys, token_hmac, token_password


def test_a_secret_is_made_from_the_id() -> None:
    made = token_hmac("cluster secret", "CaNxcp7gTK-VaeZ9Sizajw")
    assert made == hmac.new(b"cluster secret", b"CaNxcp7gTK-VaeZ9Sizajw", hashlib.sha512).digest()
    assert base64.b64decode(token_password(made)) == made
    assert token_hmac("other", "CaNxcp7gTK-VaeZ9Sizajw") != made


def test_tokens_are_found_by_their_secret_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append(b)
        return hmac.compare_digest(a, b)

    fake = type("Fake", (), {"compare_digest": staticmethod(compare), "digest": staticmethod(hmac.digest)})
    monkeypatch.setattr(token_keys, "hmac", fake)
    keys, ids = TokenKeys("s"), {f"id-{number}" for number in range(9)}
    assert keys.find(token_hmac("s", "id-4"), ids) == "id-4"
    assert keys.find(b"x", ids) is None and keys.find(b"", ids) is None
    assert keys.find(token_hmac("s", "id-4"), ids - {"id-4"}) is None
    assert len(compared) == 9 * 3 + 8


def test_secrets_of_tokens_that_are_gone_are_forgotten() -> None:
    keys = TokenKeys("s")
    for number in range(100):
        keys.of(f"id-{number}")
    keys.find(b"x", {"id-1"})
    assert list(keys._hmacs) == ["id-1"]
