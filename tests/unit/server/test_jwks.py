"""The keys of an issuer: fetched, refreshed, and not asked for by whoever shows a strange token."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.security.token_sources import RESPONSE_BYTES_MAX, SourceError
from moldau.server import jwks
from moldau.server.http_source import fetch
from moldau.server.jwks import IssuerKeys
from tests.pace import wait_until

pytest.importorskip("cryptography", reason="cryptography is not installed")
from tests.unit.security.test_bearer_tokens import key_set, rsa_row


class Pages(http.server.BaseHTTPRequestHandler):
    """/keys, /moved, /secret, /large"""

    def do_GET(self) -> None:
        status = {"/moved": 302, "/secret": 500}.get(self.path, 200)
        self.send_response(status)
        if self.path == "/moved":
            self.send_header("Location", "/keys")
        self.end_headers()
        body = {"/secret": b"secret-1", "/large": b"x" * (RESPONSE_BYTES_MAX + 10)}.get(self.path, b"keys")
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_what_is_fetched(web: str, tmp_path: Path) -> None:
    assert fetch(f"{web}/keys", None) == b"keys"
    (tmp_path / "k").write_bytes(b"in a file")
    assert fetch("file:x", str(tmp_path / "k")) == b"in a file"
    for url, path, sentence in (
        (f"{web}/moved", None, "status 302"),
        (f"{web}/secret", None, "status 500"),
        (f"{web}/large", None, "more than"),
        ("http://127.0.0.1:1/", None, "cannot be read"),
        ("file:gone", str(tmp_path / "gone"), "cannot be read"),
    ):
        with pytest.raises(SourceError, match=sentence) as caught:
            fetch(url, path)
        assert "secret-1" not in str(caught.value)


def keys_from(answers: list[bytes | Exception], refresh_ms: int = 3_600_000) -> IssuerKeys:
    def fetch_next() -> bytes:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return IssuerKeys("https://issuer", fetch_next, refresh_ms, 1, 5)


def test_an_answer_that_is_no_http_is_a_failure_like_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"nonsense\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(SourceError, match="cannot be read"):
            fetch(f"http://127.0.0.1:{server.getsockname()[1]}/keys", None)


def test_a_new_key_is_found_by_the_login_after_the_one_that_missed_it() -> None:
    keys = keys_from([key_set(rsa_row(kid="old")), key_set(rsa_row(kid="new"))])
    keys.start()
    try:
        wait_until(lambda: keys.find("old", "RS256") is not None, 10, lambda: "no keys")
        assert keys.find("new", "RS256") is None
        wait_until(lambda: keys.find("new", "RS256") is not None, 10, lambda: "not refreshed")
        assert keys.find("old", "RS256") is None and keys.fetches == 2
    finally:
        keys.close()


def test_a_failed_fetch_is_tried_again_and_the_old_keys_stay(caplog: pytest.LogCaptureFixture) -> None:
    late = key_set(rsa_row(kid="late"))
    odd = RuntimeError("what nobody has thought of")
    keys = keys_from([key_set(rsa_row()), SourceError("down"), b"secret-1 is no JWKS", odd, late])
    assert keys.refresh()
    assert not keys.refresh() and not keys.refresh() and not keys.refresh()
    assert keys.find("rsa", "RS256") is not None
    assert keys.refresh() and keys.find("late", "RS256") is not None
    assert "down" in caplog.text and "is not a JWKS" in caplog.text and "secret-1" not in caplog.text


def test_strangers_cannot_make_a_node_ask_again_and_again() -> None:
    """16 missing keys in a minute, none with a very long name."""
    keys = keys_from([key_set(rsa_row())])
    keys.refresh()
    keys.find("k" * (jwks.KEY_ID_SIZE_MAX + 1), "RS256")
    assert not keys._wake.is_set()
    for number in range(200):
        keys._wake.clear()
        keys.find(f"strange-{number}", "RS256")
        assert keys._wake.is_set() == (number < jwks.MISSING_MAX)
    keys._wake.clear()
    keys.find("strange-1", "RS256")
    keys.find(None, "RS256")
    keys.find("rsa", "ES256")
    assert not keys._wake.is_set() and len(keys._missing) == jwks.MISSING_MAX


def test_keys_are_refreshed_from_time_to_time() -> None:
    keys = keys_from([json.dumps({"keys": []}).encode()], refresh_ms=5)
    keys.start()
    try:
        wait_until(lambda: keys.fetches >= 3, 10, lambda: "not refreshed")
    finally:
        keys.close()
