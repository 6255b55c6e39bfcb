"""Where things lie in the image: two layouts that others' tools know, apache/kafka's and confluentinc/cp-kafka's."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT_VARIABLE = "MOLDAU_CONTAINER_ROOT"
"""In front of every path, for whoever runs the scripts outside of a container."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one of the two images."""

    name: str
    properties: Path
    """What `configure` writes and `launch` reads."""
    mounted: Path | None
    """A server.properties that the user mounts; the environment is stronger."""
    secrets: Path
    data: Path
    old_data: tuple[Path, ...]
    """Where the original keeps its data when nobody says where; taken if somebody has mounted a directory there."""
    shared_memory: Path

    def path_to_write(self) -> Path:
        """The properties' place, or another one where the root of the file system is read-only."""
        if _can_write(self.properties):
            return self.properties
        for place in self._other_places():
            if _can_write(place):
                return place
        return self.properties

    def path_to_read(self) -> Path:
        """What was written last; whoever asks may be another user, to whom other places are writable."""
        written = [path for path in (self.properties, *self._other_places()) if path.exists()]
        return max(written, key=lambda path: path.stat().st_mtime_ns, default=self.properties)

    def default_data(self) -> Path:
        return next((path for path in self.old_data if path.is_dir()), self.data)

    def _other_places(self) -> list[Path]:
        directories = [self.shared_memory, self.data]
        try:
            directories.insert(0, Path(tempfile.gettempdir()))
        except FileNotFoundError:
            pass  # nothing for temporary files at all
        return [directory / f".moldau-{self.name}.properties" for directory in directories]


def find_layout(name: str) -> Layout:
    """`apache` or `confluent`."""
    root = Path(os.environ.get(ROOT_VARIABLE) or "/")
    secrets, data, memory = root / "etc/kafka/secrets", root / "var/lib/kafka/data", root / "dev/shm"
    if name == "apache":
        old = (root / "tmp/kraft-combined-logs", root / "tmp/kafka-logs")
        mounted = root / "mnt/shared/config/server.properties"
        return Layout(name, root / "opt/kafka/config/server.properties", mounted, secrets, data, old, memory)
    if name == "confluent":
        return Layout(name, root / "etc/kafka/kafka.properties", None, secrets, data, (), memory)
    raise ValueError(f"There is no layout {name!r}: apache or confluent.")


def _can_write(path: Path) -> bool:
    return os.access(path if path.exists() else path.parent, os.W_OK)
