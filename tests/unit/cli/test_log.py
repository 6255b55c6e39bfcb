"""`moldau log dump` and `moldau log verify` on files that are whole and on files that are not."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from moldau.cli.root import root
from tests.pace import patience
from tests.unit.cli.test_dump_log import NAME, batch, write


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(root, list(arguments))
    return result.exit_code, result.output


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A data directory with one partition of one segment."""
    folder = tmp_path / "data" / "orders-0"
    folder.mkdir(parents=True)
    first = batch()
    write(folder, "log", first + batch(2))
    write(folder, "index", struct.pack(">ii", 3, len(first)))
    write(folder, "timeindex", struct.pack(">qi", 1_700_000_000_001, 1))
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: MkU3OEVBNTcwNTJENDM2Qg")
    (folder.parent / "meta.properties").write_text(
        "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\ndirectory.id=AR9q14ED9XEw7GCLqVZieQ\n"
    )
    (folder.parent / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 4\n")
    return folder


def verify(folder: Path) -> tuple[int, list[tuple[str, str, str]]]:
    code, output = call("log", "verify", str(folder.parent), "--format", "json")
    found = json.loads(output)["findings"]
    return code, [(Path(item["path"]).name, item["severity"], item["message"]) for item in found]


def test_a_whole_directory_has_no_findings(partition: Path) -> None:
    assert verify(partition) == (0, [])
    code, output = call("log", "verify", str(partition))
    assert (code, output.split(":")[-1]) == (0, " 0 errors, 0 warnings.\n")


HOLD = """
import fcntl, sys
lock = open(sys.argv[1], "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_running_server_is_not_blamed_for_what_it_writes_later(partition: Path) -> None:
    """Only for the segment it appends to; an index of a closed one that is missing stays worth a word."""
    (partition / f"{NAME}.index").unlink()
    (partition / "00000000000000000004.log").write_bytes(b"")
    assert verify(partition)[1] == [(f"{NAME}.index", "warning", "missing; a start builds it from the log")]
    lock = str(partition.parent / ".lock")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None and server.stdout.readline() == "held\n"
        code, output = call("log", "verify", str(partition.parent))
        assert code == 0 and "A server has this directory open" in output and "1 warning." in output
        (partition / "00000000000000000004.log").unlink()
        for folder in (partition, partition.parent):
            code, output = call("log", "verify", str(folder))
            assert code == 0 and "0 errors, 0 warnings." in output and "1 file that it writes later left out" in output
        server.communicate()


def test_every_inconsistency_is_found_in_one_run(partition: Path) -> None:
    first = batch()
    broken = bytearray(batch(2))
    broken[-1] ^= 1
    write(partition, "log", first + bytes(broken) + first + b"12345")
    write(partition, "index", struct.pack(">ii", 2, len(first)) + struct.pack(">ii", 9, 7) + b"x")
    write(partition, "timeindex", struct.pack(">qi", 5, 1))
    write(partition, "snapshot", b"nonsense", "00000000000000000004")
    write(partition, "txnindex", b"odd")
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n2 9\n")
    (partition / "stray.txt").write_text("")
    (partition / f"{NAME}.log.deleted").write_text("")
    (partition.parent / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 5\ngone 0 1\n")
    code, found = verify(partition)
    assert code == 1
    said = {(name, severity) for name, severity, _ in found}
    assert said == {
        (f"{NAME}.log", "error"),
        (f"{NAME}.index", "error"),
        (f"{NAME}.timeindex", "error"),
        (f"{NAME}.txnindex", "error"),
        ("00000000000000000004.snapshot", "error"),
        ("leader-epoch-checkpoint", "error"),
        ("recovery-point-offset-checkpoint", "error"),
        ("recovery-point-offset-checkpoint", "warning"),
        ("stray.txt", "warning"),
        (f"{NAME}.log.deleted", "warning"),
    }
    texts = "\n".join(message for _, _, message in found)
    for part in (
        "wrong checksum",
        "should start at 4",
        "5 bytes",
        "not a multiple",
        "comes after epoch",
        "where no batch",
    ):
        assert part in texts


def test_dump_prints_batches_and_records_and_json(partition: Path) -> None:
    path = str(partition / f"{NAME}.log")
    code, output = call("log", "dump", path, "--records")
    assert code == 0
    assert output.splitlines()[1] == "  0  2023-11-14 22:13:20.000  k0 = v0  [h=x]"
    _, output = call("log", "dump", path, "--records", "--format", "json")
    kinds = [json.loads(line)["kind"] for line in output.splitlines()]
    assert kinds == ["batch", "record", "record"] * 2
    _, output = call("log", "dump", str(partition / f"{NAME}.index"), "--format", "json")
    assert json.loads(output) == {"kind": "index", "offset": 3, "position": len(batch())}


def test_dump_of_something_else_is_a_sentence(partition: Path) -> None:
    code, output = call("log", "dump", str(partition / "leader-epoch-checkpoint"))
    assert code == 1
    assert output.startswith("Error: ")
    code, output = call("log", "dump", str(partition / "00000000000000000077.log"))
    assert (code, output.count("\n")) == (1, 1)


def test_kafka_names_are_installed_and_replaced_but_nothing_else_is(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    assert call("install-kafka-names", str(folder))[0] == 0
    assert call("install-kafka-names", str(folder))[0] == 0
    launcher = folder / "kafka-dump-log.sh"
    assert launcher.read_text().splitlines()[-1].endswith('kafka-dump-log "$@"')
    done = subprocess.run(["sh", "-n", str(launcher)], capture_output=True)
    assert done.returncode == 0
    launcher.write_text("mine")
    code, output = call("install-kafka-names", str(folder))
    assert (code, launcher.read_text()) == (1, "mine")
    assert "--force" in output
    code, output = call("install-kafka-names", str(folder), "--force", "--format", "json")
    answer = json.loads(output)
    assert (code, answer["directory"]) == (0, str(folder))
    assert sorted(answer["files"]) == sorted(str(path) for path in folder.iterdir())
    assert "kafka-dump-log" in answer["tools"]


@pytest.mark.parametrize("command", [["kafka-dump-log", "--print-data-log", "--files"], ["log", "dump", "--records"]])
def test_a_reader_that_has_had_enough_ends_it_quietly(command: list[str], tmp_path: Path) -> None:
    path = write(tmp_path, "log", b"".join(batch(2 * number) for number in range(3000)))
    whole = [sys.executable, "-m", "moldau.cli.main", *command, path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(patience(20)) == 141
