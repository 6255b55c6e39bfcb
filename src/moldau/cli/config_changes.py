"""Changes of configs as flags: --set, --delete, --append and --subtract."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from moldau.cli.options import Command, parse_pairs

if TYPE_CHECKING:
    from moldau.client.admin import ConfigChange


def change_options(command: Command) -> Command:
    """Adds the flags; the command gets sets, deletes, appends and subtracts, for parse_changes()."""
    for option in (
        click.option(
            "--subtract",
            "subtracts",
            multiple=True,
            metavar="KEY=VALUE",
            help="Take values off a config that is a list.",
        ),
        click.option(
            "--append", "appends", multiple=True, metavar="KEY=VALUE", help="Add values to a config that is a list."
        ),
        click.option(
            "-d",
            "--delete",
            "deletes",
            multiple=True,
            metavar="KEY",
            help="Back to the value that holds without it; may be repeated.",
        ),
        click.option("-s", "--set", "sets", multiple=True, metavar="KEY=VALUE", help="A new value; may be repeated."),
    ):
        command = option(command)
    return command


def parse_changes(
    sets: Iterable[str], deletes: Iterable[str], appends: Iterable[str], subtracts: Iterable[str]
) -> list[ConfigChange]:
    """The changes in the order of the flags above; the same key twice is refused."""
    from moldau.client.admin import APPEND, DELETE, SET, SUBTRACT, ConfigChange

    changes = [ConfigChange(key, value, SET) for key, value in parse_pairs("--set", sets).items()]
    for key in deletes:
        if "=" in key or not key.strip():
            raise click.UsageError(f"--delete wants the KEY alone, not {key!r}.")
        changes.append(ConfigChange(key.strip(), None, DELETE))
    changes += [ConfigChange(key, value, APPEND) for key, value in parse_pairs("--append", appends).items()]
    changes += [ConfigChange(key, value, SUBTRACT) for key, value in parse_pairs("--subtract", subtracts).items()]
    keys = [change.name for change in changes]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise click.UsageError(f"{twice[0]} is changed twice: choose one of the changes.")
    return changes
