"""Prints tables for people and JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence

import click


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], right: Collection[str] = ()) -> None:
    """A table; with colour on a terminal, otherwise aligned text without trailing blanks."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(columns, texts, right)
        return
    for line in align([list(columns), *texts], [name in right for name in columns]):
        click.echo(line)


def align(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Columns of equal width, two blanks apart."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(right))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    # Imported here: it takes longer to import than most commands take to run.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold cyan")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def print_title(text: str) -> None:
    click.secho(text, bold=True)


def print_error(text: str) -> None:
    """An error of one item, beside others that went well."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(text, err=True)
