"""Records for people: a line for each on a terminal, and dumps in hexadecimal."""

from __future__ import annotations

import re
import time

import click

from moldau.client.record import ConsumerRecord
from moldau.facts.record_json import iso_time

# Longer keys push the value to the right of their own line alone.
KEY_WIDTH_MAX = 24

# What a terminal would take for a command; tabs and line ends are fine.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PrettyRenderer:
    """partition:offset, time, key and value in one line; nothing in a record can command the terminal."""

    def __init__(self, with_topic: bool, colour: bool) -> None:
        self._with_topic = with_topic
        self._colour = colour
        self._place_width = 0
        self._key_width = 0
        self._today = time.strftime("%Y-%m-%d")

    def __call__(self, record: ConsumerRecord) -> bytes:
        place = f"{record.partition}:{record.offset}"
        if self._with_topic:
            place = f"{record.topic} {place}"
        # Columns stand in line without jumping about: they only ever become wider.
        self._place_width = max(self._place_width, len(place))
        parts = [self._style(place.ljust(self._place_width), dim=True), self._style(self._time(record), dim=True)]
        if record.key is not None:
            key = readable(record.key)
            self._key_width = max(self._key_width, min(len(key), KEY_WIDTH_MAX))
            parts.append(self._style(key.ljust(self._key_width), fg="cyan"))
        parts.append(self._style("null", dim=True) if record.value is None else readable(record.value))
        if record.headers:
            pairs = ", ".join(
                f"{_CONTROL.sub(_visible, name)}={'null' if value is None else readable(value)}"
                for name, value in record.headers
            )
            parts.append(self._style(f"[{pairs}]", fg="magenta"))
        return "  ".join(parts).encode("utf-8", "backslashreplace") + b"\n"

    def _time(self, record: ConsumerRecord) -> str:
        if record.timestamp < 0:
            return "no time".ljust(12)
        try:
            moment = time.localtime(record.timestamp // 1000)
        except (OverflowError, ValueError, OSError):
            return str(record.timestamp)
        day = time.strftime("%Y-%m-%d", moment)
        clock = time.strftime("%H:%M:%S", moment) + f".{record.timestamp % 1000:03d}"
        return clock if day == self._today else f"{day} {clock}"

    def _style(self, text: str, fg: str | None = None, dim: bool | None = None) -> str:
        return click.style(text, fg=fg, dim=dim) if self._colour else text


def readable(data: bytes) -> str:
    """Text as it is; what is not text, and what a terminal would obey, as escapes."""
    return _CONTROL.sub(_visible, data.decode("utf-8", "backslashreplace"))


def _visible(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"


def render_hex(record: ConsumerRecord) -> bytes:
    """A title, then key, value and headers as hexdump -C shows files."""
    sizes = [f"{name} {'null' if data is None else f'{len(data)} B'}" for name, data in _parts(record)]
    title = f"{record.topic}-{record.partition}:{record.offset}  {iso_time(record.timestamp)}  {', '.join(sizes)}"
    lines = [title]
    for name, data in _parts(record):
        if data:
            lines.append(f"  {name}")
            lines += [f"    {line}" for line in hex_lines(data)]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _parts(record: ConsumerRecord) -> list[tuple[str, bytes | None]]:
    headers = [(f"header {_CONTROL.sub(_visible, name)}", value) for name, value in record.headers]
    return [("key", record.key), ("value", record.value), *headers]


def hex_lines(data: bytes) -> list[str]:
    """Sixteen bytes a line: where, in hexadecimal, and what of them can be printed."""
    lines = []
    for start in range(0, len(data), 16):
        piece = data[start : start + 16]
        left, right = piece[:8].hex(" "), piece[8:].hex(" ")
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {left:<23}  {right:<23}  |{shown}|")
    return lines
