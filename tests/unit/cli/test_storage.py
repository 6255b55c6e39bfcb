"""`moldau storage` on real directories, with the texts that kafka-storage has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root

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
    assert before.exit_code == 1 and "does not exist" in before.stdout
    done = run("format", "-t", ID, "-c", str(properties), "--standalone")
    assert done.exit_code == 0, done.output
    assert f"Formatting dynamic metadata voter directory {properties.parent}/a with metadata.version" in done.stdout
    after = run("info", "-c", str(properties))
    assert after.exit_code == 0 and f"cluster.id={ID}" in after.stdout
    again = run("format", "-t", ID, "-c", str(properties), "--standalone")
    assert again.exit_code == 1 and "is already formatted" in again.stderr
    ignored = run("format", "-t", ID, "-c", str(properties), "--standalone", "--ignore-formatted")
    assert (ignored.exit_code, ignored.stdout) == (0, "All of the log directories are already formatted.\n")


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
