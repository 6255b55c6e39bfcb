"""`kafka-consumer-groups --validate-regex`: is this a regular expression of RE2, which groups can subscribe with?

A walk over the text that only checks; what is wrong is said in the words of the library that Kafka's brokers use.
"""

from __future__ import annotations

MISSING_PAREN = "missing closing )"
MISSING_BRACKET = "missing closing ]"
MISSING_ARGUMENT = "missing argument to repetition operator"
NESTED_REPEAT = "invalid nested repetition operator"
REPEAT_SIZE = "invalid repeat count"
BAD_RANGE = "invalid character class range"
BAD_ESCAPE = "invalid escape sequence"
BAD_NAME = "invalid named capture"
SAME_NAME = "duplicate capture group name"
BAD_PERL = "invalid or unsupported Perl syntax"
INTERNAL = "regexp/syntax: internal error"
TRAILING_BACKSLASH = "trailing backslash at end of expression"

REPEAT_MAX = 1000
RUNE_MAX = 0x10FFFF
_PLAIN_ESCAPES = "afnrtv"
_PERL_CLASSES = "dswDSW"
_POSIX = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit"
_POSIX_CLASSES = frozenset(_POSIX.split())
_CATEGORIES = (
    "Any Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf P S C Z L M N Upper"
)
_SCRIPTS = """
Common Inherited Bamum Arabic Lisu Armenian Bengali Old_South_Arabian Bopomofo Cherokee Coptic Cyrillic Deseret
Devanagari Ethiopic Georgian Gothic Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Kannada Katakana Khmer Lao Latin
Malayalam Mongolian Myanmar Ogham Old_Italic Oriya Runic Sinhala Syriac Tamil Telugu Thaana Thai Tibetan
Canadian_Aboriginal Yi Tagalog Hanunoo Buhid Tagbanwa Braille Cypriot Limbu Linear_B Osmanya Shavian Tai_Le Ugaritic
Buginese Glagolitic Kharoshthi Syloti_Nagri New_Tai_Lue Tifinagh Old_Persian Balinese Batak Brahmi Cham
Egyptian_Hieroglyphs Javanese Kayah_Li Lepcha Mandaic Nko Old_Turkic Phags_Pa Phoenician Vai Cuneiform Carian Tai_Tham
Lycian Lydian Ol_Chiki Rejang Saurashtra Sundanese Meetei_Mayek Imperial_Aramaic Avestan Kaithi Inscriptional_Pahlavi
Inscriptional_Parthian Samaritan Tai_Viet
"""
_UNICODE_CLASSES = frozenset(f"{_CATEGORIES} {_SCRIPTS}".split())


class BadPattern(ValueError):
    """What is wrong with a pattern."""


def validate(pattern: str) -> str:
    """The sentence that the tool prints."""
    try:
        check_pattern(pattern)
    except BadPattern as error:
        return f"The regular expression `{pattern}` is invalid: {error}."
    return f"The regular expression `{pattern}` is valid."


def check_pattern(pattern: str) -> None:
    """Raises BadPattern for what RE2 would not compile."""
    _Walk(pattern).run()


