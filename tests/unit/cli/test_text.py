"""What people read and write: places in a partition, format strings, filters, dumps, tables, percentiles."""

from __future__ import annotations

import random
import time

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.cli import output, positions
from moldau.cli.histogram import Histogram, milliseconds
from moldau.cli.perf_view import sparkline
from moldau.cli.positions import Position, parse_duration, parse_partitions, parse_position
from moldau.cli.record_filter import RecordFilter
from moldau.cli.record_text import compile_format, fast_writer, unescape
from moldau.cli.record_view import PrettyRenderer, hex_lines, readable, render_hex
from moldau.client.record import ConsumerRecord
from moldau.facts.record_json import BadFormat, to_json_line
from moldau.records.batch import HEADER_SIZE, read_header
from moldau.records.builder import BatchBuilder


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: list[tuple[str, bytes | None]] | None = None,
    timestamp: int = 1_700_000_000_123,
) -> ConsumerRecord:
    return ConsumerRecord(
        "t", 3, 42, timestamp=timestamp, timestamp_type=0, key=key, value=value, headers=headers, leader_epoch=0
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("beginning", Position(positions.BEGINNING)),
        ("end", Position(positions.END)),
        ("7", Position(positions.AT, 7)),
        ("-7", Position(positions.LAST, 7)),
        ("-0", Position(positions.LAST, 0)),
        ("@1000", Position(positions.TIME, 1000)),
        ("@1970-01-01T00:00:01Z", Position(positions.TIME, 1000)),
    ],
)
def test_places_in_a_partition(text: str, place: Position) -> None:
    assert parse_position("-o", text) == place


def test_a_time_before_now() -> None:
    found = parse_position("-o", "@-1h30m")
    assert abs(found.number - (time.time() - 5400) * 1000) < 5_000
    with pytest.raises(click.UsageError, match="@-15m"):
        parse_position("-o", "@-soon")


@pytest.mark.parametrize(
    ("text", "duration_ms"), [("10s", 10_000), ("1m30s", 90_000), ("250ms", 250), ("1.5h", 5_400_000), ("10", None)]
)
def test_durations(text: str, duration_ms: int | None) -> None:
    assert parse_duration(text) == duration_ms


def test_partition_numbers() -> None:
    assert parse_partitions("0,2,5-7,2") == [0, 2, 5, 6, 7]
    for text in ("x", "1-", "0-99999999999", ""):
        with pytest.raises(click.UsageError):
            parse_partitions(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("%s{hex} %k{base64}", b"76 aw=="),
        ("%T{iso}", b"2023-11-14T22:13:20.123Z"),
        ("%s{json}", b'"v"'),
        ("%s{no}", b"v{no}"),
        ("%t/%p/%o%%\\x41", b"t/3/42%A"),
    ],
)
def test_format_strings(text: str, printed: bytes) -> None:
    assert compile_format(text)(record()) == printed


