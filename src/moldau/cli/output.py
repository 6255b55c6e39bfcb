"""Prints tables for people and JSON for programs; colour on a terminal only, and not where NO_COLOR is set."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import NamedTuple

import click

GAP = "  "
NARROWEST = 12


class Styled(NamedTuple):
    """A cell with a colour."""

    text: str
    fg: str | None = None
    bold: bool = False
    dim: bool = False


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], right: Collection[str] = ()) -> None:
    """A table: on a terminal coloured and folded to its width, otherwise aligned text without trailing blanks."""
    is_right = [name in right for name in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for line in align([list(columns), *([cell.text for cell in row] for row in cells)], is_right):
            click.echo(line)
        return
    header = [Styled(name, bold=True) for name in columns]
    texts = [[cell.text for cell in row] for row in [header, *cells]]
    widths = _fit([max(_width(text) for text in column) for column in zip(*texts, strict=True)])
    for row in [header, *cells]:
        for line in _fold(row, widths, is_right):
            click.echo(line)


def _cell(value: object) -> Styled:
    if isinstance(value, Styled):
        return value
    return Styled("" if value is None else str(value))


def _coloured(cell: Styled, text: str) -> str:
    if cell.fg is None and not cell.bold and not cell.dim:
        return text
    return click.style(text, fg=cell.fg, bold=cell.bold or None, dim=cell.dim or None)


def align(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Columns of equal width, two blanks apart."""
    widths = [max(_width(row[index]) for row in rows) for index in range(len(right))]
    return [
        GAP.join(_pad(cell, width, is_right) for cell, width, is_right in zip(row, widths, right, strict=True)).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _pad(text: str, width: int, is_right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if is_right else text + blanks


def _fit(widths: list[int]) -> list[int]:
    """Narrower columns, the widest first, until the table fits on the terminal."""
    from shutil import get_terminal_size  # which brings every codec along

    available = get_terminal_size().columns - len(GAP) * (len(widths) - 1)
    fitted = list(widths)
    while sum(fitted) > available:
        widest = max(range(len(fitted)), key=fitted.__getitem__)
        if fitted[widest] <= NARROWEST:
            break
        fitted[widest] -= 1
    return fitted


def _fold(row: Sequence[Styled], widths: Sequence[int], is_right: Sequence[bool]) -> list[str]:
    """The lines of one row; a text that is too long goes on below."""
    pieces = [_break(cell.text, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for number in range(max(len(parts) for parts in pieces)):
        cells: list[str] = []
        for cell, parts, width, right in zip(row, pieces, widths, is_right, strict=True):
            text = parts[number] if number < len(parts) else ""
            is_last = len(cells) == len(row) - 1
            cells.append(_coloured(cell, text if is_last and not right else _pad(text, width, right)))
        lines.append(GAP.join(cells).rstrip())
    return lines


def _break(text: str, width: int) -> list[str]:
    """Pieces no longer than the width, between words where there are any."""
    pieces: list[str] = []
    while len(text) > width:
        blank = text.rfind(" ", width // 2, width + 1)
        cut = width if blank < 0 else blank
        pieces.append(text[:cut])
        text = text[cut:].lstrip(" ") if blank >= 0 else text[cut:]
    return [*pieces, text]


def print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def print_title(text: str) -> None:
    click.secho(text, bold=True)


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Names and values below a title; a value without a name goes on with the one before."""
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        cell = _cell(value)
        click.echo(f"  {click.style(f'{name:<{width}}', dim=True)}  {_coloured(cell, cell.text)}")


def print_error(text: str) -> None:
    """An error of one item, beside others that went well."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(text, err=True)


def print_warning(text: str) -> None:
    """Something that was done as asked, and may not be wanted."""
    click.secho("Warning: ", fg="yellow", bold=True, nl=False, err=True)
    click.echo(text, err=True)


def print_note(text: str) -> None:
    """Something worth knowing that is no part of the result."""
    click.secho(text, dim=True, err=True)


def say(output_format: str, text: str) -> None:
    """A sentence for people."""
    if output_format == "table":
        click.echo(text)


def finish(output_format: str, rows: list[dict[str, object]], failed: bool) -> None:
    """The end of a command with an outcome for each of its items."""
    if output_format == "json":
        print_json(rows)
    if failed:
        click.get_current_context().exit(1)


def bytes_text(count: float) -> str:
    """A number of bytes for people: 1.5 MB. Units are powers of ten, as disks and networks count."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.5:
            return f"{count:.0f} {unit}" if unit == "B" or abs(count) >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
