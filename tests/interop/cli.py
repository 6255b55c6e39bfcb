"""Runs `moldau` as a process against one broker."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.interop.nodes import MoldauNode, Node
from tests.pace import patience

SECONDS_MAX = patience(60)


class Cli:
    """Runs `moldau` against one broker."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.environment = MoldauNode(folder).environment()
        self.environment["MOLDAU_BOOTSTRAP_SERVER"] = node.bootstrap
        self.environment["XDG_CONFIG_HOME"] = str(folder / "config")

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*MoldauNode.command(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            # A shell's background jobs ignore Ctrl-C, and so would their children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        process = self.start(*arguments)
        out, err = process.communicate(stdin, SECONDS_MAX)
        assert b"Traceback" not in err, err.decode()
        return process.returncode, out, err.decode()

    def ok(self, *arguments: str, stdin: bytes = b"") -> bytes:
        code, out, err = self.run(*arguments, stdin=stdin)
        assert code == 0, f"moldau {' '.join(arguments)}: {code}\n{err}"
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--format", "json"))
