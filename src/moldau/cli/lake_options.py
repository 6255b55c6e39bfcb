"""What the commands about lakes and pipelines share: Spark's options, and errors as sentences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import click

from moldau.cli.options import parse_pairs

Command = TypeVar("Command", bound=Callable[..., object])


def master_options(command: Command) -> Command:
    """Adds --master and --spark-conf."""
    command = click.option(
        "--spark-conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
    )(command)
    return click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs tasks: local[4], spark://HOST:7077, … Default: SPARK_MASTER, else all cores here.",
    )(command)


def spark_settings(pairs: tuple[str, ...]) -> dict[str, str]:
    return dict(parse_pairs("--spark-conf", pairs))


def lake_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Errors of reads and options, which Spark's users see as exceptions, become sentences."""

    @functools.wraps(command)
    def run(*arguments: object, **more: object) -> None:
        try:
            command(*arguments, **more)
        except (RuntimeError, ValueError) as error:
            if type(error).__name__ not in ("ReadError", "OptionError", "OffsetsError", "DecodeError"):
                raise
            raise click.ClickException(str(error)) from error

    return run
