"""The entry of the `moldau` command: decides what has to be imported, and nothing more."""

from __future__ import annotations

import gc
import io
import sys

OBJECTS_BETWEEN_COLLECTIONS = 100_000


def buffer_stdout() -> None:
    """Gives the output its buffer back where PYTHONUNBUFFERED took it away.

    Without one, what does not fit into a pipe at once is silently lost.
    """
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=True)


def collect_rarely() -> None:
    """A tool lives for a moment and is mostly import, which makes many objects and no garbage: a tenth of its time."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def main() -> None:
    """Runs the command line of this process and exits with its code."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["server"] and not {"--help", "-h"} & set(arguments):
            # A server is to respond a few hundred milliseconds after its start and to stay small for months:
            # it is started without the command line's library.
            from moldau.cli.server import run_server

            code = run_server(arguments[1:])
        elif arguments and arguments[0].startswith("kafka-"):
            collect_rarely()
            buffer_stdout()
            from moldau.cli.kafka.frame import run_command

            code = run_command(arguments)
        else:
            collect_rarely()
            from moldau.cli.root import root

            buffer_stdout()
            root.main(args=arguments, prog_name="moldau")
            code = 0
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
