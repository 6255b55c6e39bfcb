"""Which records are wanted: regular expressions for value, key and headers."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from moldau.cli.options import Command
from moldau.client.record import ConsumerRecord


def filter_options(command: Command) -> Command:
    """Adds the flags; the command gets greps, key_greps and header_greps, for RecordFilter."""
    for option in (
        click.option(
            "--header",
            "header_greps",
            multiple=True,
            metavar="NAME[=REGEX]",
            help="Only records with such a header, and such a value in it.",
        ),
        click.option("--grep-key", "key_greps", multiple=True, metavar="REGEX", help="Only records with such a key."),
        click.option(
            "--grep",
            "greps",
            multiple=True,
            metavar="REGEX",
            help="Only records in whose value this is found. All filters must match; (?i) ignores case.",
        ),
    ):
        command = option(command)
    return command


class RecordFilter:
    """All conditions of one command; one without any is false and lets everything pass."""

    def __init__(self, greps: Iterable[str], key_greps: Iterable[str], header_greps: Iterable[str]) -> None:
        self._values = [_compile("--grep", text) for text in greps]
        self._keys = [_compile("--grep-key", text) for text in key_greps]
        self._headers: list[tuple[str, re.Pattern[bytes] | None]] = []
        for text in header_greps:
            name, equals, pattern = text.partition("=")
            self._headers.append((name, _compile("--header", pattern) if equals else None))

    def __bool__(self) -> bool:
        return bool(self._values or self._keys or self._headers)

    def matches(self, record: ConsumerRecord) -> bool:
        return (
            all(record.value is not None and pattern.search(record.value) for pattern in self._values)
            and all(record.key is not None and pattern.search(record.key) for pattern in self._keys)
            and all(_has_header(record, name, pattern) for name, pattern in self._headers)
        )


def _has_header(record: ConsumerRecord, name: str, pattern: re.Pattern[bytes] | None) -> bool:
    return any(
        found == name and (pattern is None or (value is not None and pattern.search(value) is not None))
        for found, value in record.headers
    )


def _compile(option: str, text: str) -> re.Pattern[bytes]:
    try:
        return re.compile(text.encode("utf-8", "surrogateescape"))
    except re.error as error:
        raise click.UsageError(f"{option}: {text!r} is not a regular expression: {error}.") from None
