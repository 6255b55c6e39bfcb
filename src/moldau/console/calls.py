"""How a request becomes a call of an action: whose it is, what it says, and what it may."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from moldau.actions.calls import Action, Call, Handler, carry_out_change
from moldau.actions.refusals import Refused
from moldau.console.access import COOKIE, check_csrf
from moldau.console.errors import LoginWanted, error_response

if TYPE_CHECKING:
    from moldau.actions.viewer import Viewer
    from moldau.console.app import Console
    from moldau.console.sessions import Session

log = logging.getLogger("moldau.console")

BODY_BYTES_MAX = 16 * 1024 * 1024


class WebCall(Call):
    """The question of one request, in its body or in its address."""

    def __init__(self, request: Request, console: Console, session: Session, viewer: Viewer) -> None:
        super().__init__(viewer, preview_chars=console.settings.preview_bytes)
        self.request = request
        self.console = console
        self.session = session

    def given(self, name: str, default: object = None) -> Any:
        return self.body.get(name, self.request.query_params.get(name, default))

    def texts(self, name: str) -> list[str]:
        """A list of texts in the body, or repeated in the query."""
        return super().texts(name) if name in self.body else self.request.query_params.getlist(name)

    @property
    def address(self) -> str:
        return self.request.client.host if self.request.client else ""


async def _make_call(request: Request, with_body: bool) -> WebCall:
    console: Console = request.app.state.console
    session = console.sessions.find(request.cookies.get(COOKIE))
    if session is None or session.viewer is None:
        raise LoginWanted()
    session.viewer.look()
    call = WebCall(request, console, session, session.viewer)
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


def route_of(action: Action) -> Route:
    """Where pages ask for an action."""
    with_body = action.method == "POST"

    async def checked(call: WebCall) -> object:
        if action.change is None:
            return await action.handler(call)
        if not call.console.settings.may_change:
            raise Refused("This console is read-only. It was started without --allow-changes.", 403, "READ_ONLY")
        audit, user = call.console.audit, call.session.user
        return await carry_out_change(call, action.change, action.handler, audit, user, call.address)

    async def endpoint(request: Request) -> Response:
        return await respond(lambda: _make_call(request, with_body), checked)

    return Route(action.path, endpoint, methods=[action.method])


def web_handler(handler: Callable[[WebCall], Awaitable[object]]) -> Handler:
    """A handler that wants to know more of its request than its values."""

    async def narrowed(call: Call) -> object:
        assert isinstance(call, WebCall), "pages alone ask for it"
        return await handler(call)

    return narrowed


async def respond(make: Callable[[], Awaitable[WebCall]], handler: Callable[[WebCall], Awaitable[object]]) -> Response:
    try:
        found = await handler(await make())
    except Exception as error:
        response = error_response(error)
        if response is None:
            log.exception("request failed with an unexpected error")
            return JSONResponse({"error": "UNEXPECTED", "message": "The console failed; its log says why."}, 500)
        return response
    return found if isinstance(found, Response) else JSONResponse(found)
