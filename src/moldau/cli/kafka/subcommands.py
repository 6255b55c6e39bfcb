"""Command lines with subcommands as Kafka's newer tools read them (argparse4j): usage errors are two lines, code 1."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from moldau.cli.kafka.options import Exit


class CommandParser(argparse.ArgumentParser):
    """A parser that ends as the real tools do."""

    def error(self, message: str) -> NoReturn:
        sys.stdout.flush()
        first = "the following arguments are required: "
        said = "too few arguments" if message.startswith(first) else message
        tool = self.prog.split()[0]
        raise Exit(1, f"{self.format_usage().rstrip()}\n{tool}: error: {said}")


def connection_options(parser: argparse.ArgumentParser, short: bool = False) -> None:
    """The brokers or the controllers to talk to, one of the two."""
    where = parser.add_mutually_exclusive_group(required=True)
    names = (["--bootstrap-server", "-b"], ["--bootstrap-controller", "-C"])
    for name in names:
        where.add_argument(*(name if short else name[:1]), help="The servers to connect to, separated by commas.")
