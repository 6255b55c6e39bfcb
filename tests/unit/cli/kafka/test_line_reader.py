"""Lines become records as in Kafka's own console producer."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.line_reader import LineReader, LineSplitter
from moldau.cli.kafka.options import JavaFailure


def split(*pieces: bytes) -> list[bytes]:
    splitter = LineSplitter()
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    return lines + splitter.end()


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a\r\nb\rc"], [b"a", b"b", b"c"]),
        ([b"a\r", b"\nb\n"], [b"a", b"b"]),
        ([b"a\r", b"", b"\n"], [b"a", b""]),
        ([b"ab", b"cd", b"e\nf"], [b"abcde", b"f"]),
        ([b"\n\n"], [b"", b""]),
        ([b"a\x0bb\x1cc\xc2\x85d\n"], [b"a\x0bb\x1cc\xc2\x85d"]),
        ([], []),
    ],
)
def test_lines_end_as_javas_lines_do(pieces: list[bytes], lines: list[bytes]) -> None:
    assert split(*pieces) == lines


def test_what_is_not_utf8_is_replaced_as_java_does() -> None:
    assert split(b"\xff\n", b"\xc3", b"\xa4\n\xed\xa0\x80") == [b"\xef\xbf\xbd", "ä".encode(), b"\xef\xbf\xbd"]


def test_a_line_alone_is_the_value() -> None:
    reader = LineReader({})
    assert reader.plain
    assert reader.parse(b"k\tv", 1) == (None, b"k\tv", None)


def test_headers_key_and_value_stand_behind_each_other() -> None:
    reader = LineReader({"parse.key": " TRUE ", "parse.headers": "true"})
    assert reader.parse(b"h1:a,h2:\tk\tv\tw", 1) == (b"k", b"v\tw", [("h1", b"a"), ("h2", b"")])


def test_the_separators_can_be_chosen() -> None:
    settings = {"parse.key": "true", "parse.headers": "true", "key.separator": "=>", "headers.delimiter": "||"}
    reader = LineReader({**settings, "headers.separator": "[;/]", "headers.key.separator": "="})
    assert reader.parse(b"a=1;b=2/c=3||k=>v", 1) == (b"k", b"v", [("a", b"1"), ("b", b"2"), ("c", b"3")])


def test_a_missing_separator_ends_the_tool_with_the_number_of_the_line() -> None:
    reader = LineReader({"parse.key": "true"})
    with pytest.raises(JavaFailure, match=r"^No key separator found on line number 7: 'nothing'$"):
        reader.parse(b"nothing", 7)
    with pytest.raises(JavaFailure, match=r"^No headers delimiter found on line number 1: 'x'$"):
        LineReader({"parse.headers": "true"}).parse(b"x", 1)
    with pytest.raises(JavaFailure, match=r"^No header key separator found in pair 'b' on line number 3$"):
        LineReader({"parse.headers": "true"}).parse(b"a:1,b\tv", 3)


def test_errors_can_be_ignored() -> None:
    reader = LineReader({"parse.key": "true", "parse.headers": "true", "ignore.error": "true"})
    assert reader.parse(b"plain", 1) == (None, b"plain", None)
    assert reader.parse(b"a,b:1\tplain", 1) == (None, b"plain", [("a", None), ("b", b"1")])
    assert reader.parse(b",,\tk\tv", 1) == (b"k", b"v", [])
    assert reader.parse(b"\tk\tv", 1) == (b"k", b"v", [("", None)])


def test_the_null_marker_stands_for_null_everywhere_but_in_the_names_of_headers() -> None:
    reader = LineReader({"parse.key": "true", "parse.headers": "true", "null.marker": "N"})
    assert reader.parse(b"N\tN\tN", 1) == (None, None, None)
    assert reader.parse(b"h:N\tk\tN", 1) == (b"k", None, [("h", None)])
    with pytest.raises(
        JavaFailure, match=r"^Header keys should not be equal to the null marker 'N' as they can't be null$"
    ):
        reader.parse(b"N:1\tk\tv", 1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
        ({"headers.delimiter": ":"}, "headers.delimiter and headers.key.separator may not be equal"),
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ({"null.marker": "\t"}, "null.marker and key.separator may not be equal"),
        ({"null.marker": ":"}, "null.marker and headers.key.separator may not be equal"),
    ],
)
def test_separators_must_differ(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(JavaFailure) as failure:
        LineReader(settings)
    assert failure.value.java_text() == f"org.apache.kafka.common.KafkaException: {sentence}"
