"""Sessions for the pages: who is logged in, what this console may do, logging in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from moldau import __version__
from moldau.actions.refusals import Refused
from moldau.client.errors import ClientError, NetworkError
from moldau.console.access import COOKIE, check_csrf
from moldau.console.calls import read_body
from moldau.console.errors import LoginWanted, error_response
from moldau.console.sessions import NOBODY, Session


def _row(request: Request, session: Session) -> dict[str, object]:
    settings = request.app.state.console.settings
    return {
        "user": session.user,
        "logged_in": session.user != NOBODY,
        "login_wanted": session.viewer is None,
        "may_change": settings.may_change,
        "csrf": session.csrf,
        "bootstrap": settings.bootstrap,
        "has_pipelines": bool(settings.runs),
        "version": __version__,
    }


def _respond(request: Request, session: Session, new: bool) -> Response:
    response = JSONResponse(_row(request, session))
    if new:
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, session.id, httponly=True, samesite="strict", path="/", secure=secure)
    return response


async def show_session(request: Request) -> Response:
    """The session of this browser; begins one where there is none."""
    sessions = request.app.state.console.sessions
    session = sessions.find(request.cookies.get(COOKIE))
    try:
        if session is not None:
            return _respond(request, session, new=False)
        return _respond(request, await sessions.begin(), new=True)
    except Refused as error:
        return error_response(error) or Response(status_code=500)


async def log_in(request: Request) -> Response:
    """With a user of the broker's; the response to a wrong password is the broker's too."""
    console = request.app.state.console
    address = request.client.host if request.client else ""
    user = ""
    try:
        session = console.sessions.find(request.cookies.get(COOKIE))
        if session is None:
            raise Refused("The page is out of date. Load it again.", 403, "CSRF")
        check_csrf(request, session)
        body = await read_body(request)
        user, password, mechanism = (str(body.get(name) or "") for name in ("user", "password", "mechanism"))
        session = await console.sessions.log_in(session, user, password, mechanism, address)
    except (ClientError, Refused) as error:
        console.audit.note(user, address, "log in", "", None, f"{error.name}: {error.message}")
        if isinstance(error, ClientError) and not isinstance(error, NetworkError):
            error = LoginWanted(error.message)
        return error_response(error) or Response(status_code=500)
    console.audit.note(user, address, "log in", "")
    return _respond(request, session, new=True)


async def log_out(request: Request) -> Response:
    """Ends the session, its connections and its credentials."""
    console = request.app.state.console
    session = console.sessions.find(request.cookies.get(COOKIE))
    try:
        if session is not None:
            check_csrf(request, session)
            console.sessions.log_out(session)
            console.audit.note(session.user, request.client.host if request.client else "", "log out", "")
    except Refused as error:
        return error_response(error) or Response(status_code=500)
    response = JSONResponse({})
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response


ROUTES = [
    Route("/api/session", show_session, methods=["GET"]),
    Route("/api/session/login", log_in, methods=["POST"]),
    Route("/api/session/logout", log_out, methods=["POST"]),
]
