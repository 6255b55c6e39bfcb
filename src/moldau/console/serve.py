"""Runs the console: one process, one event loop, until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable

from moldau.actions.addresses import listen, url_of
from moldau.actions.serving import keep_small, serve
from moldau.console.app import make_app
from moldau.console.settings import ConsoleSettings


def run(settings: ConsoleSettings, on_ready: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM; on_ready is told the address. Raises CannotListen."""
    keep_small()
    listener = listen(settings.host, settings.port)
    address = url_of(listener, settings.host, "https" if settings.tls_certificate else "http")
    serve(make_app(settings), listener, lambda: on_ready(address), settings.tls_certificate, settings.tls_key)
