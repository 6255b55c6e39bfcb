"""Reads and writes the text of Java `.properties` files."""

import re

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values in the order of the file; a key given twice keeps the last value."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        key = _unescape(line[:end])
        values.pop(key, None)
        values[key] = _unescape(rest)
    return values


def format_properties(values: dict[str, str]) -> str:
    """Text that `parse_properties` and Java read back as `values`."""
    return "".join(f"{_escape(key, is_key=True)}={_escape(value, is_key=False)}\n" for key, value in values.items())


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and blank ones; a line that ends in an odd number of backslashes goes on in the next."""
    lines: list[str] = []
    pending: str | None = None
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
        else:
            line = pending + line
            pending = None
        if (len(line) - len(line.rstrip("\\"))) % 2 == 1:
            pending = line[:-1]
        else:
            lines.append(line)
    if pending is not None:
        lines.append(pending)
    return lines


def _key_end(line: str) -> int:
    """Where the key stops: the first =, : or blank that is not escaped."""
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character != "\\" or position + 1 == len(text):
            parts.append(character)
            position += 1
            continue
        escaped = text[position + 1]
        position += 2
        if escaped == "u":
            digits = text[position : position + 4]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise ValueError(f"malformed \\uxxxx escape in '{text}'")
            parts.append(chr(int(digits, 16)))
            position += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    return "".join(parts)


def _escape(text: str, is_key: bool) -> str:
    parts: list[str] = []
    for position, character in enumerate(text):
        if character in "\t\n\r\f":
            parts.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[character])
        elif character in "\\=:#!" or (character == " " and (is_key or position == 0)):
            parts.append("\\" + character)
        else:
            parts.append(character)
    return "".join(parts)
