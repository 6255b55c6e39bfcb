"""Messages to systemd over a real datagram socket."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator

import pytest

from moldau.server.sd_notify import SystemdNotifier


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    # The path of a socket must be short, which a test's own folder need not be.
    with (
        tempfile.TemporaryDirectory(prefix="moldau-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own,
    ):
        own.bind(f"{folder}/notify")
        own.setblocking(False)
        yield own


def received(manager: socket.socket) -> list[str]:
    messages = []
    while True:
        try:
            messages.append(manager.recv(4096).decode())
        except BlockingIOError:
            return messages


def address(manager: socket.socket) -> str:
    return str(manager.getsockname())


def test_ready_waiting_and_stopping_are_told(manager: socket.socket) -> None:
    notifier = SystemdNotifier({"NOTIFY_SOCKET": address(manager)})
    notifier.waiting("waiting: no leader\nof the quorum")
    notifier.ready("node 1 is ready")
    notifier.stopping("node 1 stops")
    assert received(manager) == [
        "STATUS=waiting: no leader of the quorum",
        "READY=1\nSTATUS=node 1 is ready",
        "STOPPING=1\nSTATUS=node 1 stops",
    ]
    notifier.close()
    notifier.ready("again")
    assert received(manager) == []


def test_an_abstract_socket() -> None:
    name = f"moldau-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name)
        SystemdNotifier({"NOTIFY_SOCKET": "@" + name}).ready("here")
        assert listener.recv(100) == b"READY=1\nSTATUS=here"


def test_the_watchdog_hears_four_signs_of_life_an_interval(manager: socket.socket) -> None:
    variables = {"NOTIFY_SOCKET": address(manager), "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid())}
    notifier = SystemdNotifier(variables)
    assert variables == {}, "nobody who is started by this process speaks for it"
    for now_s in range(100, 121):
        notifier.alive(float(now_s))
    assert received(manager) == ["WATCHDOG=1"] * 5


def test_a_watchdog_for_somebody_else_is_left_alone(manager: socket.socket) -> None:
    notifier = SystemdNotifier({"NOTIFY_SOCKET": address(manager), "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"})
    notifier.alive(1000.0)
    assert received(manager) == []


@pytest.mark.parametrize("place", ["", "relative", "/nowhere/at/all", "@nobody-listens-here"])
def test_where_nobody_listens_nothing_happens(place: str) -> None:
    notifier = SystemdNotifier({"NOTIFY_SOCKET": place, "WATCHDOG_USEC": "1000000"})
    assert not notifier.is_active
    notifier.ready("node 1")
    notifier.alive(5.0)
    notifier.stopping("node 1")


def test_a_manager_that_does_not_read_holds_nobody_up(manager: socket.socket) -> None:
    notifier = SystemdNotifier({"NOTIFY_SOCKET": address(manager)})
    for _ in range(5000):
        notifier.waiting("x" * 1000)
    notifier.close()
