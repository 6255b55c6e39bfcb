"""`moldau server`: reads its few arguments by hand and starts the node."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.server.process import ServerProcess

USAGE = (
    "Usage: moldau server [--port PORT] [--data-dir DIRECTORY] [--cluster-id ID] [--force] [--log-level LEVEL]\n"
    "                     [--log-format FORMAT] [--console[=HOST:PORT]] [--override KEY=VALUE]...\n"
    "       moldau server FILE.properties [--log-level LEVEL] [--log-format FORMAT] [--console[=HOST:PORT]]\n"
    "                     [--override KEY=VALUE]..."
)
FORMATS = ("text", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PORT_MAX = 65534  # the controller has the next one


class BadArguments(Exception):
    """The arguments do not make sense; the text says why."""


class Arguments:
    """What was asked for; a port of None is the usual one."""

    def __init__(self) -> None:
        self.file: str | None = None
        self.overrides: list[str] = []
        self.port: int | None = None
        self.data_dir: str | None = None
        self.cluster_id: str | None = None
        self.log_level: str | None = None
        self.log_format: str | None = None
        self.force = False
        # Where the console beside the node listens: empty for its default, None for no console.
        self.console: str | None = None


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """The properties file, if any, and the overrides in order as kafka-server-start takes them, and what only a node
    without a file has."""
    found = Arguments()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if name in ("--override", "--port", "--data-dir", "--cluster-id", "--log-level", "--log-format"):
            if not equals:
                if not rest:
                    raise BadArguments(f"{name} wants a value behind it.")
                value = rest.pop(0)
            _take(found, name, value)
        elif argument == "--force":
            found.force = True
        elif name == "--console":
            found.console = _check_console(value) if equals else ""
        elif argument.startswith("-"):
            raise BadArguments(f"There is no option {argument}.")
        elif found.file is None:
            found.file = argument
        else:
            raise BadArguments(f"One properties file is enough: {found.file} or {argument}.")
    _check_with_file(found)
    return found


def _take(found: Arguments, name: str, value: str) -> None:
    if name == "--override":
        found.overrides.append(_check_override(value))
    elif name == "--data-dir":
        if not value.strip():
            raise BadArguments("--data-dir wants a directory.")
        found.data_dir = value
    elif name == "--log-level":
        if value.upper() not in LEVELS:
            raise BadArguments(f"--log-level is one of {', '.join(LEVELS)}, not {value!r}.")
        found.log_level = value.upper()
    elif name == "--log-format":
        if value not in FORMATS:
            raise BadArguments(f"--log-format is one of {', '.join(FORMATS)}, not {value!r}.")
        found.log_format = value
    elif name == "--cluster-id":
        if not value.strip():
            raise BadArguments("--cluster-id wants an id; `moldau storage random-uuid` makes one.")
        found.cluster_id = value
    else:
        if not value.isdecimal() or int(value) > PORT_MAX:
            raise BadArguments(f"--port wants a number up to {PORT_MAX}, not {value!r}; 0 takes any free port.")
        found.port = int(value)


def _check_with_file(found: Arguments) -> None:
    if found.file is None:
        return
    if found.port is not None:
        raise BadArguments(
            f"The ports are in {found.file}: change `listeners` there or with --override, not by --port."
        )
    if found.data_dir is not None:
        raise BadArguments(f"The log directories are in {found.file}: change `log.dirs` there or with --override.")
    if found.cluster_id is not None:
        raise BadArguments("--cluster-id is for a start without a file; otherwise use `moldau storage format -t ID`.")
    if found.force:
        raise BadArguments("--force is for a start without a file; otherwise use `moldau storage format --force`.")


def _check_override(text: str) -> str:
    key, equals, _ = text.partition("=")
    if not key.strip() or not equals:
        raise BadArguments(f"--override wants KEY=VALUE, not {text!r}.")
    return text


def _check_console(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadArguments(f"--console wants HOST:PORT as in --console=127.0.0.1:9080, not {text!r}.")
    return text


def run_server(arguments: Sequence[str]) -> int:
    """Runs a node until it is told to stop; returns the exit code."""
    try:
        asked = parse_arguments(arguments)
    except BadArguments as error:
        print(f"{USAGE}\n\nError: {error} `moldau server --help` says more.", file=sys.stderr)
        return 2
    from moldau.server.main import run

    beside = None
    if asked.console is not None:
        from moldau.cli.server_console import ConsoleBeside

        beside = ConsoleBeside(asked.console)
    try:
        return _run(run, asked, None if beside is None else beside.start)
    finally:
        if beside is not None:
            beside.stop()


def _run(run: Callable[..., int], asked: Arguments, on_ready: Callable[[ServerProcess], None] | None) -> int:
    return run(
        asked.file,
        asked.overrides,
        port=asked.port,
        data_directory=asked.data_dir,
        force=asked.force,
        cluster_id=asked.cluster_id,
        log_level=asked.log_level,
        log_format=asked.log_format,
        on_ready=on_ready,
    )
