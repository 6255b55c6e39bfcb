"""`moldau server --help`, and the same command for those who call the command line from Python."""

from __future__ import annotations

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    options_metavar="",
)
@click.argument(
    "arguments", nargs=-1, type=click.UNPROCESSED, metavar="[FILE.properties] [OPTIONS] [--override KEY=VALUE]..."
)
@click.pass_context
def server(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run a node until Ctrl-C or SIGTERM.

    FILE.properties is a server.properties as Apache Kafka has it. Without one the node is a broker and controller
    in one, listens on port 9092, and keeps its data in ./moldau-data, which it formats itself.

    KAFKA_ environment variables override the file (KAFKA_LOG_DIRS sets log.dirs), and --override KEY=VALUE overrides
    both. --log-level INFO logs starts, elections and stops too; without it MOLDAU_LOG_LEVEL counts, or WARNING.
    --log-format json makes each line an object, for what collects logs; without it MOLDAU_LOG_FORMAT counts, or text.

    --console serves the web console beside the node, at http://127.0.0.1:9080/ or where --console=HOST:PORT says
    (`moldau console --help`).

    \b
    Options of a start without a file:
      --port PORT           The port for clients; the controller has the next one. 0 takes free ones. [default: 9092]
      --data-dir DIRECTORY  Where the data lies. [default: ./moldau-data]
      --cluster-id ID       The cluster that a new directory is formatted for. [default: a new one]
      --force               Format the directory although it has other things in it.

    \b
    Examples:
      moldau server --console
      moldau server --port 19092 --data-dir /data/moldau
      moldau server server.properties --override log.dirs=/data/moldau
    """
    from moldau.cli.server import run_server

    context.exit(run_server(arguments))
