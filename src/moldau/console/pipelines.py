"""Pipelines and loads: the runs that a directory has logs of, their rounds, for tables and plots.

The directories are named at the start; a page chooses among them by number, and names no path.
"""

from __future__ import annotations

import os
import time

from moldau.actions.calls import reading
from moldau.actions.clients import in_thread
from moldau.actions.refusals import Refused
from moldau.console.calls import WebCall, web_handler
from moldau.lake.run_log import RoundStats, RunStats, read_run, run_files

ROUNDS_MAX = 2_000
# A run without an end and without a round for so long may have been killed.
SILENT_S = 300


async def list_runs(call: WebCall) -> object:
    """All runs of all directories, the newest first."""
    directories = call.console.settings.runs
    if not directories:
        raise Refused("No directory of runs was named: start the console with --runs DIRECTORY.", 404, "NOT_FOUND")

    def work() -> list[dict[str, object]]:
        rows = []
        for number, directory in enumerate(directories):
            for path in run_files(directory):
                run = _read(path)
                if run is not None:
                    rows.append({"directory": number, "file": os.path.basename(path), **_summary(run)})
        return sorted(rows, key=lambda row: -int(str(row["began_ms"])))

    return {"rows": await in_thread(work), "directories": list(directories)}


def _read(path: str) -> RunStats | None:
    """None for a file that is no log of a run, or that was deleted meanwhile."""
    try:
        return read_run(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _summary(run: RunStats) -> dict[str, object]:
    last_ms = run.rounds[-1].ended_ms if run.rounds else run.began_ms
    silent_s = time.time() - last_ms / 1000
    state = "failed" if run.error else "ended" if run.ended_ms else "silent" if silent_s > SILENT_S else "running"
    return {
        "name": run.name,
        "state": state,
        "error": run.error,
        "began_ms": run.began_ms,
        "ended_ms": run.ended_ms or None,
        "seconds": run.seconds,
        "rounds": len(run.rounds),
        "rows": run.rows,
        "rows_out": _known(run.rows_out),
        "bytes": _known(run.bytes),
        "files": _known(run.files),
        "lag": run.rounds[-1].lag_total if run.rounds else None,
    }


def _known(count: int) -> int | None:
    return None if count < 0 else count


async def show_run(call: WebCall) -> object:
    """One run with its rounds, its sinks, and where its time went."""
    directories = call.console.settings.runs
    number, name = call.number("directory"), call.text("file")
    if number >= len(directories):
        raise Refused("There is no such directory.", 404, "NOT_FOUND")

    def work() -> RunStats | None:
        path = next((path for path in run_files(directories[number]) if os.path.basename(path) == name), None)
        return None if path is None else _read(path)

    run = await in_thread(work)
    if run is None:
        raise Refused("There is no log of this run any more.", 404, "NOT_FOUND")
    return {
        **_summary(run),
        "details": {name: str(value) for name, value in run.details.items()},
        "phases": run.phases,
        "sinks": [
            {"name": name, "rounds": len(sink.rounds), "rows": sink.rows, "rows_out": _known(sink.rows_out)}
            for name, sink in run.sinks().items()
        ],
        "log": [_round_row(each) for each in run.rounds[-ROUNDS_MAX:]],
        "partitions": dict(sorted((run.rounds[-1].lag if run.rounds else {}).items())),
    }


def _round_row(each: RoundStats) -> dict[str, object]:
    return {
        "ended_ms": each.ended_ms,
        "seconds": each.seconds,
        "rows": each.rows,
        "per_second": each.rows_per_second,
        "rows_out": _known(each.rows_out),
        "bytes": _known(each.bytes),
        "files": _known(each.files),
        "lag": each.lag_total,
        "step": each.step,
    }


ROUTES = [
    reading("/api/pipelines", web_handler(list_runs)),
    reading("/api/pipelines/run", web_handler(show_run)),
]
