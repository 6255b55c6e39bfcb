"""`moldau install-kafka-names`: puts a small launcher per tool into a directory, under the names that scripts call."""

from __future__ import annotations

import os
import shlex
import sys

import click

from moldau.cli.kafka.registry import TOOLS
from moldau.cli.options import format_option
from moldau.cli.output import print_json

MARK = "# A launcher of Moldau: "


@click.command("install-kafka-names")
@click.argument("directory", metavar="DIR")
@click.option("--force", is_flag=True, help="Replace files that are not launchers of Moldau too.")
@format_option
def install(directory: str, force: bool, output_format: str) -> None:
    """Put Kafka's tool names into DIR, with and without .sh, for scripts that call them.

    DIR is created if need be; put it on PATH.
    """
    os.makedirs(directory, exist_ok=True)
    paths = [(tool, os.path.join(directory, tool + ending)) for tool in sorted(TOOLS) for ending in ("", ".sh")]
    taken = [path for _, path in paths if os.path.lexists(path) and not is_launcher(path)]
    if taken and not force:
        raise click.ClickException(
            f"{taken[0]} is something else. Choose another directory, or replace it with --force."
        )
    for tool, path in paths:
        if os.path.lexists(path):
            os.remove(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(launcher_text(tool))
        os.chmod(path, 0o755)
    if output_format == "json":
        print_json({"directory": directory, "tools": sorted(TOOLS), "files": [path for _, path in paths]})
    else:
        click.echo(f"{len(paths)} names for {len(TOOLS)} tools are in {directory}.")


def launcher_text(tool: str) -> str:
    return f'#!/bin/sh\n{MARK}{tool}\nexec {shlex.quote(sys.executable)} -m moldau.cli.main {tool} "$@"\n'


def is_launcher(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return MARK in file.read(200)
    except OSError:
        return False
