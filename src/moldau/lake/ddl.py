"""Reads schemas in Spark's words, `id BIGINT, tags ARRAY<STRING>`, as Arrow types, without Spark."""

from __future__ import annotations

import json
import re
from typing import Any

from moldau.lake.errors import LakeError
from moldau.lake.extras import need

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z_][\w$]*|\d+|[<>(),:]|'(?:[^'\\]|\\.)*')")
DEPTH_MAX = 50


def parse_schema(text: str) -> Any:
    """The Arrow type of values: a struct, unless the text is one whole type such as ARRAY<INT>."""
    pa = need("pyarrow")
    stripped = text.strip()
    if stripped.startswith("{"):
        return _from_json(stripped)
    parser = _Parser(stripped)
    if re.match(r"(struct|array|map)\s*<", stripped, re.IGNORECASE):
        found = parser.type(0)
    else:
        found = pa.struct(parser.fields("", 0))
    parser.expect_end()
    return found


def _from_json(text: str) -> Any:
    types, pandas_types = need("pyspark.sql.types"), need("pyspark.sql.pandas.types")
    try:
        return pandas_types.to_arrow_type(types.StructType.fromJson(json.loads(text)), timezone="UTC")
    except (ValueError, KeyError, TypeError) as error:
        raise LakeError(f"The schema is no JSON of a Spark schema: {error}.") from None


class _Parser:
    """A descent over the words of one schema."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._error(f"there is something unexpected at {text[place : place + 20]!r}")
            self._tokens.append(found[1])
            place = found.end()
        self._place = 0

    def fields(self, closing: str, depth: int) -> list[Any]:
        """name [:] type [NOT NULL] [COMMENT '…'], … up to the closing bracket or the end."""
        pa = need("pyarrow")
        fields: list[Any] = []
        while True:
            name = self._name()
            if self._peek() == ":":
                self._next()
            fields.append(pa.field(name, self.type(depth + 1)))
            self._skip_remarks()
            if self._peek() != ",":
                break
            self._next()
        if closing:
            self._expect(closing)
        names = [item.name.lower() for item in fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self._error(f"{twice} is there twice")
        return fields

    def type(self, depth: int) -> Any:
        pa = need("pyarrow")
        if depth > DEPTH_MAX:
            raise self._error("it is nested too deeply")
        word = self._next().lower()
        if word == "array":
            self._expect("<")
            inner = self.type(depth + 1)
            self._expect(">")
            return pa.list_(inner)
        if word == "map":
            self._expect("<")
            key = self.type(depth + 1)
            self._expect(",")
            value = self.type(depth + 1)
            self._expect(">")
            return pa.map_(key, value)
        if word == "struct":
            self._expect("<")
            return pa.struct(self.fields(">", depth))
        if word in ("decimal", "dec", "numeric"):
            return pa.decimal128(*self._numbers((10, 0)))
        if word in ("varchar", "char"):
            self._numbers((0,))
            return pa.string()
        found = _plain_types(pa).get(word)
        if found is None:
            raise self._error(f"{word} is no type")
        return found

    def expect_end(self) -> None:
        if self._place < len(self._tokens):
            raise self._error(f"{self._peek()} comes unexpectedly")

    def _numbers(self, default: tuple[int, ...]) -> tuple[int, ...]:
        if self._peek() != "(":
            return default
        self._next()
        found = []
        while True:
            word = self._next()
            if not word.isdigit():
                raise self._error(f"{word} is no number")
            found.append(int(word))
            if self._peek() != ",":
                break
            self._next()
        self._expect(")")
        return tuple(found) if len(found) == len(default) else (found[0], *default[1:])

    def _skip_remarks(self) -> None:
        while self._peek().lower() in ("not", "null", "comment") or self._peek().startswith("'"):
            self._next()

    def _name(self) -> str:
        word = self._next()
        if word.startswith("`"):
            return word[1:-1].replace("``", "`")
        if not word[0].isalpha() and word[0] != "_":
            raise self._error(f"{word} is no name")
        return word

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _next(self) -> str:
        if self._place >= len(self._tokens):
            raise self._error("it ends too early")
        self._place += 1
        return self._tokens[self._place - 1]

    def _expect(self, wanted: str) -> None:
        if self._next() != wanted:
            raise self._error(f"{wanted} is missing")

    def _error(self, problem: str) -> LakeError:
        shown = self._text if len(self._text) < 100 else f"{self._text[:99]}…"
        return LakeError(f"The schema {shown!r} cannot be read: {problem}. Write it as `id BIGINT, name STRING`.")


def _plain_types(pa: Any) -> dict[str, Any]:
    return {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "byte": pa.int8(),
        "smallint": pa.int16(),
        "short": pa.int16(),
        "int": pa.int32(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "long": pa.int64(),
        "float": pa.float32(),
        "real": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ltz": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