def test_null_has_no_hex() -> None:
    assert compile_format("%s{hex}|%k{base64}", b"NIL")(record(None, None)) == b"NIL|NIL"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["%s", "%k", "%S", "%K", "%h", "%t", "%p", "%o", "%T", "%R", " ", "\\n", "x", "%%"])),
    st.one_of(st.none(), st.binary(max_size=20)),
    st.one_of(st.none(), st.binary(max_size=20)),
    st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=4))), max_size=2),
)
def test_the_compiled_writer_writes_what_the_plain_one_writes(
    parts: list[str], key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    text = "".join(parts)
    builder = BatchBuilder(base_offset=42)
    builder.append(1_700_000_000_123, key, value, headers)
    data = builder.build()
    for form, render in ((text, compile_format(text, b"~")), ("json", to_json_line)):
        writer = fast_writer(form, b"~")
        assert writer is not None
        writer.begin("t", 3)
        writer.add_batch(data, HEADER_SIZE, len(data), read_header(data, 0, len(data)), 0)
        assert writer.take() == render(record(key, value, headers))


def test_what_the_compiled_writer_cannot_do_is_left_to_the_other() -> None:
    assert fast_writer("%s{hex}") is None
    assert fast_writer("%s\\n") is not None


def test_escapes_in_options() -> None:
    assert unescape("a\\tb\\x00\\\\") == b"a\tb\x00\\"
    for text in ("\\q", "\\x1", "\\"):
        with pytest.raises(BadFormat):
            unescape(text)


def test_filters_must_all_match() -> None:
    found = RecordFilter(["v", "^v$"], ["k"], ["h", "h=1"])
    assert found.matches(record(headers=[("h", b"123")]))
    assert not found.matches(record(headers=[("h", b"2")]))
    assert not found.matches(record(value=None, headers=[("h", b"1")]))
    assert not RecordFilter([], [], [])
    with pytest.raises(click.UsageError, match="regular expression"):
        RecordFilter(["("], [], [])


def test_nothing_in_a_record_can_command_the_terminal() -> None:
    line = PrettyRenderer(False, False)(record(b"\x1b[2J", b"caf\xc3\xa9 \xff\x07", [("\x1b", b"\x00")])).decode()
    assert "\x1b" not in line and "\x07" not in line and "\x00" not in line
    assert "\\x1b[2J" in line and "café \\xff\\x07" in line
    assert readable(b"two\nlines\t") == "two\nlines\t"


def test_pretty_lines_show_where_and_when() -> None:
    line = PrettyRenderer(True, False)(record(None, None, [("h", None)])).decode()
    assert line.startswith("t 3:42  2023-11-14") and "null" in line and "[h=null]" in line


def test_dumps_in_hexadecimal() -> None:
    assert hex_lines(bytes(range(60, 77))) == [
        "00000000  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|",
        "00000010  4c                                                |L|",
    ]
    text = render_hex(record(None, b"ab", [("h", b"")])).decode()
    assert text.splitlines()[0] == "t-3:42  2023-11-14T22:13:20.123Z  key null, value 2 B, header h 0 B"


def test_tables_are_folded_to_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    output.print_table(("A", "B"), [("x", "words that go on and on, beyond the end of the line"), ("y", "z" * 60)])
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert all(len(line) <= 40 and line == line.rstrip() for line in lines)
    assert lines[1:3] == ["x  words that go on and on, beyond the", "   end of the line"]
    assert "".join(line[3:] for line in lines[3:]).count("z") == 60


def test_tables_in_pipes_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(("A", "B"), [(output.Styled("x", fg="red"), "y" * 300), ("漢字", 1)])
    assert capsys.readouterr().out == f"A     B\nx     {'y' * 300}\n漢字  1\n"


def test_bytes_and_durations_for_people() -> None:
    assert [output.bytes_text(n) for n in (0, 999, 1000, 99_960, 1_500_000, 2e9, 3e13)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "100 kB",
        "1.5 MB",
        "2.0 GB",
        "30.0 TB",
    ]
    assert [milliseconds(n) for n in (120, 9_949, 25_000, 2_500_000)] == ["0.12 ms", "9.95 ms", "25 ms", "2.5 s"]


def test_percentiles_are_within_two_percent() -> None:
    source = random.Random(5)
    values = [int(source.lognormvariate(8, 2)) for _ in range(20_000)]
    found = Histogram()
    for value in values:
        found.add(value)
    values.sort()
    for percent in (1, 50, 95, 99, 99.9):
        exact = values[int(len(values) * percent / 100) - 1]
        assert abs(found.percentile_us(percent) - exact) <= 0.02 * exact + 1
    assert found.percentile_us(100) == found.highest_us == values[-1]
    assert abs(found.mean_us - sum(values) / len(values)) < 1


def test_an_empty_histogram_and_one_with_weights() -> None:
    found = Histogram()
    assert (found.percentile_us(99), found.mean_us) == (0, 0)
    found.add(10, 99)
    found.add(1000, 1)
    assert found.percentile_us(99) == 10 and found.percentile_us(99.5) == 1000
    assert found.row()["max_ms"] == 1.0


def test_small_bars() -> None:
    assert sparkline([0, 5, 10]) == "▁▅█" and sparkline([0.0]) == "▁" and sparkline([]) == ""
