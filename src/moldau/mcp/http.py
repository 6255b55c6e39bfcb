"""Serves agents over HTTP: who is served, under which names, and with which token.

A page in a browser may be made to ask a name that leads here (DNS rebinding), and a program on the same machine may ask
anything: the SDK refuses names and origins that are not ours, and a token is wanted wherever others can reach us.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.actions.addresses import listen, names_of_this_machine, url_of
from moldau.actions.serving import keep_small, serve
from moldau.mcp.server import make_server
from moldau.mcp.settings import HttpSettings, McpSettings
from moldau.mcp.tool_runner import ToolRunner

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
REQUEST_BYTES_MAX = 4 * 1024 * 1024


class TokenWanted:
    """Wraps the application: whoever does not send the token gets status 401, and nothing is read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_known(Headers(scope=scope).get("authorization", "")):
            refusal = {"error": "invalid_token", "error_description": "Send the token: Authorization: Bearer …"}
            await JSONResponse(refusal, 401, {"www-authenticate": "Bearer"})(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, header: str) -> bool:
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), self._token)


def security_of(settings: HttpSettings, port: int) -> TransportSecuritySettings:
    """Under which names it is asked for, and which pages may do so: its own, of which there are none."""
    own = f"[{settings.host}]" if ":" in settings.host else settings.host
    names = [*LOOPBACK, own, *settings.allowed_hosts]
    if not settings.on_loopback:
        names += names_of_this_machine()
    # A name without a port is the one of a proxy in front, or of the port that belongs to the scheme.
    hosts = [form for name in dict.fromkeys(names) for form in (f"{name}:{port}", name)]
    hosts += [f"{name}:*" for name in settings.allowed_hosts]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins)


def make_app(settings: McpSettings, http: HttpSettings, port: int) -> ASGIApp:
    """The application, behind the token where one is wanted."""
    server = make_server(ToolRunner(settings))
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        # A call is one request and one response: nothing of one is kept for the next.
        json_response=True,
        stateless_http=True,
        max_request_body_size=REQUEST_BYTES_MAX,
        transport_security=security_of(http, port),
        host=http.host,
    )
    return app if http.token is None else TokenWanted(app, http.token)


def run(settings: McpSettings, http: HttpSettings, on_ready: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM; on_ready is told the address. Raises NotSafe and CannotListen."""
    http.check()
    keep_small()
    listener = listen(http.host, http.port)
    address = url_of(listener, http.host, "https" if http.tls_certificate else "http")
    app = make_app(settings, http, listener.getsockname()[1])
    serve(app, listener, lambda: on_ready(address.rstrip("/") + PATH), http.tls_certificate, http.tls_key)
