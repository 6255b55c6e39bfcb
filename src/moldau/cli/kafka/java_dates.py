"""Times by the patterns of Java's SimpleDateFormat."""

from __future__ import annotations

import re
import time

from moldau.cli.kafka.options import JavaFailure

_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
KNOWN = "GyYMLwWDdFEuaHkKhmsSzZX"


def format_moment(moment_ms: int, pattern: str) -> str:
    """The time in this place's zone."""
    local = time.localtime(moment_ms / 1000)
    pieces = []
    for match in _PIECE.finditer(pattern):
        text = match[0]
        if match[1] is not None:
            pieces.append(match[1].replace("''", "'") or "'")
        elif match[2] is None:
            pieces.append(text)
        elif match[2] in KNOWN:
            pieces.append(_field(match[2], len(text), local, moment_ms))
        else:
            raise JavaFailure("java.lang.IllegalArgumentException", f"Illegal pattern character '{match[2]}'")
    return "".join(pieces)


def _field(letter: str, width: int, local: time.struct_time, moment_ms: int) -> str:
    if letter in "yY":
        return f"{local.tm_year % 100:02d}" if width == 2 else f"{local.tm_year:0{width}d}"
    if letter in "ML" and width >= 3:
        return time.strftime("%b" if width == 3 else "%B", local)
    if letter == "E":
        return time.strftime("%a" if width <= 3 else "%A", local)
    if letter == "a":
        return "AM" if local.tm_hour < 12 else "PM"
    if letter == "G":
        return "AD"
    if letter == "z":
        return time.strftime("%Z", local)
    if letter in "ZX":
        return _offset(letter, width, local)
    return f"{_number(letter, local, moment_ms):0{width}d}"


def _offset(letter: str, width: int, local: time.struct_time) -> str:
    seconds = local.tm_gmtoff
    if letter == "X" and seconds == 0:
        return "Z"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    sign = "-" if seconds < 0 else "+"
    if letter == "X" and width == 1:
        return f"{sign}{hours:02d}"
    return f"{sign}{hours:02d}{':' if letter == 'X' and width == 3 else ''}{minutes:02d}"


def _number(letter: str, local: time.struct_time, moment_ms: int) -> int:
    numbers = {
        "M": local.tm_mon,
        "L": local.tm_mon,
        "d": local.tm_mday,
        "D": local.tm_yday,
        "F": (local.tm_mday - 1) // 7 + 1,
        "u": local.tm_wday + 1,
        "w": (local.tm_yday + (6 - local.tm_wday)) // 7 + 1,
        "W": (local.tm_mday + (6 - local.tm_wday)) // 7 + 1,
        "H": local.tm_hour,
        "k": local.tm_hour or 24,
        "K": local.tm_hour % 12,
        "h": local.tm_hour % 12 or 12,
        "m": local.tm_min,
        "s": local.tm_sec,
        "S": moment_ms % 1000,
    }
    return numbers[letter]
