"""A node of a cluster whose disk can be made to get stuck."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import stuck_disk_node
from tests.cluster.launched_node import LaunchedNode


class StuckNode(LaunchedNode):
    """Its disk is stuck for as long as its file `stuck` is there."""

    launcher = Path(stuck_disk_node.__file__)

    @property
    def control(self) -> Path:
        return self.stuck

    @property
    def stuck(self) -> Path:
        return self.folder / "stuck"

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
