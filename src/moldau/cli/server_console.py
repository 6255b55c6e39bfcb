"""The console beside `moldau server --console`: a process of its own that begins and ends with the node."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from moldau.config.listeners import is_every_address

if TYPE_CHECKING:
    from moldau.server.process import ServerProcess

# Ends a process when its standard input does, so that not even a killed node leaves one behind.
PARENT_VARIABLE = "MOLDAU_STOP_AT_END_OF_STDIN"
STOP_S = 5.0
# Which of several listeners the console uses; those with TLS need to be told whom to trust.
PREFERRED = ("PLAINTEXT", "SASL_PLAINTEXT")


class ConsoleBeside:
    """Starts and stops the console's process."""

    def __init__(self, listen: str) -> None:
        """listen: HOST:PORT for browsers; empty: the console's default."""
        self._listen = listen
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, process: ServerProcess) -> None:
        """Called by the node when it is ready."""
        address = find_address(process)
        if address is None:
            print(
                "moldau server: no console: all listeners for clients have TLS. Start `moldau console` by itself, with"
                " the settings of a client.",
                file=sys.stderr,
            )
            return
        command = [sys.executable, "-m", "moldau", "console", "--bootstrap-server", address]
        if self._listen:
            command += ["--listen", self._listen]
        # The pipe is never written to: its end is the sign.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env={**os.environ, PARENT_VARIABLE: "1"}, start_new_session=True
        )

    def stop(self) -> None:
        """Ends the process, and waits for that a little."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def find_address(process: ServerProcess) -> str | None:
    """Where clients on this machine reach the node without TLS; None where they do not."""
    protocols = {endpoint.name: endpoint.protocol for endpoint in process.config.broker_listeners()}
    for wanted in PREFERRED:
        for listener in process.listeners:
            if protocols.get(listener.name) == wanted:
                host = "localhost" if is_every_address(listener.host) else listener.host
                return f"[{host}]:{listener.port}" if ":" in host else f"{host}:{listener.port}"
    return None
