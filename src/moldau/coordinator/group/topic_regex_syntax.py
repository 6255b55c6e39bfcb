"""Parses the regular expressions by which consumers name topics: the syntax of RE2, as Kafka's coordinator takes it.

There is no back reference and no look-around, so an automaton can decide in time linear in the text (`topic_regex`).
Topic names are ASCII: a set of characters is a number with one bit for each of the 128. Whether a repetition is greedy
does not matter to whether a whole name matches. The words of the errors are those of re2j, which Kafka uses.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

LENGTH_MAX: Final = 0x7FFF
DEPTH_MAX: Final = 200
REPEAT_MAX: Final = 1000

MISSING_PAREN: Final = "missing closing )"
MISSING_BRACKET: Final = "missing closing ]"
MISSING_ARGUMENT: Final = "missing argument to repetition operator"
NESTED_REPEAT: Final = "invalid nested repetition operator"
BAD_REPEAT: Final = "invalid repeat count"
BAD_ESCAPE: Final = "invalid escape sequence"
BAD_RANGE: Final = "invalid character class range"
BAD_PERL: Final = "invalid or unsupported Perl syntax"
BAD_NAME: Final = "invalid named capture"
DUPLICATE_NAME: Final = "duplicate capture group name"
TRAILING_BACKSLASH: Final = "trailing backslash at end of expression"
UNEXPECTED_PAREN: Final = "regexp/syntax: internal error"

BEGIN_TEXT: Final = 0
END_TEXT: Final = 1
WORD_BOUNDARY: Final = 2
NO_WORD_BOUNDARY: Final = 3

ALL: Final = (1 << 128) - 1


class InvalidRegex(Exception):
    """The expression is none; the text says why."""


class Node:
    """A piece of an expression; the subclasses are all there are."""


class Characters(Node):
    """One character of a set."""

    def __init__(self, mask: int) -> None:
        self.mask = mask


class Assertion(Node):
    """Something that holds between two characters."""

    def __init__(self, kind: int) -> None:
        self.kind = kind


class Sequence(Node):
    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes


class Choice(Node):
    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes


class Repeat(Node):
    """`most` is -1 where there is no end."""

    def __init__(self, node: Node, least: int, most: int) -> None:
        self.node = node
        self.least = least
        self.most = most


def _range(low: int, high: int) -> int:
    """The bits of the characters from `low` to `high`, as far as they are ASCII."""
    high = min(high, 127)
    return 0 if low > high else ((1 << (high - low + 1)) - 1) << low


def _ranges(*pairs: str) -> int:
    mask = 0
    for pair in pairs:
        mask |= _range(ord(pair[0]), ord(pair[-1]))
    return mask


_DIGIT: Final = _ranges("09")
_LOWER: Final = _ranges("az")
_UPPER: Final = _ranges("AZ")
_WORD: Final = _ranges("09", "AZ", "az", "_")
_NEWLINE: Final = 1 << 10

WORD: Final = _WORD

_PERL_CLASSES: Final = {"d": _DIGIT, "s": _ranges("\t", "\n", "\f", "\r", " "), "w": _WORD}
_POSIX_CLASSES: Final = {
    "alnum": _DIGIT | _LOWER | _UPPER,
    "alpha": _LOWER | _UPPER,
    "ascii": ALL,
    "blank": _ranges("\t", " "),
    "cntrl": _range(0, 31) | 1 << 127,
    "digit": _DIGIT,
    "graph": _ranges("!~"),
    "lower": _LOWER,
    "print": _ranges(" ~"),
    "punct": _ranges("!/", ":@", "[`", "{~"),
    "space": _ranges("\t\r", " "),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _ranges("09", "AF", "af"),
}
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}

# The scripts that may be named; only two of them have ASCII characters.
_SCRIPT_NAMES: Final = """
Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid
Canadian_Aboriginal Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari
Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew
Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada
Katakana Kayah_Li Kharoshthi Khmer Lao Latin Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic
Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian
Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese
Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh
Ugaritic Unknown Vai Yi
"""
_SCRIPTS: Final = frozenset(_SCRIPT_NAMES.split())
_CATEGORY_NAMES: Final = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""
_CATEGORIES: Final = frozenset(_CATEGORY_NAMES.split())

# Two characters beyond ASCII fold to ASCII ones.
_LONG_S: Final = 0x17F
_KELVIN: Final = 0x212A
_RUNE_MAX: Final = 0x10FFFF


def _unicode_class(name: str) -> int:
    if name == "Any":
        return ALL
    if name in _CATEGORIES:
        return _mask_of(code for code in range(128) if unicodedata.category(chr(code)).startswith(name))
    if name == "Latin":
        return _LOWER | _UPPER
    if name == "Common":
        return ALL & ~(_LOWER | _UPPER)
    if name in _SCRIPTS:
        return 0
    raise InvalidRegex(BAD_RANGE)


def _mask_of(codes: Iterable[int]) -> int:
    mask = 0
    for code in codes:
        mask |= 1 << code
    return mask


def _fold(mask: int) -> int:
    """With the other case of every letter."""
    return mask | (mask & _LOWER) >> 32 | (mask & _UPPER) << 32


def _fold_range(low: int, high: int) -> int:
    mask = _fold(_range(low, high))
    if low <= _LONG_S <= high:
        mask |= _ranges("s", "S")
    if low <= _KELVIN <= high:
        mask |= _ranges("k", "K")
    return mask


class _Frame:
    """What stands between a ( and its ): finished alternatives, the current one, and the flags to go back to."""

    def __init__(self, flags: tuple[bool, bool]) -> None:
        self.flags = flags
        self.alternatives: list[Node] = []
        self.current: list[Node] = []

    def finish(self) -> Node:
        self.next_alternative()
        alternatives = self.alternatives
        return alternatives[0] if len(alternatives) == 1 else Choice(alternatives)

    def next_alternative(self) -> None:
        current = self.current
        self.alternatives.append(current[0] if len(current) == 1 else Sequence(current))
        self.current = []


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.fold_case = False
        self.dot_matches_newline = False
        self.names: set[str] = set()
        self.frames = [_Frame((False, False))]

    # Reading

    @property
    def more(self) -> bool:
        return self.position < len(self.text)

    def looking_at(self, text: str) -> bool:
        return self.text.startswith(text, self.position)

    def take(self) -> str:
        character = self.text[self.position]
        self.position += 1
        return character

    # The whole expression

    def parse(self) -> Node:
        last_repeat = -1
        while self.more:
            repeat = -1
            character = self.text[self.position]
            if character in "*+?":
                repeat = self.position
                self.position += 1
                least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[character]
                self.repeat(least, most, last_repeat)
            elif character == "{":
                repeat = self.position
                counts = self.parse_counts()
                if counts is None:
                    # Not a repetition after all: the brace is a brace.
                    self.position = repeat + 1
                    repeat = -1
                    self.literal(ord("{"))
                else:
                    self.repeat(counts[0], counts[1], last_repeat)
            else:
                self.parse_one(character)
            last_repeat = repeat
        if len(self.frames) > 1:
            raise InvalidRegex(MISSING_PAREN)
        return self.frames[0].finish()

    def parse_one(self, character: str) -> None:
        if character == "\\":
            self.parse_backslash()
            return
        if character == "(" and self.looking_at("(?"):
            self.parse_perl_group()
            return
        self.position += 1
        if character == "(":
            self.open_group()
        elif character == "|":
            self.frames[-1].next_alternative()
        elif character == ")":
            self.close_group()
        elif character == "^":
            self.push(Assertion(BEGIN_TEXT))
        elif character == "$":
            self.push(Assertion(END_TEXT))
        elif character == ".":
            self.push(Characters(ALL if self.dot_matches_newline else ALL & ~_NEWLINE))
        elif character == "[":
            self.push(Characters(self.parse_class()))
        else:
            self.literal(ord(character))

    def push(self, node: Node) -> None:
        self.frames[-1].current.append(node)

    def literal(self, code: int) -> None:
        self.push(Characters(_fold_range(code, code) if self.fold_case else _range(code, code)))

    # Groups

    def open_group(self) -> None:
        if len(self.frames) > DEPTH_MAX:
            raise InvalidRegex("expression nests too deeply")
        self.frames.append(_Frame((self.fold_case, self.dot_matches_newline)))

    def close_group(self) -> None:
        if len(self.frames) == 1:
            raise InvalidRegex(UNEXPECTED_PAREN)
        frame = self.frames.pop()
        self.fold_case, self.dot_matches_newline = frame.flags
        self.push(Sequence([frame.finish()]))

    def parse_perl_group(self) -> None:
        for opening in ("(?P<", "(?<"):
            if self.looking_at(opening):
                self.parse_name(len(opening))
                return
        self.position += 2
        before = (self.fold_case, self.dot_matches_newline)
        switch_on = True
        saw_flag = False
        while self.more:
            character = self.take()
            if character in "imsU":
                saw_flag = True
                if character == "i":
                    self.fold_case = switch_on
                elif character == "s":
                    self.dot_matches_newline = switch_on
            elif character == "-" and switch_on:
                switch_on = False
                saw_flag = False
            elif character in ":)" and (switch_on or saw_flag):
                if character == ":":
                    self.open_group()
                    self.frames[-1].flags = before
                return
            else:
                break
        raise InvalidRegex(BAD_PERL)

    def parse_name(self, opening: int) -> None:
        end = self.text.find(">", self.position)
        if end < 0:
            raise InvalidRegex(BAD_NAME)
        name = self.text[self.position + opening : end]
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise InvalidRegex(BAD_NAME)
        if name in self.names:
            raise InvalidRegex(DUPLICATE_NAME)
        self.names.add(name)
        self.position = end + 1
        self.open_group()

    # Repetition

    def repeat(self, least: int, most: int, last_repeat: int) -> None:
        if self.looking_at("?"):
            self.position += 1
        if last_repeat >= 0:
            raise InvalidRegex(NESTED_REPEAT)
        current = self.frames[-1].current
        if not current:
            raise InvalidRegex(MISSING_ARGUMENT)
        current[-1] = Repeat(current[-1], least, most)

    def parse_counts(self) -> tuple[int, int] | None:
        """What stands in braces, if that is one or two numbers."""
        self.position += 1
        least = self.parse_number()
        if least is None or not self.more:
            return None
        most: int | None = least
        if self.looking_at(","):
            self.position += 1
            if not self.more:
                return None
            most = -1 if self.looking_at("}") else self.parse_number()
        if most is None or not self.looking_at("}"):
            return None
        self.position += 1
        if least > REPEAT_MAX or most > REPEAT_MAX or 0 <= most < least:
            raise InvalidRegex(BAD_REPEAT)
        return least, most

    def parse_number(self) -> int | None:
        start = self.position
        while self.more and "0" <= self.text[self.position] <= "9":
            self.position += 1
        digits = self.text[start : self.position]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        return int(digits) if len(digits) <= 8 else REPEAT_MAX + 1

    # Escapes

    def parse_backslash(self) -> None:
        following = self.text[self.position + 1 : self.position + 2]
        if following == "A":
            self.push(Assertion(BEGIN_TEXT))
        elif following == "b":
            self.push(Assertion(WORD_BOUNDARY))
        elif following == "B":
            self.push(Assertion(NO_WORD_BOUNDARY))
        elif following == "z":
            self.push(Assertion(END_TEXT))
        elif following == "C":
            raise InvalidRegex(BAD_ESCAPE)
        elif following == "Q":
            self.parse_quoted()
            return
        else:
            mask = self.parse_class_escape()
            if mask is not None:
                self.push(Characters(mask))
            else:
                self.literal(self.parse_escape())
            return
        self.position += 2

    def parse_quoted(self) -> None:
        start = self.position + 2
        end = self.text.find("\\E", start)
        quoted = self.text[start:] if end < 0 else self.text[start:end]
        self.position = len(self.text) if end < 0 else end + 2
        for character in quoted:
            self.literal(ord(character))

    def parse_class_escape(self) -> int | None:
        """A class like \\d or \\pL; None, with nothing read, if it is something else."""
        following = self.text[self.position + 1 : self.position + 2]
        if following and following in "dswDSW":
            self.position += 2
            return self._negated(_PERL_CLASSES[following.lower()], following.isupper())
        if following and following in "pP":
            return self.parse_unicode_class(following == "P")
        return None

    def _negated(self, mask: int, negate: bool) -> int:
        if self.fold_case:
            mask = _fold(mask)
        return ALL & ~mask if negate else mask

    def parse_unicode_class(self, negate: bool) -> int:
        self.position += 2
        if not self.more:
            raise InvalidRegex(BAD_RANGE)
        name = self.take()
        if name == "{":
            end = self.text.find("}", self.position)
            if end < 0:
                raise InvalidRegex(BAD_RANGE)
            name = self.text[self.position : end]
            self.position = end + 1
        if name.startswith("^"):
            negate = not negate
            name = name[1:]
        return self._negated(_unicode_class(name), negate)

    def parse_escape(self) -> int:
        """The character that an escape stands for."""
        self.position += 1
        if not self.more:
            raise InvalidRegex(TRAILING_BACKSLASH)
        character = self.take()
        if "0" <= character <= "7":
            # One digit alone would be a back reference.
            if character == "0" or (self.more and "0" <= self.text[self.position] <= "7"):
                return self.parse_octal(character)
        elif character == "x":
            return self.parse_hexadecimal()
        elif character in _ESCAPES:
            return _ESCAPES[character]
        elif not (character.isascii() and character.isalnum()):
            return ord(character)
        raise InvalidRegex(BAD_ESCAPE)

    def parse_octal(self, first: str) -> int:
        value = int(first)
        for _ in range(2):
            if not self.more or not "0" <= self.text[self.position] <= "7":
                break
            value = value * 8 + int(self.take())
        return value

    def parse_hexadecimal(self) -> int:
        if not self.looking_at("{"):
            digits = self.text[self.position : self.position + 2]
            self.position += 2
            if len(digits) == 2:
                return _hexadecimal(digits)
            raise InvalidRegex(BAD_ESCAPE)
        end = self.text.find("}", self.position)
        digits = self.text[self.position + 1 : end]
        if end < 0 or not digits:
            raise InvalidRegex(BAD_ESCAPE)
        self.position = end + 1
        return _hexadecimal(digits)

    # Classes

    def parse_class(self) -> int:
        """What stands between brackets, the opening one read."""
        negate = self.looking_at("^")
        if negate:
            self.position += 1
        mask = 0
        first = True
        while not self.more or first or not self.looking_at("]"):
            first = False
            if not self.more:
                raise InvalidRegex(MISSING_BRACKET)
            mask |= self.parse_class_item()
        self.position += 1
        return ALL & ~mask if negate else mask

    def parse_class_item(self) -> int:
        if self.looking_at("[:"):
            named = self.parse_posix_class()
            if named is not None:
                return named
        if self.looking_at("\\"):
            escaped = self.parse_class_escape()
            if escaped is not None:
                return escaped
        low = self.parse_class_character()
        high = low
        if self.looking_at("-") and self.position + 1 < len(self.text) and not self.looking_at("-]"):
            self.position += 1
            high = self.parse_class_character()
            if high < low:
                raise InvalidRegex(BAD_RANGE)
        return _fold_range(low, high) if self.fold_case else _range(low, high)

    def parse_class_character(self) -> int:
        if not self.more:
            raise InvalidRegex(MISSING_BRACKET)
        return self.parse_escape() if self.looking_at("\\") else ord(self.take())

    def parse_posix_class(self) -> int | None:
        # In [[:] the colon is both the opening and the closing one, of a class without a name.
        end = self.text.find(":]", self.position + 1)
        if end < 0:
            return None
        name = self.text[self.position + 2 : end]
        negate = name.startswith("^")
        mask = _POSIX_CLASSES.get(name[1:] if negate else name)
        if mask is None:
            raise InvalidRegex(BAD_RANGE)
        self.position = end + 2
        return self._negated(mask, negate)


def _hexadecimal(digits: str) -> int:
    value = 0
    for digit in digits:
        if digit not in "0123456789abcdefABCDEF":
            raise InvalidRegex(BAD_ESCAPE)
        value = value * 16 + int(digit, 16)
        if value > _RUNE_MAX:
            raise InvalidRegex(BAD_ESCAPE)
    return value


def parse(text: str) -> Node:
    """Raises InvalidRegex."""
    if len(text) > LENGTH_MAX or len(text.encode("utf-8", "surrogatepass")) > LENGTH_MAX:
        raise InvalidRegex(f"expression is longer than {LENGTH_MAX} bytes")
    return _Parser(text).parse()
