"""A node as a service of systemd: a real process and a real socket in the place of the service manager."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.nodes import START_SECONDS_MAX, MoldauNode

pytestmark = pytest.mark.interop


class Service(MoldauNode):
    def __init__(self, folder: Path, address: str) -> None:
        self.address = address
        super().__init__(folder)

    def environment(self) -> dict[str, str]:
        # As systemd would for WatchdogSec=2; the pid is left out, which means everybody.
        return {**super().environment(), "NOTIFY_SOCKET": self.address, "WATCHDOG_USEC": "2000000"}


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    with (
        tempfile.TemporaryDirectory(prefix="moldau-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own,
    ):
        own.bind(os.path.join(folder, "notify"))
        own.settimeout(START_SECONDS_MAX)
        yield own


def test_systemd_hears_when_a_node_is_ready_alive_and_stopping(tmp_path: Path, manager: socket.socket) -> None:
    node = Service(tmp_path / "node", manager.getsockname())
    node.format()
    node.start()
    try:
        assert manager.recv(4096) == b"READY=1\nSTATUS=node 1 is ready"
        assert manager.recv(4096) == b"WATCHDOG=1"
        assert manager.recv(4096) == b"WATCHDOG=1"
    finally:
        node.stop()
    rest = manager.recv(4096)
    while rest == b"WATCHDOG=1":
        rest = manager.recv(4096)
    assert rest == b"STOPPING=1\nSTATUS=node 1 gives up its leaderships"
