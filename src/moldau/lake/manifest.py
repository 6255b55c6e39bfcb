"""The commits of a plain parquet table: numbered manifests, each created whole or not at all.

`_moldau/commits/N.json` adds and removes files and has the positions and the schema after it. It is written aside,
flushed to disk and linked to its name, which fails if the name exists: of two writers that saw N-1, one makes N.
Every so often a snapshot of all files is kept, so that opening a table does not read its whole history.
"""

from __future__ import annotations

import base64
import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.lake.data_file import DataFile
from moldau.lake.errors import CommitConflict, LakeError, NoTableError
from moldau.lake.extras import need
from moldau.lake.lock import DIRECTORY
from moldau.lake.positions import Positions

COMMITS = f"{DIRECTORY}/commits"
SNAPSHOTS = f"{DIRECTORY}/snapshots"
LAYOUT = 1
SNAPSHOT_EVERY = 20
DIGITS = 20


@dataclass
class TableState:
    """All that the manifests up to a version say."""

    version: int = -1
    schema: Any = None
    partition_by: tuple[str, ...] = ()
    positions: Positions = field(default_factory=Positions)
    files: dict[str, DataFile] = field(default_factory=dict)
    # Files that are no part of the table any more but may still be read or be in place: path -> when, in ms.
    removed: dict[str, int] = field(default_factory=dict)
    commits: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Manifest:
    """One commit, before it has a number."""

    operation: str
    positions: Positions
    schema: Any
    partition_by: tuple[str, ...]
    add: Sequence[DataFile] = ()
    remove: Sequence[str] = ()
    # Removed files that vacuum has deleted.
    forget: Sequence[str] = ()
    details: dict[str, object] = field(default_factory=dict)


def read_state(directory: str) -> TableState:
    """The newest state of the table; LakeError where manifests are missing or damaged."""
    numbers = _numbers(os.path.join(directory, COMMITS))
    if not numbers:
        raise NoTableError(f"There is no table in {directory}.")
    newest = numbers[-1]
    state = TableState()
    usable = [number for number in _numbers(os.path.join(directory, SNAPSHOTS)) if number <= newest]
    if usable:
        _apply_snapshot(state, _read(_place(directory, SNAPSHOTS, usable[-1])))
    for number in range(state.version + 1, newest + 1):
        _apply(state, _read(_place(directory, COMMITS, number)))
    return state


def write_commit(directory: str, state: TableState, manifest: Manifest) -> TableState:
    """Commits on top of the state, and returns the new one; CommitConflict if somebody else did before."""
    number = state.version + 1
    text = {
        "layout": LAYOUT,
        "version": number,
        "timestamp": time.time_ns() // 1_000_000,
        "operation": manifest.operation,
        "details": manifest.details,
        "positions": json.loads(manifest.positions.to_json()),
        "columns": {item.name: str(item.type) for item in manifest.schema},
        "schema": base64.b64encode(manifest.schema.serialize().to_pybytes()).decode(),
        "partition_by": list(manifest.partition_by),
        "add": [file.to_object() for file in manifest.add],
        "remove": list(manifest.remove),
        "forget": list(manifest.forget),
    }
    create_whole(_place(directory, COMMITS, number), json.dumps(text).encode())
    _apply(state, text)
    if number % SNAPSHOT_EVERY == SNAPSHOT_EVERY - 1:
        _write_snapshot(directory, state, text)
    return state


def create_whole(place: str, data: bytes) -> None:
    """Makes a file that did not exist, with all its bytes or not at all; CommitConflict if it exists."""
    parent = os.path.dirname(place)
    os.makedirs(parent, exist_ok=True)
    aside = os.path.join(parent, f".{os.path.basename(place)}.{uuid.uuid4().hex}")
    try:
        with open(aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, place)
    except FileExistsError as error:
        raise CommitConflict(place) from error
    finally:
        if os.path.exists(aside):
            os.unlink(aside)
    sync_directory(parent)


def sync_directory(directory: str) -> None:
    """Names that were made in the directory survive a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def prune(directory: str, before_ms: int) -> int:
    """Removes manifests and snapshots that a newer snapshot replaces and that are older; returns how many."""
    snapshots = _numbers(os.path.join(directory, SNAPSHOTS))
    removed = 0
    for kind, numbers in ((SNAPSHOTS, snapshots[:-1]), (COMMITS, _numbers(os.path.join(directory, COMMITS)))):
        for number in numbers:
            place = _place(directory, kind, number)
            if snapshots and number < snapshots[-1] and os.path.getmtime(place) * 1000 < before_ms:
                os.unlink(place)
                removed += 1
    return removed


def _write_snapshot(directory: str, state: TableState, last: dict[str, Any]) -> None:
    text = {
        **last,
        "add": [file.to_object() for file in state.files.values()],
        "remove": [],
        "forget": [],
        "removed": state.removed,
    }
    try:
        create_whole(_place(directory, SNAPSHOTS, state.version), json.dumps(text).encode())
    except CommitConflict:
        pass  # the same, by somebody who read the same manifests


def _apply_snapshot(state: TableState, text: dict[str, Any]) -> None:
    state.version = int(text["version"]) - 1
    _apply(state, text)
    state.removed = {str(path): int(when) for path, when in text["removed"].items()}
    state.commits.clear()


def _apply(state: TableState, text: dict[str, Any]) -> None:
    if text["layout"] > LAYOUT:
        raise LakeError(f"The table was written by a newer Moldau (layout {text['layout']}): upgrade this one.")
    state.version = int(text["version"])
    state.schema = need("pyarrow").ipc.read_schema(need("pyarrow").py_buffer(base64.b64decode(text["schema"])))
    state.partition_by = tuple(text["partition_by"])
    state.positions = Positions.from_json(json.dumps(text["positions"]))
    for path in text["remove"]:
        state.files.pop(path, None)
        state.removed[path] = int(text["timestamp"])
    for path in text["forget"]:
        state.removed.pop(path, None)
    for item in text["add"]:
        file = DataFile.from_object(item)
        state.files[file.path] = file
    state.commits.append({name: text[name] for name in ("version", "timestamp", "operation", "details")})


def _numbers(directory: str) -> list[int]:
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit())


def _place(directory: str, kind: str, number: int) -> str:
    return os.path.join(directory, kind, f"{number:0{DIGITS}d}.json")


def _read(place: str) -> dict[str, Any]:
    try:
        with open(place, encoding="utf-8") as file:
            text: dict[str, Any] = json.load(file)
        return text
    except FileNotFoundError:
        raise LakeError(f"The manifest {place} is missing: restore it from a backup of the directory.") from None
    except ValueError:
        raise LakeError(f"The manifest {place} is damaged: restore it from a backup of the directory.") from None
