"""What a run has done so far, round by round: kept as JSON lines, for the views, `status` and the report.

The log tells people about runs; nothing is decided by it. It may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

RUNS_KEPT = 20


@dataclass(frozen=True)
class RoundStats:
    """One round: when it ended, how long it took, what it read (rows) and what it wrote; -1: not known."""

    ended_ms: int
    seconds: float
    rows: int
    bytes: int = 0
    files: int = 0
    version: int = -1
    # What was left to read afterwards: "orders-0" -> offsets.
    lag: Mapping[str, int] = field(default_factory=dict)
    # The sink of a pipeline; empty for a load.
    step: str = ""
    # What came out: fewer than rows where a step filters, more where it explodes.
    rows_out: int = -1
    # Seconds of its parts, by name.
    phases: Mapping[str, float] = field(default_factory=dict)

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def lag_total(self) -> int:
        return sum(self.lag.values())


@dataclass
class RunStats:
    """All of one run."""

    name: str
    began_ms: int
    rounds: list[RoundStats] = field(default_factory=list)
    ended_ms: int = 0
    error: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(item.rows for item in self.rounds)

    @property
    def rows_out(self) -> int:
        return _known_sum([item.rows_out for item in self.rounds])

    @property
    def bytes(self) -> int:
        return _known_sum([item.bytes for item in self.rounds])

    @property
    def files(self) -> int:
        return _known_sum([item.files for item in self.rounds])

    @property
    def phases(self) -> dict[str, float]:
        """Seconds by name, what was before the rounds included."""
        found = {"starting Spark": float(self.details["spark_start_s"])} if "spark_start_s" in self.details else {}
        for item in self.rounds:
            for name, seconds in item.phases.items():
                found[name] = found.get(name, 0.0) + seconds
        return found

    def sinks(self) -> dict[str, RunStats]:
        """The rounds of each sink of a pipeline, as a run of its own."""
        found: dict[str, RunStats] = {}
        for item in self.rounds:
            found.setdefault(item.step, RunStats(item.step, self.began_ms)).rounds.append(item)
        return found

    @property
    def seconds(self) -> float:
        last = self.rounds[-1].ended_ms if self.rounds else self.began_ms
        return ((self.ended_ms or last) - self.began_ms) / 1000


def _known_sum(counts: list[int]) -> int:
    known = [count for count in counts if count >= 0]
    return sum(known) if known or not counts else -1


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class RunLog:
    """Writes the log of one run below a directory, and keeps the newest few."""

    def __init__(self, directory: str, name: str, details: Mapping[str, Any] | None = None) -> None:
        self.stats = RunStats(name, now_ms(), details=dict(details or {}))
        self._directory = directory
        self.path = os.path.join(directory, f"{self.stats.began_ms:015d}-{os.getpid()}.jsonl")

    def begin(self) -> None:
        """The run has what it needs, and is not refused any more."""
        os.makedirs(self._directory, exist_ok=True)
        for old in run_files(self._directory)[: -(RUNS_KEPT - 1)]:
            os.unlink(old)
        self._write({"name": self.stats.name, "began_ms": self.stats.began_ms, "details": self.stats.details})

    def add(self, item: RoundStats) -> None:
        self.stats.rounds.append(item)
        self._write({"round": asdict(item)})

    def end(self, error: str = "") -> None:
        self.stats.ended_ms = now_ms()
        self.stats.error = error
        self._write({"ended_ms": self.stats.ended_ms, "error": error})

    def _write(self, data: Mapping[str, Any]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


def run_files(directory: str) -> list[str]:
    """The logs of a directory, the oldest first."""
    if not os.path.isdir(directory):
        return []
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if name.endswith(".jsonl")]


def read_run(path: str) -> RunStats:
    """A run's log; the last line may be torn, if its process was killed."""
    stats = RunStats("", 0)
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                data = json.loads(line)
            except ValueError:
                break
            if "round" in data:
                stats.rounds.append(RoundStats(**data["round"]))
            elif "ended_ms" in data:
                stats.ended_ms, stats.error = data["ended_ms"], data["error"]
            else:
                stats.name, stats.began_ms, stats.details = data["name"], data["began_ms"], data["details"]
    return stats
