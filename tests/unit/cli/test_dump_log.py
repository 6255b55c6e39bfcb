"""kafka-dump-log without a Kafka at hand: batches, damage, indexes, snapshots, options."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from crc32c import crc32c

from moldau.cli.kafka.frame import run_command
from moldau.cli.kafka.options import break_lines
from moldau.records.builder import BatchBuilder
from moldau.records.codecs import ZSTD
from moldau.storage.inspect.json_text import java_double, json_text

NAME = "00000000000000000000"


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(["kafka-dump-log", *arguments])
    return code, out.getvalue(), err.getvalue()


def batch(base_offset: int = 0, codec: int = 0, count: int = 2) -> bytes:
    builder = BatchBuilder(base_offset, codec)
    for number in range(count):
        builder.append(1_700_000_000_000 + number, b"k%d" % number, b"v%d" % number, [("h", b"x")])
    return builder.build(producer_id=7, producer_epoch=1, base_sequence=5, partition_leader_epoch=3)


def write(folder: Path, suffix: str, data: bytes, name: str = NAME) -> str:
    path = folder / f"{name}.{suffix}"
    path.write_bytes(data)
    return str(path)


def test_a_log_is_printed_batch_by_batch_and_on_request_record_by_record(tmp_path: Path) -> None:
    path = write(tmp_path, "log", batch() + batch(2, ZSTD))
    code, out, err = run("--files", path)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == [f"Dumping {path}", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 5 lastSequence: 6 producerId: 7")
    assert "compresscodec: zstd" in lines[3]
    assert lines[3].endswith("isvalid: true")
    _, out, _ = run("--files", path, "--print-data-log")
    assert (
        "| offset: 2 CreateTime: 1700000000000 keySize: 2 valueSize: 2 sequence: 5 headerKeys: [h] key: k0 payload: v0"
        in out.splitlines()
    )
    _, out, _ = run("--files", path, "--print-data-log", "--skip-record-metadata")
    assert "| key: k1 payload: v1" in out.splitlines()


def test_a_log_that_begins_later_is_said_to_have_a_gap(tmp_path: Path) -> None:
    path = write(tmp_path, "log", batch(9), "00000000000000000009")
    code, _, err = run("--files", path, "--deep-iteration")
    assert (code, err) == (0, f"Non-consecutive offsets in {path}\n  -1 is followed by 9\n")


def test_bytes_behind_the_last_batch_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "log", batch() + b"abc" * 7 + b"\x7f" * 4)
    code, out, _ = run("--files", path)
    assert (code, out.splitlines()[-1]) == (0, f"Found 25 invalid bytes at the end of {NAME}.log")


def test_a_size_that_no_batch_has_ends_the_dump_as_in_java(tmp_path: Path) -> None:
    path = write(tmp_path, "log", batch() + bytes(100))
    code, _, err = run("--files", path)
    assert code == 1
    assert err == (
        'Exception in thread "main" org.apache.kafka.common.errors.CorruptRecordException: Found record size 0 smaller'
        f" than minimum record overhead (14) in file {path}.\n"
    )


def test_an_index_is_compared_with_its_log(tmp_path: Path) -> None:
    first = batch()
    write(tmp_path, "log", first + batch(2) + batch(4))
    entries = [(3, len(first)), (6, 2 * len(first))]
    path = write(tmp_path, "index", b"".join(struct.pack(">ii", *entry) for entry in entries) + bytes(80))
    code, out, err = run("--files", path)
    assert (code, out.splitlines()[1:]) == (0, [f"offset: {o} position: {p}" for o, p in entries])
    assert err == f"Mismatches in :{path}\n  Index offset: 6, log offset: 5\n"
    code, out, err = run("--files", path, "--index-sanity-check")
    assert (code, out.splitlines()[1:], err) == (0, [f"{path} passed sanity check."], "")
    path = write(tmp_path, "timeindex", struct.pack(">qi", 1_700_000_000_001, 3) + struct.pack(">qi", 5, 4))
    code, out, err = run("--files", path, "--verify-index-only")
    assert (code, len(out.splitlines())) == (0, 1)
    assert err == (f"The following indexed offsets are not found in :{path}\nIndexed offset: 4, found log offset: 5\n")


def test_snapshots_and_transaction_indexes_are_printed(tmp_path: Path) -> None:
    entry = struct.Struct(">qhiqiqiq")
    body = struct.pack(">i", 2) + entry.pack(7, 1, -1, -1, 0, 12, 3, -1) + entry.pack(8, 1, 5, 10, 2, 12, 3, 9)
    path = write(tmp_path, "snapshot", struct.pack(">hI", 1, crc32c(body)) + body)
    _, out, _ = run("--files", path)
    first = "producerEpoch: 1 coordinatorEpoch: 3 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 12"
    second = "producerEpoch: 1 coordinatorEpoch: 3 currentTxnFirstOffset: OptionalLong[9] lastTimestamp: 12"
    second += " firstSequence: 3 lastSequence: 5 lastOffset: 10 offsetDelta: 2 timestamp: 12"
    assert out.splitlines()[1:] == [f"producerId: 7 {first}", f"producerId: 8 {second}"]
    path = write(tmp_path, "txnindex", struct.pack(">hqqqq", 0, 7, 1, 3, 4))
    _, out, _ = run("--files", path)
    assert out.splitlines()[1] == "version: 0 producerId: 7 firstOffset: 1 lastOffset: 3 lastStableOffset: 4"
    code, _, err = run("--files", write(tmp_path, "snapshot", b"\0\5" + body))
    assert (code, err) == (
        0,
        "Snapshot failed schema validation: Snapshot contained an unknown file version 5\n",
    )


FAILED = 'Exception in thread "main" '
ABOUT = "This tool helps to parse a log file and dump its contents to the console"


@pytest.mark.parametrize(
    ("arguments", "code", "first_line"),
    [
        ("", 1, ABOUT),
        ("--help", 1, ABOUT),
        ("--deep-iteration", 1, 'Missing required argument "[files]"'),
        ("--nope", 1, FAILED + "joptsimple.UnrecognizedOptionException: nope is not a recognized option"),
        ("--files", 1, FAILED + "joptsimple.OptionMissingRequiredArgumentException: Option files requires an argument"),
        ("--files x.log --max-bytes abc", 1, FAILED + "joptsimple.OptionArgumentConversionException: Cannot parse"),
        ("--files nope.txt", 0, "Ignoring unknown file nope.txt"),
        ("--files nope.log", 1, FAILED + 'java.lang.NumberFormatException: For input string: "nope"'),
    ],
)
def test_wrong_command_lines_end_as_with_the_real_tool(arguments: str, code: int, first_line: str) -> None:
    ended, _, err = run(*arguments.split())
    assert ended == code
    assert err.splitlines()[0].startswith(first_line)


def test_the_version_is_that_of_the_kafka_it_speaks() -> None:
    assert run("--version") == (0, "4.3.1\n", "")


def test_the_table_of_json_fields_is_not_stale() -> None:
    """It is generated from the schemas, as the message classes are."""
    tool = Path(__file__).resolve().parents[3] / "tools" / "generate_record_fields.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_json_is_written_as_java_writes_it() -> None:
    assert json_text({"a": 'x"\n\x1f\x7f', "b": None, "c": True, "d": b"\xff"}) == (
        '{"a":"x\\"\\n\\u001F\x7f","b":null,"c":true,"d":"/w=="}'
    )
    numbers = {2048.0: "2048.0", 0.001: "0.001", 1e7: "1.0E7", 1.5e-5: "1.5E-5", -12345678.25: "-1.234567825E7"}
    assert {value: java_double(value) for value in numbers} == numbers
    assert [java_double(value) for value in (0.0, 123456.789)] == ["0.0", "123456.789"]


def test_help_keeps_to_eighty_columns() -> None:
    _, _, err = run("--help")
    assert max(len(line) for line in err.splitlines()[1:]) == 80
    assert break_lines("one two-three four", 9) == ["one two-", "  three", "  four"]
