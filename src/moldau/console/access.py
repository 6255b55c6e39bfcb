"""What every response and every change has to pass: the Host header, where a request comes from, and strict headers.

A page elsewhere may make a browser ask for things here. It must not be answered under a name that is not ours (DNS
rebinding), must not change anything (CSRF), and nothing of ours may run anything but our own files.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moldau.actions.refusals import Refused
from moldau.console.sessions import Session

COOKIE = "moldau_console"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = {"GET", "HEAD"}

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-write=(self)",
}


class Access:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._names = {name.lower() for name in (*allowed_hosts, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found[name] = value
                found.setdefault("cache-control", "no-store")
            await send(message)

        if refusal is not None:
            await PlainTextResponse(refusal + "\n", 403)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if not self.is_ours(host):
            return f"This console is not served under the name {host!r}; --allow-host adds one."
        if method in SAFE_METHODS:
            return None
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "Changes come from the console's own pages only."
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return "Changes come from the console's own pages only."
        return None

    def is_ours(self, host: str) -> bool:
        """Addresses are: only a name can be made to lead here by somebody else."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True


def check_csrf(request: Request, session: Session) -> None:
    """The page has the secret from a response that other sites cannot read."""
    given = request.headers.get(CSRF_HEADER, "")
    if not secrets.compare_digest(given.encode(), session.csrf.encode()):
        raise Refused("The page is out of date. Load it again.", 403, "CSRF")
