"""Streaming queries of the Spark tests: what they read is collected, and they are waited for by condition."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.interop.nodes import Node
from tests.pace import patience

SECONDS_MAX = patience(300)
# Spark gives a Python process ten seconds to start, which is not enough on a machine that does much else.
SLOW_MACHINE = "Python worker failed to connect back"


def run_to_end(start: Callable[[], Any]) -> None:
    """Of a query that ends by itself; it goes on where it was if Spark did not wait for its processes."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        query = start()
        while query.isActive:
            assert time.monotonic() < deadline, "it did not end in time"
            time.sleep(0.05)
        problem = query.exception()
        if problem is None:
            return
        assert SLOW_MACHINE in str(problem), f"the query failed: {problem}"
        assert time.monotonic() < deadline, "its processes never started in time"


class Stream:
    """A query whose micro-batches are collected, with its checkpoint."""

    def __init__(
        self, spark: Any, node: Node, topic: str, folder: Path, source: str = "moldau", **options: Any
    ) -> None:
        self._spark = spark
        self._source = source
        self._options = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        self._options |= {name.replace("__", "."): str(value) for name, value in options.items()}
        self._checkpoint = folder / "checkpoint"
        self._available_now = False
        self.batches: dict[int, list[str]] = {}
        self.query: Any = None

    def _keep(self, frame: Any, number: int) -> None:
        rows = frame.orderBy("topic", "partition", "offset").collect()
        self.batches[number] = [self.text(row.value) for row in rows]

    @staticmethod
    def text(value: Any) -> str:
        """What is kept of a value."""
        return bytes(value).decode()

    def start(self, available_now: bool = False, **more: str) -> Stream:
        self._options |= more
        self._available_now = available_now
        frame = self._spark.readStream.format(self._source).options(**self._options).load()
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self._checkpoint))
        self.query = (writer.trigger(availableNow=True) if available_now else writer).start()
        return self

    def run(self, **more: str) -> None:
        """Reads what is there, and ends."""
        self.start(available_now=True, **more)
        self.wait(lambda: not self.query.isActive)

    def failure(self) -> str:
        """Waits for the query to fail, and returns why."""
        self.wait(lambda: self.query.exception() is not None)
        return str(self.query.exception())

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            problem = self.query.exception()
            if problem is not None and SLOW_MACHINE in str(problem):
                self.start(self._available_now)
                continue
            if condition():
                return
            assert problem is None, f"the query ended: {problem}"
            assert time.monotonic() < deadline, "it did not come true in time"
            time.sleep(0.05)

    def await_values(self, expected: list[str]) -> None:
        self.wait(lambda: self.values == expected)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    @property
    def values(self) -> list[str]:
        return [value for _, batch in sorted(self.batches.items()) for value in batch]

    def progress(self, name: str) -> dict[str, dict[str, int]]:
        """Offsets of the last progress report, without topic ids."""
        reports = [row for row in self.query.recentProgress if row["sources"][0][name] is not None]
        text = str(reports[-1]["sources"][0][name]) if reports else "{}"
        return {topic: rows for topic, rows in json.loads(text.replace("'", '"')).items() if rows}
