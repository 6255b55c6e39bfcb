"""A finished run as one HTML page: a summary, and plots as SVG inside it. No scripts, nothing to load."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from moldau.lake.run_log import RoundStats, RunStats

WIDTH = 640
HEIGHT = 180
LEFT = 64
BOTTOM = 22
BARS_MAX = 160
# Shown with the other parts of the time.
SPARK_START = "spark_start_s"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ --ink:#1d2733; --soft:#67727e; --line:#dde2e7; --bar:#2f6fb0; --paper:#fff; --bad:#b3261e }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink:#e6eaee; --soft:#9aa5b1; --line:#39424c;
  --bar:#6aa5de; --paper:#14181d;
  --bad:#f2b8b5 }} }}
body {{ font:15px/1.5 system-ui,sans-serif; color:var(--ink); background:var(--paper);
  max-width:720px; margin:2rem auto; padding:0 1rem }}
h1 {{ font-size:1.4rem; margin:0 }} h2 {{ font-size:1rem; margin:1.8rem 0 .3rem }}
p.when {{ color:var(--soft); margin:.2rem 0 1.2rem }} p.error {{ color:var(--bad); font-weight:600 }}
dl {{ display:grid; grid-template-columns:repeat(auto-fit,minmax(130px,1fr)); gap:.8rem; margin:0 }}
dt {{ color:var(--soft); font-size:.8rem }} dd {{ margin:0; font-size:1.25rem; font-variant-numeric:tabular-nums }}
table {{ border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums }}
td,th {{ padding:.25rem .5rem; border-bottom:1px solid var(--line); text-align:right }}
td:first-child,th:first-child {{ text-align:left }}
svg {{ width:100%; height:auto; display:block }} text {{ fill:var(--soft); font-size:11px }}
.bar {{ fill:var(--bar) }} .line {{ fill:none; stroke:var(--bar); stroke-width:2 }} .grid {{ stroke:var(--line) }}
</style></head><body>
{body}
</body></html>
"""


class Plot(NamedTuple):
    """One curve over the rounds."""

    title: str
    value: Callable[[RoundStats], float]
    unit: str
    as_line: bool = False


PLOTS = (
    Plot("Records per second", lambda item: item.rows_per_second, ""),
    Plot("Duration of rounds", lambda item: item.seconds, "s"),
    Plot("Offsets left to read after each round", lambda item: float(item.lag_total), "", True),
)


def render_report(run: RunStats, facts: Mapping[str, str] | None = None) -> str:
    """The page of a run; facts: what else to say about it, by name."""
    parts = [f"<h1>{html.escape(run.name)}</h1>", f'<p class="when">{html.escape(_when(run))}</p>']
    if run.error:
        parts.append(f'<p class="error">{html.escape(run.error)}</p>')
    parts.append(_numbers(run))
    sinks = run.sinks()
    if set(sinks) - {""}:
        names = ("sink", "rounds", "records in", "rows out", "files", "megabytes", "seconds")
        parts.append("<h2>Sinks</h2>" + _table(names, [_sink_row(name, sink) for name, sink in sinks.items()]))
    if run.phases:
        cells = [(name, f"{seconds:,.2f}") for name, seconds in run.phases.items()]
        parts.append("<h2>Where the time went</h2>" + _table(("part", "seconds"), cells))
    for plot in PLOTS:
        if len(run.rounds) > 1:
            parts.append(f"<h2>{html.escape(plot.title)}</h2>{draw(run.rounds, plot)}")
    if run.rounds and run.rounds[-1].lag:
        parts.append(
            "<h2>Lag by partition at the end</h2>" + _table(("partition", "offsets"), run.rounds[-1].lag.items())
        )
    told = {**{str(name): str(value) for name, value in run.details.items() if name != SPARK_START}, **(facts or {})}
    if told:
        parts.append("<h2>Settings</h2>" + _table(("name", "value"), told.items()))
    return _PAGE.format(title=html.escape(run.name), body="\n".join(parts))


def _when(run: RunStats) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.began_ms / 1000))
    rounds = "1 round" if len(run.rounds) == 1 else f"{len(run.rounds)} rounds"
    return f"{began}, {run.seconds:.1f} s, {rounds}"


def _numbers(run: RunStats) -> str:
    seconds = sum(item.seconds for item in run.rounds)
    durations = sorted(item.seconds for item in run.rounds)
    rows = [
        ("records in", f"{run.rows:,}"),
        ("rows out", _count(run.rows_out)),
        ("records per second", f"{run.rows / seconds:,.0f}" if seconds else "–"),
        ("megabytes written", _megabytes(run.bytes)),
        ("files", _count(run.files)),
        ("median round", f"{durations[len(durations) // 2]:.2f} s" if durations else "–"),
        ("lag at the end", f"{run.rounds[-1].lag_total:,}" if run.rounds else "–"),
    ]
    return "<dl>" + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows) + "</dl>"


def _sink_row(name: str, sink: RunStats) -> tuple[object, ...]:
    seconds = sum(item.seconds for item in sink.rounds)
    counts = (_count(sink.rows_out), _count(sink.files), _megabytes(sink.bytes))
    return (name, len(sink.rounds), sink.rows, *counts, f"{seconds:,.2f}")


def _count(count: int) -> str:
    return "–" if count < 0 else f"{count:,}"


def _megabytes(count: int) -> str:
    """With enough digits that something small is not nothing."""
    return "–" if count < 0 else f"{count / 1e6:,.1f}" if count >= 100_000 or not count else f"{count / 1e6:,.3f}"


def _table(names: Sequence[str], rows: object) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(f'{cell:,}' if isinstance(cell, int) else str(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows  # type: ignore[attr-defined]
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def draw(rounds: Sequence[RoundStats], plot: Plot) -> str:
    """An SVG of one value over the rounds; many rounds are put together, the largest of each bundle counts."""
    values = bundle([plot.value(item) for item in rounds], BARS_MAX)
    highest = max(values) or 1.0
    inner_width, inner_height = WIDTH - LEFT - 8, HEIGHT - BOTTOM - 10
    step = inner_width / len(values)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(plot.title)}">']
    for share in (0.0, 0.5, 1.0):
        y = 10 + inner_height * (1 - share)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(highest * share)}{plot.unit}</text>'
        )
    tops = [10 + inner_height * (1 - value / highest) for value in values]
    if plot.as_line:
        points = " ".join(f"{LEFT + step * (place + 0.5):.1f},{top:.1f}" for place, top in enumerate(tops))
        parts.append(f'<polyline class="line" points="{points}"/>')
    else:
        for place, top in enumerate(tops):
            x, width = LEFT + step * place + step * 0.1, max(step * 0.8, 0.5)
            parts.append(
                f'<rect class="bar" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}"'
                f' height="{10 + inner_height - top:.1f}"/>'
            )
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">round 1</text>')
    parts.append(f'<text x="{WIDTH - 8}" y="{HEIGHT - 6}" text-anchor="end">{len(rounds)}</text></svg>')
    return "".join(parts)


def bundle(values: Sequence[float], most: int) -> list[float]:
    if len(values) <= most:
        return list(values)
    edges = [len(values) * place // most for place in range(most + 1)]
    return [max(values[first:behind]) for first, behind in pairwise(edges)]


def short(value: float) -> str:
    """1.2 M instead of 1234567."""
    for limit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g} "
