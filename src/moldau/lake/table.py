"""A lake table as a load sees it, whatever its format: schema, partitions, positions, and one conditional commit.

The one rule for every format: a commit names files and positions together, and goes through only if the positions
are still those that the writer read before. `append()` is the only way in for loads; formats implement `_commit()`,
which either commits everything, or raises CommitConflict and has committed nothing.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from moldau.client.results import TopicPartition
from moldau.lake.data_file import DataFile
from moldau.lake.errors import CommitConflict, LakeError, LostRaceError
from moldau.lake.positions import Positions

FORMATS = ("delta", "iceberg", "parquet")
# Others commit too (optimize, other loads of other topics); each try is against the newest state.
COMMIT_TRIES = 20
# The day of a record's timestamp: a partition that is made, not found in the rows.
DATE = "date"
TIMESTAMP = "timestamp"
# What lies in the directory of a table whose creation was killed.
LEFT_BY_KILLS = ("_moldau", "_delta_log", "metadata")


@dataclass(frozen=True)
class Partitioning:
    """How files are divided. Delta and parquet keep the values in directories and in the log, Iceberg in the files."""

    columns: tuple[str, ...] = ()
    # Whether files keep the columns that they are divided by.
    in_files: bool = False

    @property
    def by_date(self) -> bool:
        return DATE in self.columns


@dataclass(frozen=True)
class Note:
    """What a commit says about itself, for people and for `moldau lake describe`."""

    operation: str
    details: Mapping[str, object]


class LakeTable(ABC):
    """An open table. Its state is that of the last refresh(); a commit is conditional on it."""

    format: str = ""

    def __init__(self, path: str) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} ({self.format})"

    @abstractmethod
    def refresh(self) -> None:
        """Reads the newest state."""

    @property
    @abstractmethod
    def version(self) -> int:
        """A number that grows with each commit; for Iceberg the sequence number."""

    @abstractmethod
    def schema(self) -> Any:
        """The pyarrow schema of the rows, columns of partitions included."""

    @property
    @abstractmethod
    def partitioning(self) -> Partitioning: ...

    @abstractmethod
    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        """Where the table stands in these partitions; those that it never loaded are missing."""

    @abstractmethod
    def known_positions(self) -> Positions:
        """Where the table stands in all topics that it remembers."""

    @abstractmethod
    def forget(self, topic: str) -> None:
        """Forgets the positions of a topic, in a commit of its own."""

    @abstractmethod
    def history(self, count: int) -> list[dict[str, Any]]:
        """The newest commits, the newest first: version, timestamp (ms), operation, details."""

    @abstractmethod
    def files(self) -> list[DataFile]:
        """The files of the newest state that refresh() saw."""

    @abstractmethod
    def add_columns(self, fields: Sequence[Any]) -> None:
        """Adds nullable columns (pyarrow fields) in a commit of its own."""

    @abstractmethod
    def _commit(self, files: Sequence[DataFile], before: Positions, after: Positions, note: Note) -> int: ...

    @property
    def write_directory(self) -> str:
        """Where tasks put files, below the table's directory, when it is not the place of the file's path."""
        return ""

    def evolve(self, schema: Any) -> None:
        """Adds the columns of the schema that the table lacks, and reads the newest state.

        To be called before positions are read: a refresh between positions and commit would hide other writers.
        """
        self.refresh()
        for _ in range(COMMIT_TRIES):
            added = new_columns(self.schema(), schema, self.path)
            if not added:
                return
            try:
                self.add_columns(added)
            except CommitConflict:
                pass
            self.refresh()
        raise LakeError(f"{self.path} changes faster than columns can be added; try again later.")

    def append(self, files: Sequence[DataFile], before: Positions, after: Positions, note: Note) -> int:
        """Commits files and positions; returns the version. LostRaceError if another writer moved the positions."""
        self._check_files(files)
        return self.commit_if(before, after, lambda: self._commit(files, before, after, note))

    def commit_if(self, before: Positions, after: Positions, commit: Callable[[], int]) -> int:
        """Calls commit() until it goes through, as long as the positions are those before."""
        moved = after.changed_since(before)
        for _ in range(COMMIT_TRIES):
            try:
                return commit()
            except CommitConflict:
                self.refresh()
                if not self.positions(moved).agrees_with(before, moved):
                    raise LostRaceError(
                        f"Another load moved the offsets of {self.path} in the meantime, so nothing of this round was"
                        " committed. Let one load at a time write to a table; `moldau lake vacuum`"
                        " removes unused files."
                    ) from None
        raise LakeError(f"{self.path} changes faster than this load can commit; start it again later.")

    def _check_files(self, files: Sequence[DataFile]) -> None:
        """What a commit names must be there: somebody may have tidied up below a load that was paused for long."""
        for file in files:
            place = self._written_place(file)
            if not os.path.isfile(place) or os.path.getsize(place) != file.size:
                raise LakeError(
                    f"{place} is missing or was changed after a task wrote it, so nothing was"
                    " committed. Do executors and"
                    " driver share this directory? Start the load again."
                )

    def _written_place(self, file: DataFile) -> str:
        if self.write_directory:
            return os.path.join(self.path, self.write_directory, os.path.basename(file.path))
        return os.path.join(self.path, file.path)


def local_path(text: str) -> str:
    """The directory of a table; file: URLs are directories too. LakeError for anything further away."""
    parts = urlsplit(text)
    if parts.scheme == "file":
        return os.path.abspath(unquote(parts.path))
    if parts.scheme and len(parts.scheme) > 1:
        raise LakeError(
            f"{text} is not a directory: tables are written to directories that driver and executors share"
            " (local, NFS or mounted"
            " object stores)."
        )
    return os.path.abspath(text)


def check_partition_columns(schema: Any, columns: Sequence[str]) -> None:
    """Raises LakeError for columns that rows cannot be divided by."""
    from moldau.lake.extras import need

    pa = need("pyarrow")
    for name in columns:
        if name == DATE and name not in schema.names:
            if TIMESTAMP not in schema.names:
                raise LakeError("Rows without a column timestamp cannot be partitioned by date.")
            continue
        if name not in schema.names:
            raise LakeError(
                f"There is no column {name} to partition by: there are {', '.join(schema.names)}, and date."
            )
        kind = schema.field(name).type
        if not (
            pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind)
        ):
            raise LakeError(f"Column {name} is {kind}: partitions need text, whole numbers, booleans or dates.")
    if len(set(columns)) == len(schema.names):
        raise LakeError("Every column would be one of the partitions: leave some for the files.")


def new_columns(table: Any, wanted: Any, path: str) -> list[Any]:
    """The fields of `wanted` that the table's schema lacks; LakeError where a column has another type."""
    known = {field.name: field.type for field in table}
    lower = {name.lower(): name for name in known}
    added = []
    for field in wanted:
        if field.name not in known:
            twin = lower.get(field.name.lower())
            if twin is not None:
                raise LakeError(
                    f"Column {field.name} differs from column {twin} of {path} in capitals only: rename one of them."
                )
            added.append(field)
        elif known[field.name] != field.type:
            raise LakeError(
                f"Column {field.name} of {path} is {known[field.name]}, and what is loaded now is"
                f" {field.type}. Types of"
                " columns do not change: give the field another name, or load into another table."
            )
    return added
