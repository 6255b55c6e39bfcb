"""kafka-storage: formats, shows and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka import storage
from moldau.cli.kafka.frame import guard


def run(line: str) -> int:
    return guard(lambda: storage.main(line.split()))


def test_a_directory_is_formatted_once_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, data = tmp_path / "a.properties", tmp_path / "a"
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19192\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:19192\nlog.dirs={data}\n"
    )
    assert run(f"info -c {file}") == 1
    assert capsys.readouterr().out == f"Found problem:\n  {data} does not exist\n\n"
    form = f"format -t MkU3OEVBNTcwNTJENDM2Qk -c {file} --standalone"
    assert run(form) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"Formatting dynamic metadata voter directory {data} with metadata.version 4.3-IV0."
    assert run(form) == 1
    assert capsys.readouterr().err.startswith(f"Log directory {data} is already formatted. Use --ignore-formatted")
    assert run(f"{form} --ignore-formatted") == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"


def test_a_file_that_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("format -t x -c no-such.properties --standalone") == 1
    expected = 'Exception in thread "main" java.nio.file.NoSuchFileException: no-such.properties\n'
    assert capsys.readouterr().err == expected
