"""`moldau server`: reads its few arguments by hand and starts the node."""

from __future__ import annotations

import sys
from collections.abc import Sequence

USAGE = "Usage: moldau server [FILE.properties] [--override KEY=VALUE]..."


class BadArguments(Exception):
    """The arguments do not make sense; the text says why."""


def parse_arguments(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The properties file, if any, and the overrides in order; as kafka-server-start takes them."""
    file: str | None = None
    overrides: list[str] = []
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        position += 1
        if argument == "--override":
            if position == len(arguments):
                raise BadArguments("--override wants KEY=VALUE behind it.")
            overrides.append(_check_override(arguments[position]))
            position += 1
        elif argument.startswith("--override="):
            overrides.append(_check_override(argument.removeprefix("--override=")))
        elif argument.startswith("-"):
            raise BadArguments(f"There is no option {argument}.")
        elif file is None:
            file = argument
        else:
            raise BadArguments(f"One properties file is enough: {file} or {argument}.")
    return file, overrides


def _check_override(text: str) -> str:
    key, equals, _ = text.partition("=")
    if not key.strip() or not equals:
        raise BadArguments(f"--override wants KEY=VALUE, not {text!r}.")
    return text


def run_server(arguments: Sequence[str]) -> int:
    """Runs a node until it is told to stop; returns the exit code."""
    try:
        file, overrides = parse_arguments(arguments)
    except BadArguments as error:
        print(f"{USAGE}\n\nError: {error} `moldau server --help` says more.", file=sys.stderr)
        return 2
    from moldau.server.main import run

    return run(file, overrides)
