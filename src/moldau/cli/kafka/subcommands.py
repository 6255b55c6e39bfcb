"""Command lines as Kafka's newer tools read them: their rules, usage lines and error texts (those of argparse4j).

The tools' users see the rules of that library: long options may be shortened, short ones joined, options of a command
that is below another come behind its name. Help is in words of our own; what comes with an error is letter for letter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from moldau.cli.kafka.options import Exit

WIDTH = 75
# A program's name that reaches beyond this column gets a line of its own in the usage.
USAGE_COLUMN_MAX = 30
USAGE_INDENT = 6
# Names that are further away than this from what was written are not worth a hint.
HINT_DISTANCE_MAX = 6
SUBSTITUTE, SWAP, DELETE, INSERT = 2, 0, 3, 1
MANY = 1 << 31

_NUMBER = re.compile(r"-\d+")

STORE, STORE_TRUE, APPEND, HELP = "store", "store_true", "append", "help"

# What a value is read as -> its name in Java and the bound of its numbers
_JAVA_TYPES: dict[object, tuple[str, int]] = {int: ("Integer", 1 << 31), "long": ("Long", 1 << 63)}


class UsageError(Exit):
    """A command line that makes no sense: the usage and the reason are shown, and the tool ends with code 1."""

    def __init__(self, parser: CommandParser, reason: str, hints: list[str]) -> None:
        shown = f"{parser.format_usage()}{justify(f'{parser.prog}: error: {reason}', WIDTH)}"
        if hints:
            shown += "\n\nDid you mean:\n" + "\n".join(f"\t{hint}" for hint in hints)
        super().__init__(1, shown)
        self.reason = reason


class Namespace:
    """What was found; an attribute for each option."""

    def __init__(self) -> None:
        self.__dict__: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value


class Argument:
    """One option; `dest` is the attribute that gets its value."""

    def __init__(
        self,
        flags: tuple[str, ...],
        help: str = "",
        *,
        metavar: str | None = None,
        dest: str | None = None,
        required: bool = False,
        action: str = STORE,
        nargs: str | None = None,
        type: object = str,
        default: Any = None,
        choices: tuple[Any, ...] = (),
        group: ExclusiveGroup | None = None,
    ) -> None:
        self.flags = flags
        self.help = help
        long = next((flag for flag in flags if flag.startswith("--")), flags[0])
        self.dest = dest or long.lstrip("-").replace("-", "_").replace(".", "_")
        self.metavar = metavar or long.lstrip("-").replace("-", "_").upper()
        self.required = required
        self.action = action
        self.nargs = nargs
        self.type = type
        self.default = default
        self.choices = choices
        self.group = group

    @property
    def takes_value(self) -> bool:
        return self.action in (STORE, APPEND)

    @property
    def name(self) -> str:
        return "/".join(self.flags)

    def syntax(self, bracket: bool = True) -> str:
        """As the usage shows it."""
        text = self.flags[0] + self._values()
        return text if self.required or not bracket else f"[{text}]"

    def title(self) -> str:
        """As the help shows it."""
        return ", ".join(flag + self._values() for flag in self.flags)

    def _values(self) -> str:
        if not self.takes_value:
            return ""
        return f" {self.metavar} [{self.metavar} ...]" if self.nargs == "+" else f" {self.metavar}"

    def convert(self, text: str, parser: CommandParser) -> Any:
        value = self._typed(text, parser)
        if self.choices and value not in self.choices:
            shown = "{" + ",".join(map(str, self.choices)) + "}"
            parser.error(f"argument {self.name}: invalid choice: '{text}' (choose from {shown})")
        return value

    def _typed(self, text: str, parser: CommandParser) -> Any:
        if self.type is str:
            return text
        if self.type is float:
            return _java_float(text, self, parser)
        kind, bound = _JAVA_TYPES[self.type]
        if re.fullmatch(r"[+-]?\d+", text) and -bound <= int(text) < bound:
            return int(text)
        raise self.refusal(text, kind, f'For input string: "{text}"', parser)

    def refusal(self, text: str, kind: str, reason: str, parser: CommandParser) -> UsageError:
        return UsageError(parser, f"argument {self.name}: could not convert '{text}' to {kind} ({reason})", [])


def _java_float(text: str, argument: Argument, parser: CommandParser) -> float:
    try:
        if "_" not in text:
            return float(text.strip().removesuffix("d").removesuffix("f"))
    except ValueError:
        pass
    reason = "empty String" if not text.strip() else f'For input string: "{text}"'
    raise argument.refusal(text, "Double", reason, parser)


class ExclusiveGroup:
    """Options of which only one may be given."""

    def __init__(self, parser: CommandParser, required: bool) -> None:
        self.parser = parser
        self.required = required
        self.arguments: list[Argument] = []

    def add_argument(self, *flags: str, **more: Any) -> None:
        argument = Argument(flags, group=self, **more)
        self.arguments.append(argument)
        self.parser.arguments.append(argument)

    def syntax(self) -> list[str]:
        """The words of the usage; a line may end between them."""
        first, last = ("(", ")") if self.required else ("[", "]")
        if len(self.arguments) == 1:
            return [self.arguments[0].syntax(bracket=not self.required)]
        shown = [argument.syntax(bracket=False) for argument in self.arguments]
        shown[0], shown[-1] = first + shown[0], shown[-1] + last
        return [word for item in shown for word in (item, "|")][:-1]


class Commands:
    """The commands below a parser."""

    def __init__(self, parser: CommandParser, dest: str, metavar: str | None = None) -> None:
        self.parser = parser
        self.dest = dest
        self.metavar = metavar
        self.parsers: dict[str, CommandParser] = {}

    def add_parser(self, name: str, help: str = "", description: str = "") -> CommandParser:
        parser = CommandParser(self.parser.prog, description or help, self.parser, name, self.parser.help_code)
        self.parsers[name] = parser
        return parser

    def choose(self, word: str) -> CommandParser:
        found = self.parsers.get(word)
        if found is not None:
            return found
        near = sorted(name for name in self.parsers if name.startswith(word)) if word else []
        if len(near) == 1:
            return self.parsers[near[0]]
        if near:
            self.parser.error(f"ambiguous command: {word} could match {', '.join(near)}")
        names = ", ".join(f"'{name}'" for name in self.parsers)
        hints = _hints(word, {name: name for name in self.parsers})
        raise UsageError(self.parser, f"invalid choice: '{word}' (choose from {names})", hints)


class CommandParser:
    """The options of one tool, or of one of its commands."""

    def __init__(
        self,
        prog: str,
        description: str = "",
        above: CommandParser | None = None,
        command: str | None = None,
        help_code: int = 0,
    ) -> None:
        """help_code: some of the tools take it for a failure that somebody wanted help."""
        self.help_code = help_code
        self.prog = prog
        self.description = description
        self.above = above
        self.command = command
        self.arguments = [Argument(("-h", "--help"), "Show this and end.", action=HELP)]
        self.groups: list[ExclusiveGroup] = []
        self.commands: Commands | None = None

    def add_argument(self, *flags: str, **more: Any) -> None:
        self.arguments.append(Argument(flags, **more))

    def add_mutually_exclusive_group(self, required: bool = False) -> ExclusiveGroup:
        group = ExclusiveGroup(self, required)
        self.groups.append(group)
        return group

    def add_subparsers(self, dest: str = "command", metavar: str | None = None) -> Commands:
        """metavar: stands for the names of the commands in the usage."""
        self.commands = Commands(self, dest, metavar)
        return self.commands

    def parse_args(self, arguments: Sequence[str]) -> Any:
        """The values; a usage error or --help ends the tool."""
        found = Namespace()
        missing = _Parse(self, list(arguments), found).run()
        if missing is not None:
            raise missing
        return found

    # What is shown

    def error(self, message: str, hints: list[str] | None = None) -> NoReturn:
        raise UsageError(self, message, hints or [])

    def format_usage(self) -> str:
        head = f"usage: {self.prog}"
        alone = len(head) > USAGE_COLUMN_MAX
        indent = " " * (USAGE_INDENT if alone else len(head))
        lines = [head, indent] if alone else [head]
        for index, word in enumerate(self._usage_words()):
            # The first word may be as long as it likes. Where the name stands alone the indent counts twice.
            column = len(lines[-1]) + (USAGE_INDENT if alone and len(lines) == 2 else 0)
            if index > 0 and column + 1 + len(word) > WIDTH:
                lines.append(indent)
            lines[-1] += " " + word
        return "\n".join(lines) + "\n"

    def _usage_words(self) -> list[str]:
        words = self._words_above(self.above)
        if self.command is not None:
            words.append(self.command)
        words += [argument.syntax() for argument in self.arguments if argument.group is None]
        words += [word for group in self.groups for word in group.syntax()]
        if self.commands is not None:
            words += [self.commands.metavar or "{" + ",".join(self.commands.parsers) + "}", "..."]
        return words

    def _words_above(self, parser: CommandParser | None) -> list[str]:
        """What must stand before the command."""
        if parser is None:
            return []
        words = self._words_above(parser.above)
        if parser.command is not None:
            words.append(parser.command)
        words += [item.syntax() for item in parser.arguments if item.required and item.group is None]
        words += [word for group in parser.groups if group.required for word in group.syntax()]
        return words

    def print_help(self) -> None:
        out = sys.stdout
        out.write(self.format_usage())
        if self.description:
            out.write(f"\n{self.description}\n")
        if self.commands is not None:
            out.write("\npositional arguments:\n")
            for name, parser in self.commands.parsers.items():
                _write_help(name, parser.description)
        out.write("\noptional arguments:\n")
        for argument in self.arguments:
            _write_help(argument.title(), argument.help)


def _write_help(title: str, text: str) -> None:
    left = f"  {title}"
    sys.stdout.write(f"{left}\n{'':25}{text}\n" if len(left) > 24 else f"{left:<25}{text}\n")


class _Parse:
    """One run over a command line."""

    def __init__(self, parser: CommandParser, words: list[str], found: Namespace) -> None:
        self.parser = parser
        self.words = words
        self.position = 0
        self.found = found
        self.index = {flag: argument for argument in parser.arguments for flag in argument.flags}
        self.used: set[str] = set()
        self.group_used: dict[int, Argument] = {}

    def run(self) -> UsageError | None:
        """What is missing is told by the caller: anything else that is wrong comes first."""
        parser = self.parser
        for argument in parser.arguments:
            if argument.action != HELP:
                setattr(self.found, argument.dest, False if argument.action == STORE_TRUE else argument.default)
        plain = False
        while self.position < len(self.words):
            word = self.words[self.position]
            if not plain and word == "--":
                plain = True
                self.position += 1
            elif not plain and self._is_flag(word):
                self._take_flag(word)
            elif not plain and parser.commands is not None:
                chosen = parser.commands.choose(word)
                missing_below = _Parse(chosen, self.words[self.position + 1 :], self.found).run()
                setattr(self.found, parser.commands.dest, chosen.command)
                return self._missing() or missing_below
            else:
                parser.error(f"unrecognized arguments: '{' '.join(self.words[self.position :])}'")
        if parser.commands is not None:
            parser.error("too few arguments")
        return self._missing()

    def _is_flag(self, word: str) -> bool:
        return word.startswith("-") and not _NUMBER.fullmatch(word)

    def _take_flag(self, word: str) -> None:
        flag, equals, embedded = word.partition("=")
        argument = self._resolve(flag)
        if argument is not None:
            self.position += 1
            self._use(argument, embedded if equals else None)
            return
        if word.startswith("--") or not self._take_joined(word):
            body = word.lstrip("-")
            names = {name: name.lstrip("-") for name in self.index if len(name.lstrip("-")) > 1}
            self.parser.error(f"unrecognized arguments: '{word}'", _hints(body, names) if len(body) > 1 else [])

    def _resolve(self, flag: str) -> Argument | None:
        """The option with this name, or with the one name that begins so."""
        found = self.index.get(flag)
        if found is not None:
            return found
        near = sorted(name for name in self.index if name.startswith(flag))
        if len(near) > 1:
            self.parser.error(f"ambiguous option: {flag} could match {', '.join(near)}")
        return self.index[near[0]] if near else None

    def _take_joined(self, word: str) -> bool:
        """Short options in one word; the last one may have its value behind it."""
        for place, letter in enumerate(word[1:], 1):
            argument = self.index.get(f"-{letter}")
            if argument is None:
                return False
            if argument.takes_value:
                self.position += 1
                self._use(argument, word[place + 1 :] or None)
                return True
            self._use(argument, None)
        self.position += 1
        return True

    def _use(self, argument: Argument, embedded: str | None) -> None:
        group = argument.group
        if group is not None:
            other = self.group_used.setdefault(id(group), argument)
            if other is not argument:
                self.parser.error(f"argument {argument.name}: not allowed with argument {other.name}")
        self.used.add(argument.name)
        if not argument.takes_value:
            if embedded is not None:
                self.parser.error(f"argument {argument.name}: ignore implicit argument '{embedded}'")
            if argument.action == HELP:
                self.parser.print_help()
                raise Exit(self.parser.help_code)
            setattr(self.found, argument.dest, True)
            return
        values = self._values(argument, embedded)
        if argument.action == APPEND:
            setattr(self.found, argument.dest, [*(getattr(self.found, argument.dest) or []), *values])
        else:
            setattr(self.found, argument.dest, values if argument.nargs == "+" else values[0])

    def _values(self, argument: Argument, embedded: str | None) -> list[Any]:
        if embedded is not None:
            return [argument.convert(embedded, self.parser)]
        values: list[Any] = []
        most = MANY if argument.nargs == "+" else 1
        while self.position < len(self.words) and len(values) < most:
            word = self.words[self.position]
            if word == "--" or self._is_flag(word):
                break
            values.append(argument.convert(word, self.parser))
            self.position += 1
        if not values:
            wanted = "expected 1 argument(s)" if argument.nargs == "+" else "expected one argument"
            self.parser.error(f"argument {argument.name}: {wanted}")
        return values

    def _missing(self) -> UsageError | None:
        """The last of the options that had to be given and were not; groups only where no option is missing."""
        for argument in reversed(self.parser.arguments):
            if argument.required and argument.name not in self.used:
                return UsageError(self.parser, f"argument {argument.name} is required", [])
        for group in reversed(self.parser.groups):
            if group.required and id(group) not in self.group_used:
                names = "".join(f"{argument.name} " for argument in group.arguments)
                return UsageError(self.parser, f"one of the arguments {names}is required", [])
        return None


# Where a line may end: behind blanks, and behind hyphens and points before a letter.
_BREAKABLE = re.compile(r"[^\s.:,;-]*(?:[.:,;-]+(?=[A-Za-z])|[.:,;-]*(?:\s+|$)|[.:,;-]+)")


def justify(text: str, width: int) -> str:
    """The text in lines that are all as long as the width, but for the last: blanks between words are stretched."""
    lines: list[str] = []
    line = ""
    # The end of the line takes a place of its own.
    for piece in _BREAKABLE.findall(text + "\n"):
        if line and len(line) + len(piece) > width:
            lines.append(_stretched(line, width))
            line = ""
        line += piece
    return "\n".join([*lines, line]).removesuffix("\n")


def _stretched(line: str, width: int) -> str:
    """Where blanks cannot be shared out evenly, those in the middle get one more."""
    words = re.split(" +", line.strip(" "))
    gaps = len(words) - 1
    if gaps < 1:
        return line.strip(" ")
    each, more = divmod(width - len(line.strip(" ")), gaps)
    first = (gaps - more + 1) // 2
    blanks = [" " * (1 + each + (first <= gap < first + more)) for gap in range(gaps)]
    return "".join(word + blank for word, blank in zip(words, [*blanks, ""], strict=True))


def _hints(word: str, names: dict[str, str]) -> list[str]:
    """The names nearest to the word, if any is near: by the costs that git uses for its own hints."""
    ranked = sorted((0 if body.startswith(word) else _distance(word, body), name) for name, body in names.items())
    if not ranked or ranked[0][0] > HINT_DISTANCE_MAX:
        return []
    return [name for distance, name in ranked if distance == ranked[0][0]]


def _distance(word: str, other: str) -> int:
    """What it costs to turn the word into the other by steps on letters."""
    rows = [list(range(len(other) + 1))]
    for i in range(1, len(word) + 1):
        row = [i]
        for j in range(1, len(other) + 1):
            same = word[i - 1] == other[j - 1]
            cost = rows[i - 1][j - 1] + (0 if same else SUBSTITUTE)
            if not same and i > 1 and j > 1 and word[i - 2] == other[j - 1] and word[i - 1] == other[j - 2]:
                cost = min(cost, rows[i - 2][j - 2] + SWAP)
            row.append(min(cost, rows[i - 1][j] + DELETE, row[j - 1] + INSERT))
        rows.append(row)
    return rows[-1][-1]


def connection_options(parser: CommandParser, short: bool = False, required: bool = True) -> None:
    """The brokers or the controllers to talk to, one of the two."""
    where = parser.add_mutually_exclusive_group(required)
    names = (["--bootstrap-server", "-b"], ["--bootstrap-controller", "-C"])
    for name in names:
        where.add_argument(*(name if short else name[:1]), help="The servers to connect to, separated by commas.")
