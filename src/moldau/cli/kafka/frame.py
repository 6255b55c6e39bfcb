"""Runs one of Kafka's tools: finds it, turns its ends into exit codes, stays quiet where a shell expects quiet."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

from moldau.cli.kafka.options import Exit, JavaFailure
from moldau.cli.kafka.registry import TOOLS, find, run

NO_SUCH_TOOL = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def run_command(arguments: list[str]) -> int:
    """The command line `moldau kafka-NAME ...`: its exit code."""
    name = find(arguments[0])
    if name is None:
        sys.stderr.write(f"There is no tool {arguments[0]!r}. There are: {', '.join(sorted(TOOLS))}.\n")
        return NO_SUCH_TOOL
    return guard(lambda: run(name, arguments[1:]))


def guard(work: Callable[[], int]) -> int:
    """Runs the work and ends as the real tools do: text in UTF-8, everything printed before the error is shown."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever the locale says, and in one piece per page: a dump may have millions of lines.
            stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=False, newline="\n")
    try:
        code = _run_to_exit(work)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read the output has had enough. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run_to_exit(work: Callable[[], int]) -> int:
    try:
        return work()
    except Exit as end:
        sys.stdout.flush()
        if end.message:
            sys.stderr.write(end.message + "\n")
        if end.usage_of is not None:
            end.usage_of.print_help(sys.stderr)
        sys.stderr.flush()
        return end.code
    except JavaFailure as failure:
        sys.stdout.flush()
        sys.stderr.write(failure.line() + "\n")
        sys.stderr.flush()
        return 1
