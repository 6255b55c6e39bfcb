"""A second, slow reading of schemas/, for comparison: parses the texts by itself and encodes plain dicts.

It shares no code with the generator or with moldau.protocol, on purpose. A value is a dict of the fields that its
version has; the key "?" holds unknown tagged fields as (tag, bytes).
"""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parents[3] / "schemas"
FOREVER = 1 << 15
UNKNOWN = "?"
NUMBERS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q"}
NUMBERS["float64"] = ">d"

Value = dict[str, Any]


class Line:
    """One field."""

    def __init__(self, text: str) -> None:
        words = text.replace(",", " ").split()
        self.name, self.type = words[0], words[1]
        self.nullable = self.type.endswith("?")
        self.array = self.type.startswith("[")
        self.base = self.type.strip("[]?")
        self.span = (0, FOREVER)
        self.null_span = (0, FOREVER)
        self.tag: int | None = None
        self.tag_span = (0, FOREVER)
        self.default = ""
        self.never_compact = "never compact" in text
        self.inside: list[Line] = []
        rest = words[2:]
        if rest and rest[0][0].isdigit():
            self.span = span(rest[0])
        for index, word in enumerate(rest):
            follows_in = rest[index + 2 : index + 3] == ["in"] and span(rest[index + 3])
            if word == "tag":
                self.tag = int(rest[index + 1])
                self.tag_span = follows_in or self.tag_span
            elif word == "null":
                if rest[index + 1 : index + 2] == ["in"]:
                    self.null_span = span(rest[index + 2])
            elif word == "default":
                self.default = rest[index + 1]

    def exists(self, version: int) -> bool:
        return self.span[0] <= version <= self.span[1]

    def is_tagged(self, version: int) -> bool:
        return self.tag is not None and self.tag_span[0] <= version <= self.tag_span[1]

    def may_be_null(self, version: int) -> bool:
        return self.nullable and self.null_span[0] <= version <= self.null_span[1]


class Text:
    """One message."""

    def __init__(self, path: Path, head: str, name: str) -> None:
        self.path = path
        self.name = name
        self.word = head.split(",")[0].split()[0]
        clauses = dict(part.split() for part in head.split(",")[1:])
        versions = clauses.get("versions") or clauses["version"]
        self.lowest, self.highest = span(versions)
        self.flexible_from = int(clauses["flexible"].rstrip("+")) if "flexible" in clauses else FOREVER
        self.fields: list[Line] = []
        self.shared: dict[str, list[Line]] = {}

    @property
    def versions(self) -> range:
        return range(self.lowest, self.highest + 1)

    def inside(self, line: Line) -> list[Line] | None:
        if line.base in NUMBERS or line.base in ("uuid", "string", "bytes", "records"):
            return None
        return line.inside or self.shared[line.base]

    def __repr__(self) -> str:
        return self.name


def span(text: str) -> tuple[int, int]:
    if text.endswith("+"):
        return int(text[:-1]), FOREVER
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def read_texts() -> list[Text]:
    texts: list[Text] = []
    for path in sorted(SCHEMAS.glob("*/*.txt")):
        api = ""
        levels: list[list[Line]] = []
        for raw in path.read_text().splitlines():
            if not raw.strip() or raw.startswith("#"):
                continue
            if raw.startswith("api "):
                api = raw.split(",")[0].split()[2]
            elif raw[0] != " ":
                subject = raw.split(",")[0]
                name = api + subject.capitalize() if api else subject.split()[-1]
                texts.append(Text(path, raw, name))
                levels = [texts[-1].fields]
            elif raw.split()[0] == "struct":
                levels = [texts[-1].fields, texts[-1].shared.setdefault(raw.split()[1], [])]
            else:
                depth = (len(raw) - len(raw.lstrip(" "))) // 2
                line = Line(raw)
                levels[depth - 1].append(line)
                levels[depth:] = [line.inside]
    return texts


def uvarint(number: int) -> bytes:
    out = bytearray()
    while True:
        number, low = number >> 7, number & 127
        out.append(low | (128 if number else 0))
        if not number:
            return bytes(out)