class _Walk:
    """A position in the pattern, and what stands open before it."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.names: set[str] = set()
        # For each open parenthesis and for the whole: is there something that an operator could repeat?
        self.repeatable = [False]
        self.after_repeat = False

    def run(self) -> None:
        while self.at < len(self.text):
            was_repeat, self.after_repeat = self.after_repeat, False
            letter = self.text[self.at]
            if letter == "(":
                self._open()
            elif letter == "|":
                self.at += 1
                self.repeatable[-1] = False
            elif letter == ")":
                self._close()
            elif letter in "*+?":
                self.at += 1
                self._repeat(was_repeat)
            elif letter == "{" and self._count():
                self._repeat(was_repeat)
            else:
                self._atom(letter)
        if len(self.repeatable) > 1:
            raise BadPattern(MISSING_PAREN)

    def _looking_at(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _atom(self, letter: str) -> None:
        if letter == "[":
            self._character_class()
        elif self._looking_at("\\Q"):
            self._quoted()
            return
        elif letter == "\\":
            self._escape()
        else:
            self.at += 1
        self.repeatable[-1] = True

    def _quoted(self) -> None:
        """Everything up to \\E stands for itself."""
        start = self.at + 2
        end = self.text.find("\\E", start)
        self.at = len(self.text) if end < 0 else end + 2
        if self.text[start : None if end < 0 else end]:
            self.repeatable[-1] = True

    def _close(self) -> None:
        self.at += 1
        if len(self.repeatable) == 1:
            raise BadPattern(INTERNAL)
        self.repeatable.pop()
        self.repeatable[-1] = True

    def _repeat(self, was_repeat: bool) -> None:
        """Behind an operator: what it repeats must be there, and be no repetition itself."""
        if self._looking_at("?"):
            self.at += 1
        if was_repeat:
            raise BadPattern(NESTED_REPEAT)
        if not self.repeatable[-1]:
            raise BadPattern(MISSING_ARGUMENT)
        self.after_repeat = True

    def _count(self) -> bool:
        """Reads {2}, {2,} or {2,3}; False where the brace stands for itself."""
        start = self.at
        self.at += 1
        low = self._number()
        high: int | None = low
        if low is not None and self._looking_at(","):
            self.at += 1
            high = -1 if self._looking_at("}") else self._number()
        if low is None or high is None or not self._looking_at("}"):
            self.at = start
            return False
        self.at += 1
        if low > REPEAT_MAX or high > REPEAT_MAX or 0 <= high < low:
            raise BadPattern(REPEAT_SIZE)
        return True

    def _number(self) -> int | None:
        """Digits without zeros in front; None where there are none."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            self.at += 1
        digits = self.text[start : self.at]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        return int(digits) if len(digits) < 9 else REPEAT_MAX + 1

    def _open(self) -> None:
        if not self._looking_at("(?"):
            self.at += 1
            self.repeatable.append(False)
        elif self._looking_at("(?P<") or self._looking_at("(?<"):
            self._named_group(4 if self._looking_at("(?P<") else 3)
        else:
            self._flags()

    def _named_group(self, begin: int) -> None:
        end = self.text.find(">", self.at)
        name = self.text[self.at + begin : max(end, 0)]
        if end < 0 or not name or not all(letter.isascii() and (letter.isalnum() or letter == "_") for letter in name):
            raise BadPattern(BAD_NAME)
        if name in self.names:
            raise BadPattern(SAME_NAME)
        self.names.add(name)
        self.at = end + 1
        self.repeatable.append(False)

    def _flags(self) -> None:
        """(?i) for the rest of the group, or (?i: for a group of its own."""
        self.at += 2
        negated = some = False
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 1
            if letter in "imsU":
                some = True
            elif letter == "-" and not negated:
                negated, some = True, False
            elif letter in ":)" and (some or not negated):
                if letter == ":":
                    self.repeatable.append(False)
                return
            else:
                break
        raise BadPattern(BAD_PERL)

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following in ("A", "b", "B", "z", *_PERL_CLASSES):
            self.at += 2
        elif following in ("p", "P"):
            self._unicode_class()
        else:
            self._escaped_character()

    def _unicode_class(self) -> None:
        self.at += 2
        if self.at >= len(self.text):
            raise BadPattern(BAD_RANGE)
        if self.text[self.at] != "{":
            name = self.text[self.at]
            self.at += 1
        else:
            end = self.text.find("}", self.at)
            if end < 0:
                raise BadPattern(BAD_RANGE)
            name = self.text[self.at + 1 : end]
            self.at = end + 1
        if name.removeprefix("^") not in _UNICODE_CLASSES:
            raise BadPattern(BAD_RANGE)

    def _escaped_character(self) -> int:
        """One character behind a backslash."""
        self.at += 1
        if self.at >= len(self.text):
            raise BadPattern(TRAILING_BACKSLASH)
        letter = self.text[self.at]
        self.at += 1
        if letter in "01234567":
            return self._octal(letter)
        if letter == "x":
            return self._hexadecimal()
        if letter in _PLAIN_ESCAPES:
            return ord({"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}[letter])
        if letter.isascii() and letter.isalnum():
            raise BadPattern(BAD_ESCAPE)
        return ord(letter)

    def _octal(self, first: str) -> int:
        following = self.text[self.at : self.at + 1]
        if first != "0" and (not following or following not in "01234567"):
            # A single digit would refer to a group, which RE2 cannot do.
            raise BadPattern(BAD_ESCAPE)
        digits = first
        while len(digits) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
            digits += self.text[self.at]
            self.at += 1
        return int(digits, 8)

    def _hexadecimal(self) -> int:
        if self._looking_at("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : max(end, 0)]
            after = end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            after = self.at + 2
            if len(digits) < 2:
                raise BadPattern(BAD_ESCAPE)
        if not digits or not all(digit in "0123456789abcdefABCDEF" for digit in digits) or int(digits, 16) > RUNE_MAX:
            raise BadPattern(BAD_ESCAPE)
        self.at = after
        return int(digits, 16)

    def _character_class(self) -> None:
        self.at += 1
        if self._looking_at("^"):
            self.at += 1
        first = True
        while first or not self._looking_at("]"):
            first = False
            if self.at >= len(self.text):
                raise BadPattern(MISSING_BRACKET)
            if not self._named_class():
                self._range()
        self.at += 1

    def _named_class(self) -> bool:
        """[:alpha:], \\p{Greek} or \\d inside of a class."""
        if self._looking_at("[:"):
            end = self.text.find(":]", self.at + 2)
            if end >= 0:
                if self.text[self.at + 2 : end].removeprefix("^") not in _POSIX_CLASSES:
                    raise BadPattern(BAD_RANGE)
                self.at = end + 2
                return True
        if self._looking_at("\\p") or self._looking_at("\\P"):
            self._unicode_class()
            return True
        if self._looking_at("\\") and self.text[self.at + 1 : self.at + 2] in (*_PERL_CLASSES,):
            self.at += 2
            return True
        return False

    def _range(self) -> None:
        low = self._class_character()
        if self._looking_at("-") and not self._looking_at("-]") and self.at + 1 < len(self.text):
            self.at += 1
            if self._class_character() < low:
                raise BadPattern(BAD_RANGE)

    def _class_character(self) -> int:
        if self.at >= len(self.text):
            raise BadPattern(MISSING_BRACKET)
        if self._looking_at("\\"):
            return self._escaped_character()
        self.at += 1
        return ord(self.text[self.at - 1])
