"""A node of a cluster whose disk can be made to get stuck."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cluster import stuck_disk_node
from tests.cluster.cluster_nodes import ClusterNode
from tests.interop.nodes import MoldauNode


class StuckNode(ClusterNode):
    """Its disk is stuck for as long as its file `stuck` is there."""

    @property
    def stuck(self) -> Path:
        return self.folder / "stuck"

    def command(self, *words: str) -> list[str]:
        if words[0] != "server":
            return super().command(*words)
        command = MoldauNode.command()
        python = sys.executable if len(command) > 1 else str(Path(command[0]).with_name("python"))
        return [python, stuck_disk_node.__file__, str(self.stuck), *words]

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "MOLDAU_LOG_LEVEL": "INFO"}

    @property
    def stuck_partitions(self) -> int:
        """Of whose segments a sync waits."""
        text = self.stuck.read_text() if self.stuck.exists() else ""
        return len({line.rsplit("/", 2)[1] for line in text.splitlines()})

    @property
    def synced_by_the_loop(self) -> str:
        """What its loop has synced itself while the disk was stuck, a line each."""
        file = self.stuck.with_name(f"{self.stuck.name}.loop")
        return file.read_text() if file.exists() else ""
