"""The live view of a load or a pipeline: on a terminal a table that is redrawn, elsewhere a line for each round.

It writes to the error output, so that a command's own output stays what a script expects.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

from moldau.cli.output import bytes_text, plural
from moldau.lake.run_log import RoundStats, RunStats

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

ROUNDS_SHOWN = 8
PARTITIONS_SHOWN = 12


class RunView:
    """Shows rounds as they end; quiet: shows nothing."""

    def __init__(self, run: RunStats, quiet: bool = False) -> None:
        self._run = run
        self._quiet = quiet
        self._live: Live | None = None

    def __enter__(self) -> RunView:
        if not self._quiet and sys.stderr.isatty():
            # Imported here: --help and --quiet should not pay for it.
            from rich.console import Console
            from rich.live import Live

            self._live = Live(self._picture(), console=Console(stderr=True), refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def on_round(self, item: RoundStats) -> None:
        """Shows a round that was added to the run."""
        if self._live is not None:
            self._live.update(self._picture())
        elif not self._quiet:
            click.echo(round_line(len(self._run.rounds), item), err=True)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        run = self._run
        head = Text.assemble(
            (run.name, "bold"),
            f"  {plural(run.rows, 'record')} in  {count_text(run.rows_out)} out  {size_text(run.bytes)}"
            f"  {plural(len(run.rounds), 'round')}",
        )
        rounds = Table(box=None, pad_edge=False)
        for name in ("ROUND", "RECORDS IN", "RECORDS/S", "ROWS OUT", "FILES", "WRITTEN", "SECONDS", "LAG"):
            rounds.add_column(name, justify="right", style="" if name == "ROUND" else "cyan")
        first = max(0, len(run.rounds) - ROUNDS_SHOWN)
        for number, item in enumerate(run.rounds[first:], first + 1):
            rounds.add_row(
                f"{item.step} {number}".strip(),
                f"{item.rows:,}",
                f"{item.rows_per_second:,.0f}",
                count_text(item.rows_out),
                count_text(item.files),
                size_text(item.bytes),
                f"{item.seconds:.2f}",
                f"{item.lag_total:,}",
            )
        parts: list[RenderableType] = [head, rounds]
        behind = sorted((run.rounds[-1].lag if run.rounds else {}).items(), key=lambda pair: -pair[1])
        if behind:
            lag = Table(box=None, pad_edge=False)
            lag.add_column("PARTITION")
            lag.add_column("LAG", justify="right", style="cyan")
            for name, count in behind[:PARTITIONS_SHOWN]:
                lag.add_row(name, f"{count:,}")
            parts.append(lag)
        return Group(*parts)


def round_line(number: int, item: RoundStats) -> str:
    """One round in a line of text."""
    step = f" of {item.step}" if item.step else ""
    parts = [f"{plural(item.rows, 'record')} in {item.seconds:.2f} s ({item.rows_per_second:,.0f}/s)"]
    if item.rows_out >= 0:
        parts.append(f"{plural(item.rows_out, 'row')} out")
    if item.files >= 0:
        parts.append(plural(item.files, "file"))
    if item.bytes >= 0:
        parts.append(bytes_text(item.bytes))
    return f"round {number}{step}: {', '.join(parts)}, lag {item.lag_total:,}"


def count_text(count: int) -> str:
    """A number; a dash for one that nobody knows."""
    return "–" if count < 0 else f"{count:,}"


def size_text(count: int) -> str:
    return "–" if count < 0 else bytes_text(count)
