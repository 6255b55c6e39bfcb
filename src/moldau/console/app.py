"""The application: all routes, the pages' files, and what lives as long as the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from moldau.actions import (
    acls,
    brokers,
    configs,
    group_changes,
    groups,
    messages,
    overview,
    produce,
    quotas,
    topic_changes,
    topics,
    transactions,
    users,
)
from moldau.actions.addresses import names_of_this_machine
from moldau.actions.audit import Audit
from moldau.console import downloads, live, pipelines, session_api
from moldau.console.access import Access
from moldau.console.calls import route_of
from moldau.console.sessions import Sessions
from moldau.console.settings import ConsoleSettings
from moldau.console.shell import TYPES, render_shell, static_file, version_of_files

A_YEAR = 365 * 24 * 3600
COMPRESS_FROM_BYTES = 2_000


class Console:
    """What all requests share."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self.settings = settings
        self.sessions = Sessions(settings)
        self.audit = Audit(settings.audit_file)


async def show_page(request: Request) -> Response:
    """The same page for every address: what it shows is up to the address and the API."""
    return HTMLResponse(render_shell(request.url.path))


async def show_file(request: Request) -> Response:
    """A file of the pages. Its address has a hash of all files, so browsers may keep it for good."""
    name = request.path_params["name"]
    current = request.path_params["version"] == version_of_files()
    return _send_file(request, name, f"public, max-age={A_YEAR}, immutable" if current else "no-store")


async def show_icon(request: Request) -> Response:
    return _send_file(request, "icon.svg", "no-store")


def _send_file(request: Request, name: str, caching: str) -> Response:
    found = static_file(name)
    if found is None:
        return PlainTextResponse("There is no such file.\n", 404)
    headers = {"cache-control": caching, "vary": "accept-encoding"}
    kind = TYPES[name[name.rindex(".") :]]
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, headers={**headers, "content-encoding": "gzip"}, media_type=kind)
    return Response(found.plain, headers=headers, media_type=kind)


async def tell_alive(request: Request) -> Response:
    """For whoever watches the process; says nothing about the cluster."""
    return PlainTextResponse("ok\n")


async def no_such_api(request: Request) -> Response:
    return JSONResponse({"error": "NOT_FOUND", "message": "There is nothing at this address."}, 404)


def make_app(settings: ConsoleSettings) -> Starlette:
    """The application for these settings."""
    console = Console(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        ending = asyncio.get_running_loop().create_task(console.sessions.end_idle_forever())
        warming = asyncio.get_running_loop().create_task(console.sessions.warm_up())
        try:
            yield
        finally:
            ending.cancel()
            warming.cancel()
            await console.sessions.close()
            console.audit.close()

    subjects = (
        overview,
        topics,
        topic_changes,
        configs,
        brokers,
        messages,
        downloads,
        live,
        produce,
        groups,
        group_changes,
        transactions,
        quotas,
        acls,
        users,
        pipelines,
    )
    routes = [*session_api.ROUTES, *(route_of(action) for subject in subjects for action in subject.ROUTES)]
    routes += [
        Route("/static/{version}/{name:path}", show_file, methods=["GET"]),
        Route("/favicon.ico", show_icon, methods=["GET"]),
        Route("/healthz", tell_alive, methods=["GET"]),
        Route("/api/{rest:path}", no_such_api, methods=["GET", "POST"]),
        Route("/{rest:path}", show_page, methods=["GET"]),
    ]
    names = settings.allowed_hosts if settings.on_loopback else (*settings.allowed_hosts, *names_of_this_machine())
    middleware = [
        Middleware(Access, allowed_hosts=(settings.host, *names)),
        Middleware(GZipMiddleware, minimum_size=COMPRESS_FROM_BYTES, compresslevel=5),
    ]
    app = Starlette(routes=routes, middleware=middleware, lifespan=lifespan)
    app.state.console = console
    return app
