"""`moldau help`: pages, the help of commands, and what they say is true."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner, Result

from moldau.cli.help_pages import PAGES
from moldau.cli.kafka.registry import TOOLS
from moldau.cli.root import root


def ask(*words: str) -> Result:
    return CliRunner().invoke(root, ["help", *words], prog_name="moldau")


def test_without_a_word_the_pages_are_listed() -> None:
    result = ask()
    assert result.exit_code == 0
    for name, (title, _) in PAGES.items():
        assert f"{name} " in result.stdout and title in result.stdout


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_shown_and_fits_a_terminal(name: str) -> None:
    result = ask(name)
    assert result.exit_code == 0 and result.stdout.startswith(name.upper())
    assert all(len(line) <= 120 for line in result.stdout.splitlines())


def test_no_page_hides_a_command() -> None:
    assert not set(PAGES) & (set(root.list_commands(click.Context(root))) | set(TOOLS))


def test_the_help_of_a_command_is_that_of_its_option() -> None:
    option = CliRunner().invoke(root, ["topic", "create", "--help"], prog_name="moldau")
    assert ask("topic", "create").stdout.split() == option.stdout.split()


@pytest.mark.parametrize(
    ("words", "answer"),
    [(("strat",), "'start'"), (("topic", "creat"), "'create'"), (("xyzzy",), "moldau help")],
)
def test_an_unknown_word_is_answered_with_the_nearest(words: tuple[str, ...], answer: str) -> None:
    result = ask(*words)
    assert result.exit_code == 2 and answer in result.stderr


def test_a_tool_of_kafka_is_named_as_such() -> None:
    assert "moldau kafka-topics --help" in ask("kafka-topics").stdout


EXAMPLES = [
    (name, command)
    for name, (_, text) in PAGES.items()
    for command in re.findall(r"(?:^  |\| |`)(moldau [a-z][^`\n]*?)(?:   |`|$)", text, re.MULTILINE)
]


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_the_commands_of_the_pages_are_there_with_their_options(page: str, example: str) -> None:
    words = shlex.split(example)[1:]
    if words[0].startswith("kafka-"):
        assert words[0] in TOOLS
        return
    if words[0] == "help":
        assert len(words) == 1 or words[1] in PAGES or words[1].isupper()
        return
    command, context = root, click.Context(root)
    while words and isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, f"{page}: there is no {words[0]}"
        command, words = found, words[1:]
    text = command.get_help(click.Context(command))
    for option in (word for word in words if re.fullmatch(r"--?[a-zA-Z][a-z-]*", word)):
        assert option in text, f"{page}: {example} has no {option}"
