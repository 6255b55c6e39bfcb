"""Starts and stops single nodes as real processes on loopback: the shared part of Moldau and of Apache Kafka."""

from __future__ import annotations

import base64
import fcntl
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.pace import patience

HOST = "127.0.0.1"
START_SECONDS_MAX = patience(60)
STOP_SECONDS_MAX = patience(30)
# Timestamps of test records: an hour old, so that neither retention nor the limit for future timestamps takes offence.
RECENT_MS = int(time.time()) // 1000 * 1_000_000 - 3_600_000


# Below those that the system gives to outgoing connections: one of these could take a port while its broker is down.
PORTS = range(10_000, 32_000)


_taken: set[int] = set()
_claims: list[int] = []


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, and that no other test has got or gets while this process lives."""
    held: list[socket.socket] = []
    while len(held) < count:
        port = random.SystemRandom().choice(PORTS)
        if not _claim(port):
            continue
        listener = socket.socket()
        try:
            listener.bind((HOST, port))
        except OSError:
            listener.close()
        else:
            held.append(listener)
    ports: list[int] = [listener.getsockname()[1] for listener in held]
    for listener in held:
        listener.close()
    return ports


def _claim(port: int) -> bool:
    """A locked byte of a file that all tests on this machine share: the lock ends with the process."""
    if port in _taken:
        return False
    if not _claims:
        path = Path(tempfile.gettempdir()) / f"moldau-test-ports-{os.getuid()}"
        _claims.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        fcntl.lockf(_claims[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _taken.add(port)
    return True


def random_cluster_id() -> str:
    """22 characters; the first is a letter, because tools take a leading dash for an option."""
    return "M" + base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")[1:-1] + "A"


class Node:
    """One combined broker and controller with a data directory of its own."""

    name = "node"

    def __init__(self, folder: Path, overrides: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port, self.controller_port = free_ports(2)
        self.host = HOST
        self.bootstrap = f"{HOST}:{self.port}"
        self.cluster_id = random_cluster_id()
        self.process: subprocess.Popen[bytes] | None = None
        self.log_file = folder / "output.log"
        self.properties = folder / "server.properties"
        folder.mkdir(parents=True, exist_ok=True)
        self.write_properties(overrides or {})

    def write_properties(self, overrides: dict[str, str]) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self.controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **overrides,
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def format_command(self) -> list[str]:
        raise NotImplementedError

    def server_command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def format(self) -> None:
        done = subprocess.run(self.format_command(), capture_output=True, text=True, env=self.environment())
        assert done.returncode == 0, f"{self.name}: formatting failed:\n{done.stdout}{done.stderr}"

    def start(self) -> None:
        self.start_process()
        self.wait_until_ready()

    def start_process(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.server_command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment()
            )

    def wait_until_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended while starting:\n{self.output()[-3000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{self.name} is not ready in time:\n{self.output()[-3000:]}")
            time.sleep(0.02)

    def ready(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), 1).close()
        except OSError:
            return False
        return True

    def output(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def stop(self) -> int:
        """Asks the process to end and returns its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} did not stop in {STOP_SECONDS_MAX} s:\n{self.output()[-3000:]}"
            ) from None
        self.process = None
        return code

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class MoldauNode(Node):
    """The `moldau` command named by MOLDAU_COMMAND, or the sources under test."""

    name = "moldau"

    @staticmethod
    def command() -> list[str]:
        named = os.environ.get("MOLDAU_COMMAND")
        return shlex.split(named) if named else [sys.executable, "-m", "moldau.cli.main"]

    def environment(self) -> dict[str, str]:
        environment = super().environment()
        if "MOLDAU_COMMAND" not in environment:
            environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        return environment

    def format_command(self) -> list[str]:
        return [*self.command(), "storage", "format", "-t", self.cluster_id, "-c", str(self.properties)]

    def server_command(self) -> list[str]:
        return [*self.command(), "server", str(self.properties)]
