"""Command line options as Kafka's tools read them: long names, `--name value` or `--name=value`, lazy conversion.

The tools use jopt-simple; their users see its rules and its error texts, so both are kept here. Values are checked when
they are asked for, not when they are read, because that decides what is printed before an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TextIO

HELP_WIDTH = 80
SEPARATOR = "  "
INDENT = "  "

NO_VALUE = 0
VALUE = 1
OPTIONAL_VALUE = 2
NUMBERS = ("Integer", "Long")


class JavaFailure(Exception):
    """An end that the real tool reports as an uncaught exception: its class and its message (None: it has none)."""

    def __init__(self, class_name: str, message: str | None, caused_by: JavaFailure | None = None) -> None:
        super().__init__(message)
        self.class_name = class_name
        self.message = message
        self.caused_by = caused_by

    def java_text(self) -> str:
        """As Java prints it, with its causes; there is no stack here that would tell anybody something."""
        own = self.class_name if self.message is None else f"{self.class_name}: {self.message}"
        return own if self.caused_by is None else f"{own}\nCaused by: {self.caused_by.java_text()}"

    def line(self) -> str:
        return f'Exception in thread "main" {self.java_text()}'


class Exit(Exception):
    """Ends the tool with a code, after a message on the error output where there is one."""

    def __init__(self, code: int, message: str = "", usage_of: OptionParser | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.usage_of = usage_of


class Option:
    """One option; `type_name` and `described_as` are what the help shows of its value."""

    def __init__(
        self,
        name: str,
        help_text: str,
        takes: int = NO_VALUE,
        type_name: str = "String",
        described_as: str = "",
        default: str | int | None = None,
    ) -> None:
        self.name = name
        self.help_text = help_text
        self.takes = takes
        self.type_name = type_name
        self.described_as = described_as
        self.default = default

    def may_take(self, word: str) -> bool:
        """Whether the next word is the value: one that may be missing must not look like an option, but be a number."""
        if self.takes == VALUE:
            return True
        if self.type_name in NUMBERS:
            return re.fullmatch(r"[+-]?\d+", word) is not None
        return not word.startswith("-")

    def left(self) -> str:
        """The left column of the help."""
        dashes = "-" if len(self.name) == 1 else "--"
        if self.takes == NO_VALUE:
            return dashes + self.name
        value = f"{self.type_name}: {self.described_as}" if self.described_as else self.type_name
        return f"{dashes}{self.name} <{value}>" if self.takes == VALUE else f"{dashes}{self.name} [{value}]"

    def right(self) -> str:
        return self.help_text if self.default is None else f"{self.help_text} (default: {self.default})"


class Options:
    """What was found on the command line."""

    def __init__(self, parser: OptionParser, count: int) -> None:
        self.parser = parser
        self.arguments_count = count
        self.found: dict[str, list[str]] = {}
        self.plain: list[str] = []

    def has(self, name: str) -> bool:
        return name in self.found

    def values(self, name: str) -> list[str]:
        return self.found.get(name, [])

    def text(self, name: str) -> str | None:
        """The one value; the default when there is none."""
        values = self.values(name)
        if len(values) > 1:
            raise JavaFailure(
                "joptsimple.MultipleArgumentsForOptionException",
                f"Found multiple arguments for option {name}, but you asked for only one",
            )
        if values:
            return values[0]
        default = self.parser.options[name].default
        return None if default is None else str(default)

    def integer(self, name: str) -> int | None:
        return self._whole(name, self.text(name), 32)

    def long(self, name: str) -> int | None:
        return self._whole(name, self.text(name), 64)

    def longs(self, name: str) -> list[int]:
        """All values, for options that may be given many times."""
        return [found for found in (self._whole(name, text, 64) for text in self.values(name)) if found is not None]

    def _whole(self, name: str, text: str | None, bits: int) -> int | None:
        if text is None:
            return None
        if not re.fullmatch(r"[+-]?\d+", text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
            raise JavaFailure(
                "joptsimple.OptionArgumentConversionException", f"Cannot parse argument '{text}' of option {name}"
            )
        return int(text)


class OptionParser:
    """The options of one tool. --help and --version belong to each."""

    def __init__(self, options: Sequence[Option]) -> None:
        every = [
            *options,
            Option("help", "Show this and end."),
            Option("version", "Show the version of Apache Kafka that is spoken here."),
        ]
        self.options = {option.name: option for option in sorted(every, key=_name)}

    def parse(self, arguments: Sequence[str]) -> Options:
        found = Options(self, len(arguments))
        position = 0
        while position < len(arguments):
            word = arguments[position]
            position += 1
            if word == "--":
                found.plain.extend(arguments[position:])
                break
            if not word.startswith("-") or word == "-":
                found.plain.append(word)
                continue
            name, equals, value = word.lstrip("-").partition("=")
            option = self.options.get(name)
            if option is None:
                raise _unrecognized(word, name, self.options)
            values = found.found.setdefault(name, [])
            if option.takes == NO_VALUE:
                continue
            if equals:
                values.append(value)
            elif position < len(arguments) and option.may_take(arguments[position]):
                values.append(arguments[position])
                position += 1
            elif option.takes == VALUE:
                raise JavaFailure(
                    "joptsimple.OptionMissingRequiredArgumentException", f"Option {name} requires an argument"
                )
        return found

    def print_help(self, out: TextIO) -> None:
        rows = [(option.left(), option.right()) for option in self.options.values()]
        widest = max(len(left) for left, _ in rows)
        left_width = min((HELP_WIDTH - len(SEPARATOR)) // 2, widest)
        right_width = HELP_WIDTH - left_width - len(SEPARATOR)
        for left, right in [("Option", "Description"), ("------", "-----------"), *rows]:
            lefts, rights = break_lines(left, left_width), break_lines(right, right_width)
            for index in range(max(len(lefts), len(rights))):
                first = lefts[index] if index < len(lefts) else ""
                second = rights[index] if index < len(rights) else ""
                out.write(f"{first.ljust(left_width)}{SEPARATOR}{second.ljust(right_width)}\n")


def _name(option: Option) -> str:
    return option.name


def _unrecognized(word: str, name: str, known: dict[str, Option]) -> JavaFailure:
    if not word.startswith("--"):
        # A single dash may begin a cluster of short options; the first letter that is none is named.
        name = next((letter for letter in word[1:] if letter not in known), name)
    return JavaFailure("joptsimple.UnrecognizedOptionException", f"{name} is not a recognized option")


def break_lines(text: str, width: int) -> list[str]:
    """The text in lines of at most `width`, broken at blanks and behind hyphens, all but the first indented."""
    lines = []
    line = ""
    for word in re.findall(r"[^\s-]*-+(?=\w)|\S+\s*|\s+", text):
        if len(line) + len(word.rstrip()) > width and line.strip():
            lines.append(line.rstrip())
            line = INDENT + word
        else:
            line += word
    return [*lines, line.rstrip()]


def check_help_or_version(options: Options, about: str) -> None:
    """What every tool does first: no argument or --help is a usage error, --version ends well."""
    if options.arguments_count == 0 or options.has("help"):
        raise Exit(1, about, options.parser)
    if options.has("version"):
        print("4.3.1")
        raise Exit(0)


def check_required(options: Options, *names: str) -> None:
    for name in names:
        if not options.has(name):
            raise Exit(1, f'Missing required argument "[{name}]"', options.parser)


def check_invalid(options: Options, used: str, *others: str) -> None:
    """`used` may not stand beside any of the others."""
    if options.has(used):
        for other in others:
            if options.has(other):
                raise Exit(1, f'Option "[{used}]" can\'t be used with option "[{other}]"', options.parser)
