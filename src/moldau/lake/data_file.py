"""A Parquet file that a task has written and a commit may add: where it is, what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

# What Hive, Spark and Delta call the directory of rows without a value.
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"

# What must not stand in the name of a directory; the rest may, and is easier to read.
_SAFE = " !#$&()+,;@[]^`{}~'"


@dataclass(frozen=True)
class DataFile:
    """Plain values, so that it travels from an executor to the driver and into a manifest as JSON."""

    # Below the table's directory, as it is on disk.
    path: str
    size: int
    rows: int
    # The value of each partition column as text, None for null.
    partition: Mapping[str, str | None] = field(default_factory=dict)
    # Column -> (lowest, highest) of numbers; timestamps are microseconds.
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    nulls: Mapping[str, int] = field(default_factory=dict)

    def to_object(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_object(data: Mapping[str, Any]) -> DataFile:
        return DataFile(
            str(data["path"]),
            int(data["size"]),
            int(data["rows"]),
            {str(name): None if value is None else str(value) for name, value in data["partition"].items()},
            {str(name): (int(pair[0]), int(pair[1])) for name, pair in data["ranges"].items()},
            {str(name): int(count) for name, count in data["nulls"].items()},
        )

    def to_json(self) -> str:
        return json.dumps(self.to_object(), separators=(",", ":"))


def partition_directory(partition: Mapping[str, str | None]) -> str:
    """`date=2026-11-15/country=AT`, the directory of a partition below the table's; empty for no partition."""
    return "/".join(
        f"{quote(name, _SAFE)}={NULL_DIRECTORY if value is None or value == '' else quote(value, _SAFE)}"
        for name, value in partition.items()
    )
