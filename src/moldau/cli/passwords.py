"""Where a command gets a password from: a prompt, the standard input, a file, the environment, or chance.

An argument of a command can be read by everybody on the machine (`ps`) and stays in the shell's history, so a password
given as one is taken with a warning.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import click

from moldau.cli.output import print_warning

PASSWORD_BYTES = 24
READ_BY_OTHERS = 0o077
SOURCES = "--password-stdin, --password-file FILE, --password-env VARIABLE or --generate"


class Password(NamedTuple):
    """A password, and whether it was made up here and has to be shown."""

    text: str
    is_generated: bool = False


class PasswordSource(NamedTuple):
    """What the flags say; nothing is read before `read` is called."""

    argument: str | None
    from_stdin: bool
    file: str | None
    variable: str | None
    generate: bool

    def check(self) -> None:
        """Raises where two sources are named, before anybody types a password."""
        named = [self.argument is not None, self.from_stdin, self.file is not None, self.variable is not None]
        if sum([*named, self.generate]) > 1:
            raise click.UsageError("Name one source of the password, not several.")

    def read(self, user: str) -> Password:
        if self.generate:
            return Password(generate_password(), True)
        text = self._read(user)
        if not text:
            raise click.UsageError("The password is empty.")
        if "\n" in text or "\r" in text:
            raise click.UsageError("The password has more than one line.")
        return Password(text)

    def _read(self, user: str) -> str:
        if self.argument is not None:
            print_warning(
                "A password on the command line can be seen by others (`ps`) and stays in the shell's history."
            )
            return self.argument
        if self.from_stdin:
            return _one_line(sys.stdin.buffer.read())
        if self.file is not None:
            return _read_file(self.file)
        if self.variable is not None:
            if self.variable not in os.environ:
                raise click.UsageError(f"The environment has no variable {self.variable}.")
            return os.environ[self.variable]
        if not has_terminal():
            raise click.UsageError(f"There is no terminal to ask for a password: say {SOURCES}.")
        typed: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
        return typed


def has_terminal() -> bool:
    return sys.stdin.isatty()


def _read_file(path: str) -> str:
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        data = file.read()
    if mode & READ_BY_OTHERS:
        print_warning(f"{path} can be read by others: `chmod 600 {path}`.")
    return _one_line(data)


def _one_line(data: bytes) -> str:
    """Without the end of the line that editors and `echo` put there."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise click.UsageError("The password is no text in UTF-8.") from None
    return text.removesuffix("\n").removesuffix("\r")


def generate_password() -> str:
    """Letters, digits, - and _, so that it needs no quotes anywhere."""
    import secrets

    return secrets.token_urlsafe(PASSWORD_BYTES)


def password_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags and hands the command a PasswordSource as `source`."""

    @functools.wraps(command)
    def run(
        *args: object,
        password: str | None,
        password_stdin: bool,
        password_file: str | None,
        password_env: str | None,
        generate: bool,
        **more: object,
    ) -> None:
        source = PasswordSource(password, password_stdin, password_file, password_env, generate)
        source.check()
        command(*args, source=source, **more)

    for option in (
        click.option("--password", metavar="TEXT", help="The password itself; others on this machine can see it."),
        click.option("--generate", is_flag=True, help="Make a password up and print it."),
        click.option("--password-env", metavar="VARIABLE", help="Take it from this variable of the environment."),
        click.option(
            "--password-file",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="Take it from a file that only you can read.",
        ),
        click.option("--password-stdin", is_flag=True, help="Take it from the standard input."),
    ):
        run = option(run)
    return run
