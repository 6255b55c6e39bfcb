"""Addresses to listen at: whether others can reach one, under which names, and the socket."""

from __future__ import annotations

import ipaddress
import socket


class CannotListen(Exception):
    """The address cannot be had; the text says why."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_of_this_machine() -> tuple[str, ...]:
    """Under which somebody who listens to others is asked for."""
    return tuple({socket.gethostname(), socket.getfqdn()})


def listen(host: str, port: int) -> socket.socket:
    """The socket of an address; raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotListen(f"{host}:{port} cannot be had: {reason}.") from None
    listener.listen(128)
    return listener


def url_of(listener: socket.socket, host: str, scheme: str = "http") -> str:
    """Where a listening socket is found, with the port that it has got."""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{listener.getsockname()[1]}/"
