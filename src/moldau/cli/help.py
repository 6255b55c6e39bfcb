"""`moldau help [TOPIC]`: pages about what no single command's --help tells, and the help of every command."""

from __future__ import annotations

import difflib
import sys

import click

from moldau.cli.help_pages import PAGES


@click.command("help")
@click.argument("words", nargs=-1, metavar="[TOPIC | COMMAND...]")
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show a page about a topic, or the help of a command.

    \b
    Examples:
      moldau help                  the topics
      moldau help start            the first steps
      moldau help topic create     the same as `moldau topic create --help`
    """
    if not words:
        click.echo(_contents())
        return
    page = PAGES.get(words[0]) if len(words) == 1 else None
    if page is not None:
        _show(_format(words[0], page))
        return
    click.echo(_help_of_command(context, words))


def _contents() -> str:
    width = max(map(len, PAGES))
    lines = [f"  {name:{width}}  {title}" for name, (title, _) in PAGES.items()]
    return "\n".join(
        [
            "Pages (`moldau help NAME`):",
            *lines,
            "",
            "`moldau help COMMAND` is the help of a command; `moldau --help` lists the commands.",
        ]
    )


def _format(name: str, page: tuple[str, str]) -> str:
    title, text = page
    heading = f"{name.upper()}: {title}"
    return f"{click.style(heading, bold=True)}\n\n{text.strip()}\n"


def _show(text: str) -> None:
    """With a pager where a page is longer than the terminal, as `man` does."""
    if sys.stdout.isatty() and text.count("\n") >= _terminal_lines():
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def _terminal_lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines


def _help_of_command(context: click.Context, words: tuple[str, ...]) -> str:
    from moldau.cli.kafka.registry import TOOLS

    parent = context.find_root()
    command: click.Command = parent.command
    if words[0] in TOOLS:
        return f"{words[0]} is Kafka's tool of that name: `moldau {words[0]} --help` shows its options."
    for number, word in enumerate(words):
        found = command.get_command(parent, word) if isinstance(command, click.Group) else None
        if found is None:
            raise click.UsageError(_unknown(command, parent, words[: number + 1]), context)
        command, parent = found, click.Context(found, parent, word)
    return command.get_help(parent)


def _unknown(command: click.Command, parent: click.Context, words: tuple[str, ...]) -> str:
    known = command.list_commands(parent) if isinstance(command, click.Group) else []
    if len(words) == 1:
        known = [*PAGES, *known]
    near = difflib.get_close_matches(words[-1], known, 1)
    hint = f"Did you mean {near[0]!r}?" if near else "`moldau help` lists the pages, `moldau --help` the commands."
    return f"There is no page and no command {' '.join(words)!r}. {hint}"
