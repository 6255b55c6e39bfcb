"""Nodes of a cluster that are started with a part of their world replaced."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cluster.cluster_nodes import ClusterNode
from tests.interop.nodes import MoldauNode


class LaunchedNode(ClusterNode):
    """`launcher` is a script that starts the server; its first argument is the node's file `control`."""

    launcher: Path

    @property
    def control(self) -> Path:
        return self.folder / "control"

    def command(self, *words: str) -> list[str]:
        if words[0] != "server":
            return super().command(*words)
        command = MoldauNode.command()
        python = sys.executable if len(command) > 1 else str(Path(command[0]).with_name("python"))
        return [python, str(self.launcher), str(self.control), *words]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "MOLDAU_LOG_LEVEL": "INFO"}
