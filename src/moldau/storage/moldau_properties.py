"""The file moldau.properties in a log directory: which version of Moldau worked on it, and under which incarnations.

Apache Kafka looks at directories and at the files it knows, so the marker does not disturb it and outlives its visits.
That is why it names the incarnations with which the node registered: once the metadata knows another one, somebody else
has opened the directory since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau import __version__
from moldau.protocol.uuids import uuid_from_text, uuid_to_text
from moldau.storage.disk import Disk

MOLDAU_PROPERTIES_FILE = "moldau.properties"
# The marker is written before the registration: starts that did not come that far must not hide the one that did.
INCARNATIONS_MAX = 8


class MoldauProperties(NamedTuple):
    version: str
    incarnation_ids: tuple[bytes, ...] = ()
    """The last one first; none: Moldau formatted the directory and never opened it."""


def write_moldau_properties(disk: Disk, directories: Iterable[str], incarnation_id: bytes | None = None) -> None:
    """A directory without it is as good, only its origin is not known: what fails here fails nothing else."""
    for directory in directories:
        path = f"{directory.rstrip('/')}/{MOLDAU_PROPERTIES_FILE}"
        before = read_moldau_properties(disk, directory)
        ids = () if incarnation_id is None else (incarnation_id, *(before.incarnation_ids if before else ()))
        lines = ["# Moldau was here. Nothing depends on this file.", f"version={__version__}"]
        if ids:
            lines.append("incarnation.ids=" + ",".join(uuid_to_text(each) for each in ids[:INCARNATIONS_MAX]))
        try:
            disk.replace_file(path, ("\n".join(lines) + "\n").encode())
        except OSError:
            continue


def read_moldau_properties(disk: Disk, directory: str) -> MoldauProperties | None:
    """None where there is none, or none that can be understood."""
    try:
        text = disk.read_file(f"{directory.rstrip('/')}/{MOLDAU_PROPERTIES_FILE}").decode()
        values = dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))
        ids = values.get("incarnation.ids", "")
        return MoldauProperties(values["version"], tuple(uuid_from_text(each) for each in ids.split(",") if each))
    except (OSError, ValueError, KeyError):
        return None
