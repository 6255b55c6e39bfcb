"""What a measurement shows: a live view on a terminal while it runs, and a summary at its end."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import click

from moldau.cli.histogram import PERCENTILES, Histogram, milliseconds
from moldau.cli.output import bytes_text, print_fields, print_json, print_title

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.table import Table

UPDATE_S = 0.25
SPARKS = "▁▂▃▄▅▆▇█"
SPARKS_KEPT = 40


class Measurement:
    """Numbers of a run: filled by whoever measures, read by the view."""

    def __init__(self, verb: str, topic: str, about: str, total: int | None, duration_s: float | None) -> None:
        """total: how many records there will be; duration_s: for how long; None: nobody knows."""
        self.verb = verb
        self.topic = topic
        self.about = about
        self.total = total
        self.duration_s = duration_s
        self.records = 0
        self.bytes = 0
        self.errors = 0
        self.first_error: str | None = None
        self.latencies: dict[str, Histogram] = {}
        self.start = time.perf_counter()
        self.end: float | None = None

    @property
    def elapsed_s(self) -> float:
        return max(1e-6, (self.end or time.perf_counter()) - self.start)

    @property
    def done_share(self) -> float | None:
        shares = []
        if self.total:
            shares.append(self.records / self.total)
        if self.duration_s:
            shares.append(self.elapsed_s / self.duration_s)
        return min(1.0, max(shares)) if shares else None

    def finish(self) -> None:
        self.end = time.perf_counter()

    def row(self) -> dict[str, object]:
        """The summary for programs."""
        row: dict[str, object] = {
            "topic": self.topic,
            "seconds": round(self.elapsed_s, 3),
            "records": self.records,
            "bytes": self.bytes,
            "records_per_second": round(self.records / self.elapsed_s, 1),
            "mb_per_second": round(self.bytes / self.elapsed_s / 1e6, 3),
            "errors": self.errors,
        }
        for name, histogram in self.latencies.items():
            row[name.replace(" ", "_")] = histogram.row()
        return row


class LiveView:
    """Redraws the measurement a few times a second; does nothing where there is no terminal."""

    def __init__(self, measurement: Measurement, wanted: bool) -> None:
        self._measured = measurement
        self._wanted = wanted and sys.stdout.isatty()
        self._next = 0.0
        self._last = (measurement.start, 0, 0)
        self._rates: list[float] = []
        self._live: Live | None = None

    def __enter__(self) -> LiveView:
        if self._wanted:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self) -> None:
        """Cheap enough to be called for every few records."""
        now = time.perf_counter()
        if self._live is None or now < self._next:
            return
        self._next = now + UPDATE_S
        before, records, size = self._last
        passed = max(1e-6, now - before)
        rate = (self._measured.records - records) / passed
        throughput = (self._measured.bytes - size) / passed
        self._last = (now, self._measured.records, self._measured.bytes)
        self._rates = [*self._rates, rate][-SPARKS_KEPT:]
        self._live.update(self._draw(rate, throughput), refresh=True)

    def _draw(self, rate: float, throughput: float) -> Group:
        from rich.console import Group
        from rich.text import Text

        measured = self._measured
        title = Text.assemble((f"{measured.verb} ", "bold"), (measured.topic, "bold cyan"), f"  {measured.about}")
        return Group(title, self._bar(), self._numbers(rate, throughput), self._percentiles())

    def _bar(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        share = self._measured.done_share
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=share or 0.0, width=50, pulse=share is None)
        text = (
            f"{self._measured.elapsed_s:.1f} s" if share is None else f"{share:4.0%}  {self._measured.elapsed_s:.1f} s"
        )
        row.add_row(bar, Text(text, "dim"))
        return row

    def _numbers(self, rate: float, throughput: float) -> Table:
        from rich.table import Table
        from rich.text import Text

        measured = self._measured
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(justify="right")
        table.add_column(justify="right")
        table.add_column()
        overall = measured.records / measured.elapsed_s
        table.add_row(
            Text("now", "dim"),
            Text(f"{rate:,.0f} records/s", "bold green"),
            Text(f"{bytes_text(throughput)}/s", "green"),
            Text(sparkline(self._rates), "green"),
        )
        table.add_row(
            Text("overall", "dim"),
            f"{overall:,.0f} records/s",
            f"{bytes_text(measured.bytes / measured.elapsed_s)}/s",
            Text(f"{measured.records:,} records, {bytes_text(measured.bytes)}", "dim"),
        )
        if measured.errors:
            table.add_row(
                Text("errors", "bold red"), Text(f"{measured.errors:,}", "bold red"), "", measured.first_error
            )
        return table

    def _percentiles(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        table.add_column()
        for _ in range(len(PERCENTILES) + 1):
            table.add_column(justify="right")
        if self._measured.latencies:
            names = [Text(f"p{percent:g}", "dim") for percent in PERCENTILES]
            table.add_row("", *names, Text("max", "dim"))
        for name, found in self._measured.latencies.items():
            values = [milliseconds(found.percentile_us(percent)) for percent in PERCENTILES]
            table.add_row(Text(name, "dim"), *values, milliseconds(found.highest_us))
        return table


def sparkline(values: list[float]) -> str:
    """A line of small bars, the highest value as high as a line is."""
    top = max(values, default=0.0)
    if top <= 0:
        return SPARKS[0] * len(values)
    return "".join(SPARKS[min(len(SPARKS) - 1, int(value / top * (len(SPARKS) - 1) + 0.5))] for value in values)


def show_summary(measured: Measurement, output_format: str) -> None:
    """The result; with errors the exit code is 1."""
    if output_format == "json":
        print_json(measured.row())
    else:
        _print_summary(measured)
    if measured.errors:
        click.get_current_context().exit(1)


def _print_summary(measured: Measurement) -> None:
    seconds = measured.elapsed_s
    print_title(f"{measured.verb} {measured.topic}: {measured.records:,} records in {seconds:.2f} s")
    fields: list[tuple[str, object]] = [
        ("throughput", f"{measured.records / seconds:,.0f} records/s, {bytes_text(measured.bytes / seconds)}/s")
    ]
    for name, found in measured.latencies.items():
        percentiles = [f"p{percent:g} {milliseconds(found.percentile_us(percent))}" for percent in PERCENTILES]
        numbers = [f"mean {milliseconds(found.mean_us)}", *percentiles, f"max {milliseconds(found.highest_us)}"]
        fields.append((name, ", ".join(numbers)))
    if measured.errors:
        fields.append(("errors", f"{measured.errors:,}: {measured.first_error}"))
    print_fields(fields)
