"""Whether a directory may become a log directory: only one that is empty, or formatted already, is touched.

Formatting writes into a directory, and the node that follows treats what it finds there as its own. So a directory
without meta.properties is left alone when it has anything in it, unless somebody insists (`--force`), and always when
it is the directory of a cluster that `moldau up` runs. Hidden files, `lost+found` and what an interrupted formatting
left behind do not count.
"""

from __future__ import annotations

import json
import re

from moldau.protocol.topic_names import METADATA_DIRECTORY
from moldau.storage.disk import Disk
from moldau.storage.meta_properties import META_PROPERTIES_FILE

CLUSTER_PLAN_FILE = "cluster.json"
NAMES_SHOWN_MAX = 3

_HALF_FORMATTED = re.compile(r"(bootstrap\.checkpoint|moldau\.properties|meta\.properties)(\.tmp)?")
_FIRST_SNAPSHOT = re.compile(r"0{20}-0{10}\.checkpoint(\.tmp)?")


class DirectoryInUse(Exception):
    """The directory is not one to format; the text says why and what to do."""


def check_unformatted_directory(disk: Disk, path: str, force: bool = False) -> None:
    """Raises DirectoryInUse unless a directory without meta.properties may be formatted."""
    check_no_cluster(disk, path)
    found = [] if force else _what_is_in(disk, path)
    if found:
        more = f" and {len(found) - NAMES_SHOWN_MAX} more" if len(found) > NAMES_SHOWN_MAX else ""
        raise DirectoryInUse(
            f"{path} was not formatted for a node and is not empty: it has {', '.join(found[:NAMES_SHOWN_MAX])}{more} "
            "in it. Choose an empty directory, or format this one nevertheless with --force."
        )


def check_no_cluster(disk: Disk, path: str) -> None:
    """Raises DirectoryInUse when `moldau up` keeps a cluster in the directory."""
    if not is_formatted(disk, path) and is_cluster_directory(disk, path):
        raise DirectoryInUse(
            f"{path} is the directory of a cluster: run it with `moldau up --data-dir {path}`, or choose another "
            "directory for a single node with --data-dir."
        )


def is_formatted(disk: Disk, path: str) -> bool:
    return disk.exists(f"{path.rstrip('/')}/{META_PROPERTIES_FILE}")


def is_cluster_directory(disk: Disk, path: str) -> bool:
    try:
        plan = json.loads(disk.read_file(f"{path.rstrip('/')}/{CLUSTER_PLAN_FILE}"))
    except (OSError, ValueError):
        return False
    return isinstance(plan, dict) and "cluster_id" in plan and "nodes" in plan


def _what_is_in(disk: Disk, path: str) -> list[str]:
    if not disk.is_directory(path):
        return []
    return sorted(name for name in disk.list(path) if not _does_not_count(disk, path, name))


def _does_not_count(disk: Disk, path: str, name: str) -> bool:
    if name.startswith(".") or name == "lost+found" or _HALF_FORMATTED.fullmatch(name):
        return True
    if name != METADATA_DIRECTORY:
        return False
    inside = f"{path.rstrip('/')}/{name}"
    return disk.is_directory(inside) and all(_FIRST_SNAPSHOT.fullmatch(each) for each in disk.list(inside))