class Codec:
    """Encodes values of one message in one version."""

    def __init__(self, text: Text, version: int) -> None:
        self.text = text
        self.version = version
        self.flexible = version >= text.flexible_from

    def encode(self, value: Value) -> bytes:
        return self.struct(self.text.fields, value)

    def struct(self, lines: list[Line], value: Value) -> bytes:
        out = b""
        tagged: list[tuple[int, bytes]] = list(value.get(UNKNOWN, []))
        for line in lines:
            if not line.exists(self.version):
                continue
            one = value[line.name]
            if not line.is_tagged(self.version):
                out += self.field(line, one)
            elif one != self.default(line):
                tagged.append((line.tag or 0, self.field(line, one)))
        if self.flexible:
            out += uvarint(len(tagged))
            for tag, data in sorted(tagged):
                out += uvarint(tag) + uvarint(len(data)) + data
        return out

    def length(self, count: int, narrow: bool, compact: bool) -> bytes:
        if compact:
            return uvarint(count + 1)
        return struct.pack(">h" if narrow else ">i", count)

    def field(self, line: Line, value: Any) -> bytes:
        compact = self.flexible and not line.never_compact
        if line.array:
            if value is None:
                return self.length(-1, False, compact)
            return self.length(len(value), False, compact) + b"".join(self.one(line, item, compact) for item in value)
        if self.text.inside(line) is not None and line.may_be_null(self.version):
            null = b"\xff" if line.tag is None else b"\x00"
            return null if value is None else b"\x01" + self.one(line, value, compact)
        return self.one(line, value, compact)

    def one(self, line: Line, value: Any, compact: bool) -> bytes:
        inside = self.text.inside(line)
        if inside is not None:
            return self.struct(inside, value)
        if line.base in NUMBERS:
            return struct.pack(NUMBERS[line.base], value)
        if line.base == "uuid":
            assert len(value) == 16
            return bytes(value)
        if value is None:
            return self.length(-1, line.base == "string", compact)
        data = value.encode() if line.base == "string" else value
        return self.length(len(data), line.base == "string", compact) + bytes(data)

    def default(self, line: Line) -> Any:
        if line.default == "null" or line.base == "records":
            return None
        if line.array:
            return []
        inside = self.text.inside(line)
        if inside is not None:
            return {item.name: self.default(item) for item in inside if item.exists(self.version)}
        if line.base == "bool":
            return line.default == "true"
        if line.base == "float64":
            return 0.0
        if line.base in NUMBERS:
            return int(line.default or 0)
        if line.base == "uuid":
            return bytes(16)
        return line.default.strip('"') if line.base == "string" else b""


class Maker:
    """Makes random values, small but with every edge that the schema allows."""

    def __init__(self, text: Text, version: int, seed: int) -> None:
        self.codec = Codec(text, version)
        self.text = text
        self.version = version
        self.random = random.Random(f"{text.name} {version} {seed}")

    def make(self) -> Value:
        return self.struct(self.text.fields)

    def struct(self, lines: list[Line]) -> Value:
        value: Value = {line.name: self.field(line) for line in lines if line.exists(self.version)}
        if self.codec.flexible and self.random.random() < 0.2:
            taken = {line.tag for line in lines if line.is_tagged(self.version) and line.exists(self.version)}
            free = [tag for tag in (0, 1, 2, 5, 127, 128, 10_000, 2**31 - 1) if tag not in taken]
            tags = self.random.sample(free, self.random.randint(1, 3))
            value[UNKNOWN] = [(tag, self.random.randbytes(self.random.choice((0, 1, 130)))) for tag in sorted(tags)]
        return value

    def field(self, line: Line) -> Any:
        if self.random.random() < 0.15:
            return self.codec.default(line) if self.may_hold_default(line) else self.one(line)
        if line.may_be_null(self.version) and self.random.random() < 0.3:
            return None
        if line.array:
            return [self.one(line) for _ in range(self.random.choice((0, 1, 2, 3)))]
        return self.one(line)

    def may_hold_default(self, line: Line) -> bool:
        return self.codec.default(line) is not None or line.may_be_null(self.version)

    def one(self, line: Line) -> Any:
        inside = self.text.inside(line)
        if inside is not None:
            return self.struct(inside)
        if line.base == "bool":
            return self.random.random() < 0.5
        if line.base == "float64":
            return self.random.choice((0.0, -1.5, 1e300, self.random.random()))
        if line.base in NUMBERS:
            return self.number(line.base)
        if line.base == "uuid":
            return self.random.randbytes(16)
        if line.base == "string":
            length = self.random.choice((0, 1, 7, 130))
            return "".join(self.random.choice("abcxyz.-_ äß€𝄞") for _ in range(length))
        return self.random.randbytes(self.random.choice((0, 1, 16, 200)))

    def number(self, base: str) -> int:
        bits = int(base.lstrip("uint"))
        low, high = (0, 2**bits - 1) if base[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return self.random.choice((low, high, 0, 1, high // 3, self.random.randint(low, high)))
