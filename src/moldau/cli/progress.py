"""A bar for work that takes longer than a moment; on a terminal only, and never on the command's own output."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from moldau.cli.output import bytes_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Shorter work ends before anybody could read the bar.
PATIENCE_S = 0.7
UPDATE_S = 0.1


class WorkBar:
    """Shows how far the work is on the error output; does nothing where that is not a terminal."""

    def __init__(self, title: str, total: int | None, wanted: bool = True) -> None:
        """total: how many units there are, None if nobody knows."""
        self._title = title
        self._total = total
        self._wanted = wanted and sys.stderr.isatty()
        self._start = time.monotonic()
        self._next = self._start + PATIENCE_S
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> WorkBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, records: int | None, data_bytes: int) -> None:
        """done: in the units of the total; records: None where they are not counted. Cheap: call it for every batch."""
        if not self._wanted:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + UPDATE_S
        if self._bar is None:
            self._begin()
        assert self._bar is not None and self._task is not None
        seconds = now - self._start
        text = f"{bytes_text(data_bytes)}  {bytes_text(data_bytes / seconds)}/s"
        if records is not None:
            text = f"{records:,} records  {bytes_text(data_bytes)}  {records / seconds:,.0f}/s"
        self._bar.update(self._task, completed=min(done, self._total or done), numbers=text)

    def _begin(self) -> None:
        # Imported here: short commands should not pay for it.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns: list[ProgressColumn] = [TextColumn("{task.description}"), BarColumn(bar_width=30)]
        if self._total is not None:
            columns.append(TaskProgressColumn())
        columns.append(TextColumn("{task.fields[numbers]}"))
        if self._total is not None:
            columns.append(TimeRemainingColumn(compact=True))
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._title, total=self._total, numbers="")
        self._bar.start()
