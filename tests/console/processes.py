"""The console as a real process beside a broker, and a Moldau whose clients have to log in."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from tests.interop.nodes import HOST, MoldauNode, free_ports
from tests.pace import patience

START_SECONDS_MAX = patience(30)
READY = re.compile(r"moldau console ready: (http://\S+)")


class ConsoleProcess:
    """`moldau console` with its output in a file."""

    def __init__(self, folder: Path, bootstrap: str, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_file = folder / "console.log"
        self.audit_file = folder / "audit.jsonl"
        command = [
            *MoldauNode.command(),
            "console",
            "--bootstrap-server",
            bootstrap,
            "--listen",
            f"{HOST}:0",
            "--audit-log",
            str(self.audit_file),
            *arguments,
        ]
        environment = dict(os.environ)
        if "MOLDAU_COMMAND" not in environment:
            import sys

            environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.url = self._wait_until_ready()

    def _wait_until_ready(self) -> str:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            found = READY.search(self.output())
            if found is not None:
                return found[1].rstrip("/")
            assert self.process.poll() is None, f"the console ended while starting:\n{self.output()}"
            assert time.monotonic() < deadline, f"the console is not ready in time:\n{self.output()}"
            time.sleep(0.02)

    def output(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def audit(self) -> str:
        return self.audit_file.read_text() if self.audit_file.exists() else ""

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(patience(10))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the console did not stop:\n{self.output()}") from None


class SecuredNode(MoldauNode):
    """A listener with SCRAM for people, one without a login for the test itself, and rights."""

    def write_properties(self, overrides: dict[str, str]) -> None:
        (self.sasl_port,) = free_ports(1)
        super().write_properties(
            {
                "listeners": f"PLAINTEXT://{HOST}:{self.port},SASL_PLAINTEXT://{HOST}:{self.sasl_port},"
                f"CONTROLLER://{HOST}:{self.controller_port}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port},SASL_PLAINTEXT://{HOST}:{self.sasl_port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
                "CONTROLLER:PLAINTEXT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS;User:admin",
                **overrides,
            }
        )

    @property
    def sasl_bootstrap(self) -> str:
        return f"{HOST}:{self.sasl_port}"
