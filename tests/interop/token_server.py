"""An issuer of bearer tokens on loopback: its keys at /keys, tokens for clients with an id and a secret at /token."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from typing import Any

from tests.interop.nodes import free_ports
from tests.interop.sasl_moldau import Issuer

HOST = "127.0.0.1"
CLIENT_ID, CLIENT_SECRET = "app", "secret of the app"
SUBJECT = "carol"


class TokenServer:
    """`issuer` may be replaced, which is what rotating keys is; a stopped server can be started again."""

    def __init__(self) -> None:
        self.issuer = Issuer()
        self.port = free_ports(1)[0]
        self.asked = 0
        self._server: http.server.ThreadingHTTPServer | None = None

    @property
    def keys_url(self) -> str:
        return f"http://{HOST}:{self.port}/keys"

    @property
    def token_url(self) -> str:
        return f"http://{HOST}:{self.port}/token"

    def token(self, **claims: Any) -> str:
        """Times are whole seconds: some clients read nothing else."""
        now = int(time.time())
        return self.issuer.token(**{"sub": SUBJECT, "iat": now, "exp": now + 600, **claims})

    def start(self) -> None:
        owner = self

        class Pages(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked += self.path == "/keys"
                self.answer(200 if self.path == "/keys" else 404, owner.issuer.key_set())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
                is_known = self.headers.get("Authorization") == f"Basic {expected}"
                given = {"access_token": owner.token(), "token_type": "Bearer", "expires_in": 600}
                self.answer(200 if is_known else 401, json.dumps(given if is_known else {"error": "invalid_client"}))

            def answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((HOST, self.port), Pages)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
