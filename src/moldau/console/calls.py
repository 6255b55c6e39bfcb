"""How a request becomes a call of a handler: whose it is, what it says, what it may, and what is written down of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from moldau.client.errors import ClientError
from moldau.console.access import COOKIE, check_csrf
from moldau.console.errors import LoginWanted, Refused, error_response

if TYPE_CHECKING:
    from moldau.console.app import Console
    from moldau.console.sessions import Session
    from moldau.console.viewer import Viewer

log = logging.getLogger("moldau.console")

BODY_BYTES_MAX = 16 * 1024 * 1024
Handler = Callable[["Call"], Awaitable[object]]


class Call:
    """One request: what it asks for, and for whom."""

    def __init__(self, request: Request, console: Console, session: Session, viewer: Viewer) -> None:
        self.request = request
        self.console = console
        self.session = session
        self.viewer = viewer
        self.body: dict[str, Any] = {}
        # What a change is made to, and what it is, for the audit log.
        self.target = ""
        self.details: object = None

    def text(self, name: str, default: str | None = None) -> str:
        """A text of the query or the body."""
        value = self.body.get(name, self.request.query_params.get(name, default))
        if not isinstance(value, str):
            raise Refused(f"{name} is missing, or is not a text.")
        return value

    def number(self, name: str, default: int | None = None, lowest: int = 0, highest: int = 2**63 - 1) -> int:
        """A whole number of the query or the body."""
        value: Any = self.body.get(name, self.request.query_params.get(name, default))
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise Refused(f"{name} is missing, or is not a whole number.") from None
        if isinstance(value, bool | float) or not lowest <= number <= highest:
            raise Refused(f"{name} must be a whole number from {lowest} to {highest}, not {value}.")
        return number

    def optional_number(self, name: str, lowest: int = 0) -> int | None:
        given = self.body.get(name, self.request.query_params.get(name))
        return None if given is None or given == "" else self.number(name, lowest=lowest)

    def flag(self, name: str) -> bool:
        return self.body.get(name, self.request.query_params.get(name)) in (True, "true", "1")

    def texts(self, name: str) -> list[str]:
        """A list of texts in the body, or repeated in the query."""
        value = self.body.get(name)
        if value is None:
            return self.request.query_params.getlist(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Refused(f"{name} is not a list of texts.")
        return value

    @property
    def address(self) -> str:
        return self.request.client.host if self.request.client else ""


async def _make_call(request: Request, with_body: bool) -> Call:
    console: Console = request.app.state.console
    session = console.sessions.find(request.cookies.get(COOKIE))
    if session is None or session.viewer is None:
        raise LoginWanted()
    session.viewer.look()
    call = Call(request, console, session, session.viewer)
    if with_body:
        check_csrf(request, session)
        call.body = await read_body(request)
    return call


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; nothing is {}."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > BODY_BYTES_MAX:
            raise Refused("That is more than the console takes at once.", 413)
    if not data:
        return {}
    try:
        found = json.loads(data)
    except ValueError:
        raise Refused("The request is not JSON.") from None
    if not isinstance(found, dict):
        raise Refused("The request is not a JSON object.")
    return found


def reading(path: str, handler: Handler) -> Route:
    """A GET that changes nothing."""

    async def endpoint(request: Request) -> Response:
        return await respond(lambda: _make_call(request, with_body=False), handler)

    return Route(path, endpoint, methods=["GET"])


def asking(path: str, handler: Handler) -> Route:
    """A POST that changes nothing either: its question is longer than an address may be, or a preview."""

    async def endpoint(request: Request) -> Response:
        return await respond(lambda: _make_call(request, with_body=True), handler)

    return Route(path, endpoint, methods=["POST"])


def changing(path: str, action: str, handler: Handler) -> Route:
    """A POST that changes something, where changes are allowed; tried or done, it is in the audit log."""

    async def checked(call: Call) -> object:
        if not call.console.settings.may_change:
            raise Refused("This console is read-only. It was started without --allow-changes.", 403, "READ_ONLY")
        error: str | None = "failed"
        try:
            found = await handler(call)
            error = None
            return found
        except (ClientError, Refused) as failed:
            error = f"{failed.name}: {failed.message}"
            raise
        finally:
            call.console.audit.note(call.session.user, call.address, action, call.target, call.details, error)

    async def endpoint(request: Request) -> Response:
        return await respond(lambda: _make_call(request, with_body=True), checked)

    return Route(path, endpoint, methods=["POST"])


async def respond(make: Callable[[], Awaitable[Call]], handler: Handler) -> Response:
    try:
        found = await handler(await make())
    except Exception as error:
        response = error_response(error)
        if response is None:
            log.exception("a request could not be answered")
            return JSONResponse({"error": "UNEXPECTED", "message": "The console failed; its log says why."}, 500)
        return response
    return found if isinstance(found, Response) else JSONResponse(found)
