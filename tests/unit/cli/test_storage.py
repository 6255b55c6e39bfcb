"""`moldau storage` on real directories, with the texts that kafka-storage has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau import __version__
from moldau.cli.root import root
from moldau.protocol.stored.metadata_records import FeatureLevelRecord, RegisterBrokerRecord, encode_metadata_record
from moldau.raft.batches import metadata_batch
from moldau.server.posix_disk import PosixDisk
from moldau.storage.moldau_properties import (
    INCARNATIONS_MAX,
    MoldauProperties,
    read_moldau_properties,
    write_moldau_properties,
)

ID = "MkU3OEVBNTcwNTJENDM2Qk"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["storage", *arguments], prog_name="moldau")


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:19093\n"
        f"log.dirs={tmp_path}/a\n"
    )
    return file


def test_a_random_id_has_22_characters() -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n", run("random-uuid").stdout)


def test_format_then_info_then_format_again(properties: Path) -> None:
    before = run("info", "-c", str(properties))
    assert before.exit_code == 1 and "no: It does not exist." in before.stdout
    done = run("format", "-t", ID, "-c", str(properties), "--standalone")
    assert done.exit_code == 0, done.output
    assert f"Formatting dynamic metadata voter directory {properties.parent}/a with metadata.version" in done.stdout
    after = run("info", "-c", str(properties))
    assert after.exit_code == 0 and re.search(f"cluster +{ID}\n", after.stdout)
    again = run("format", "-t", ID, "-c", str(properties), "--standalone")
    assert again.exit_code == 1 and "is already formatted" in again.stderr
    ignored = run("format", "-t", ID, "-c", str(properties), "--standalone", "--ignore-formatted")
    assert (ignored.exit_code, ignored.stdout) == (0, "All of the log directories are already formatted.\n")


def test_scram_users_are_stored_and_their_passwords_not_told(properties: Path) -> None:
    user = "SCRAM-SHA-256=[name=alice,password=secret]"
    done = run("format", "-t", ID, "-c", str(properties), "--standalone", "--add-scram", user)
    assert done.exit_code == 0, done.output
    assert "secret" not in done.output and "no effect" not in done.output


def test_flags_that_are_missing_or_unknown_are_explained(properties: Path) -> None:
    result = run("format", "-t", ID, "-c", str(properties))
    assert result.exit_code == 1 and "--standalone, --initial-controllers, or --no-initial-controllers" in result.stderr
    result = run("format", "-t", ID, "-c", str(properties), "-s", "-r", "9.9")
    assert result.exit_code == 1 and "Unknown metadata.version '9.9'" in result.stderr


def test_a_file_that_is_not_there_or_not_complete_is_explained(tmp_path: Path) -> None:
    result = run("info", "-c", str(tmp_path / "nope.properties"))
    assert result.exit_code == 1 and "nope.properties" in result.stderr and "Traceback" not in result.output
    (tmp_path / "bad.properties").write_text("node.id=1\n")
    result = run("info", "-c", str(tmp_path / "bad.properties"))
    assert result.exit_code == 1 and "Missing required configuration" in result.stderr


def test_version_mapping_and_dependencies() -> None:
    assert run("version-mapping").stdout.startswith("metadata.version=30 (4.3-IV0)\n")
    assert run("feature-dependencies", "-f", "transaction.version=2").stdout == (
        "transaction.version=2 has no dependencies.\n"
    )


def answer(*arguments: str, code: int = 0) -> Any:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_every_verb_answers_programs_too(properties: Path) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", answer("random-uuid")["uuid"])
    assert answer("version-mapping", "-r", "4.0")["metadata.version"] == 25
    assert answer("feature-dependencies", "-f", "eligible.leader.replicas.version=1") == [
        {"feature": "eligible.leader.replicas.version", "level": 1, "requires": {"metadata.version": 23}}
    ]
    done = answer("format", "-t", ID, "-c", str(properties), "--standalone")
    (row,) = done["formatted"]
    assert (done["cluster_id"], done["features"]["metadata.version"]) == (ID, 30)
    assert (row["path"], row["kind"]) == (f"{properties.parent}/a", "dynamic metadata voter")
    again = answer("format", "-t", ID, "-c", str(properties), "--standalone", "--ignore-formatted")
    assert again["formatted"] == []
    report = answer("info", "-c", str(properties))
    (directory,) = report["directories"]
    assert directory["directory_id"] == row["directory_id"] and report["can_be_opened"]


def only_directory(properties: Path, code: int = 0) -> Any:
    (directory,) = answer("info", "-c", str(properties), code=code)["directories"]
    return directory


def test_info_says_who_formatted_a_directory_that_nobody_opened(properties: Path) -> None:
    run("format", "-t", ID, "-c", str(properties), "--standalone")
    assert f"Moldau {__version__}, which formatted it; no node has opened it yet" in (
        run("info", "-c", str(properties)).stdout
    )
    (properties.parent / "a" / "moldau.properties").unlink()
    assert "Apache Kafka, which formatted it" in run("info", "-c", str(properties)).stdout


def started_once(properties: Path, incarnation: bytes) -> Path:
    """A directory in which node 1 registered under an incarnation."""
    assert run("format", "-t", ID, "-c", str(properties), "--standalone").exit_code == 0
    folder = properties.parent / "a"
    record = RegisterBrokerRecord(broker_id=1, incarnation_id=incarnation, broker_epoch=0)
    values = [encode_metadata_record(FeatureLevelRecord("metadata.version", 30), 0), encode_metadata_record(record, 3)]
    batch = metadata_batch(0, 1, 1_700_000_000_000, values)
    (folder / "__cluster_metadata-0" / "00000000000000000000.log").write_bytes(batch)
    (folder / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return folder


def test_info_tells_moldau_from_apache_kafka_by_who_registered_last(properties: Path) -> None:
    """The marker stays when Apache Kafka opens the directory after Moldau; the metadata says who came last."""
    folder = started_once(properties, b"K" * 16)
    (folder / "moldau.properties").unlink()
    directory = only_directory(properties)
    assert (directory["written_by"], directory["moldau_version"]) == ("Apache Kafka", None)
    write_moldau_properties(PosixDisk(), [str(folder)], b"M" * 16)
    directory = only_directory(properties)
    assert (directory["written_by"], directory["moldau_version"]) == ("Apache Kafka", __version__)
    assert f"Apache Kafka, after Moldau {__version__}" in run("info", "-c", str(properties)).stdout
    write_moldau_properties(PosixDisk(), [str(folder)], b"K" * 16)
    assert only_directory(properties)["written_by"] == "Moldau"


def test_starts_that_did_not_come_to_register_do_not_hide_the_one_that_did(properties: Path) -> None:
    folder = started_once(properties, b"M" * 16)
    for name in b"MNOP":
        write_moldau_properties(PosixDisk(), [str(folder)], bytes([name]) * 16)
    assert only_directory(properties)["written_by"] == "Moldau"
    for name in range(20):
        write_moldau_properties(PosixDisk(), [str(folder)], bytes([name]) * 16)
    marker = read_moldau_properties(PosixDisk(), str(folder))
    assert marker is not None and len(marker.incarnation_ids) == INCARNATIONS_MAX


def test_a_marker_that_makes_no_sense_is_none(tmp_path: Path) -> None:
    for text in (b"", b"version", b"version=1\nincarnation.ids=short\n", b"\xff\xfe"):
        (tmp_path / "moldau.properties").write_bytes(text)
        assert read_moldau_properties(PosixDisk(), str(tmp_path)) is None
    (tmp_path / "moldau.properties").write_bytes(b"# hi\nversion=1\n")
    assert read_moldau_properties(PosixDisk(), str(tmp_path)) == MoldauProperties("1")


def test_info_says_why_a_directory_cannot_be_opened(properties: Path) -> None:
    folder = started_once(properties, b"M" * 16)
    log = folder / "__cluster_metadata-0" / "00000000000000000000.log"
    whole = log.read_bytes()
    log.write_bytes(metadata_batch(0, 1, 1, [encode_metadata_record(FeatureLevelRecord("metadata.version", 99), 0)]))
    assert "metadata.version at level 99; this version supports 7 to 30" in str(only_directory(properties, 1))
    log.write_bytes(metadata_batch(0, 1, 1, [bytes([1, 127, 0])]))
    assert "that is not known here" in str(only_directory(properties, 1)["problems"])
    log.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "is damaged at position 0" in str(only_directory(properties, 1)["problems"])
    log.write_bytes(whole)
    assert only_directory(properties)["problems"] == []
    meta = folder / "meta.properties"
    text = meta.read_text()
    meta.write_text(text.replace("node.id=1", "node.id=2"))
    assert "belongs to node 2" in str(only_directory(properties, 1)["problems"])
    meta.write_text("nonsense\n")
    assert "cannot be read" in str(only_directory(properties, 1)["problems"])


def test_info_sees_a_node_that_runs(properties: Path) -> None:
    folder = started_once(properties, b"M" * 16)
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX);"
        " print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"locked\n"
        directory = only_directory(properties, 1)
        assert (directory["in_use"], directory["problems"]) == (True, [])
        assert "not now: a running node has it" in run("info", "-c", str(properties)).stdout
        process.communicate()
    assert only_directory(properties)["in_use"] is False


def test_directories_of_two_clusters_or_copies_are_told(properties: Path) -> None:
    text = properties.read_text()
    folder = properties.parent
    properties.write_text(text.replace(f"{folder}/a", f"{folder}/a,{folder}/b,{folder}/c"))
    assert run("format", "-t", ID, "-c", str(properties), "--standalone").exit_code == 0
    (folder / "b" / "meta.properties").write_text((folder / "a" / "meta.properties").read_text())
    other = (folder / "c" / "meta.properties").read_text().replace(ID, "AAAAAAAAAAAAAAAAAAAAAA")
    (folder / "c" / "meta.properties").write_text(other)
    a, b, c = answer("info", "-c", str(properties), code=1)["directories"]
    assert a["problems"] == []
    assert "is it a copy?" in str(b["problems"])
    assert "belongs to cluster AAAA" in str(c["problems"])


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        ("SCRAM-SHA-256=name=alice,password=secret-1", "to be in the form"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=secret-1]", "supply 'salt'"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=secret-1!,salt=YWJj]", "base64"),
        ("SCRAM-SHA-256=[name=alice,password=secret-1,iterations=many]", "must be a number"),
        ("SCRAM-SHA-256=[name=alice,password=secret-1,iterations=1]", ">= 4096"),
        ("SCRAM-SHA-256=[name=alice,password=secret-1,iterations=99999]", "<= 16384"),
        ("SCRAM-SHA-1=[name=alice,password=secret-1]", "not supported"),
        ("SCRAM-SHA-256=[password=secret-1]", "'name'"),
    ],
)
def test_scram_users_that_cannot_be_read_are_not_quoted(properties: Path, user: str, sentence: str) -> None:
    done = run("format", "-t", ID, "-c", str(properties), "--standalone", "--add-scram", user)
    assert done.exit_code == 1 and sentence in done.stderr, done.output
    assert "secret-1" not in done.output


def test_values_of_scram_users_may_be_quoted(properties: Path) -> None:
    user = 'SCRAM-SHA-512=[name="alice", password="secret-1", iterations=8192]'
    done = run("format", "-t", ID, "-c", str(properties), "--standalone", "--add-scram", user)
    assert done.exit_code == 0 and "name='alice'" in done.output + _bootstrap(properties), done.output


def _bootstrap(properties: Path) -> str:
    from moldau.node.metadata_snapshots import read_bootstrap_records
    from moldau.server.posix_disk import PosixDisk

    return "".join(map(repr, read_bootstrap_records(PosixDisk(), str(properties.parent / "a"))))
