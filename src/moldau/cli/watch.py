"""Shows something again and again: redrawn in place on a terminal, one result behind the other in a pipe."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import time
from collections.abc import Callable

import click

from moldau.cli.explain import explain
from moldau.client.errors import ClientError

_HIDE_CURSOR = "\x1b[?25l"
_SHOW_CURSOR = "\x1b[?25h"
_CLEAR = "\x1b[2J"
_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"


class _Page(io.TextIOWrapper):
    """Output that is kept until it is drawn; it counts as a terminal, so that tables have their colours."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="replace")

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode("utf-8", "replace")


def repeat(show: Callable[[], None], watch: bool, interval_s: float) -> None:
    """Calls show() once, or for ever. While watching, a broker that cannot be reached is told of and tried again."""
    if not watch:
        show()
        return
    if not sys.stdout.isatty():
        while True:
            _show_once(show)
            sys.stdout.flush()
            time.sleep(interval_s)
    terminal = sys.stdout
    terminal.write(_HIDE_CURSOR + _CLEAR)
    try:
        while True:
            page = _Page()
            with contextlib.redirect_stdout(page), contextlib.redirect_stderr(page):
                click.secho(f"{time.strftime('%H:%M:%S')}  every {interval_s:g} s, Ctrl-C ends\n", dim=True)
                _show_once(show)
            terminal.write(_draw(page.text()))
            terminal.flush()
            time.sleep(interval_s)
    finally:
        terminal.write(_SHOW_CURSOR)
        terminal.flush()


def _show_once(show: Callable[[], None]) -> None:
    try:
        show()
    except click.exceptions.Exit:
        pass  # the code is that of one look; who watches goes on
    except ClientError as error:
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(explain(error), err=True)


def _draw(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    height = max(2, shutil.get_terminal_size().lines)
    if len(lines) > height - 1:
        hidden = len(lines) - (height - 2)
        lines = [*lines[: height - 2], f"... {hidden} more lines"]
    return _HOME + "".join(line + _END_OF_LINE + "\n" for line in lines) + _CLEAR_BELOW
