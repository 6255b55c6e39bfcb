"""The few arguments of `moldau server`, which are read without a library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.cli.server import BadArguments, parse_arguments, run_server


def test_a_file_and_overrides_in_any_order() -> None:
    nothing = parse_arguments([])
    assert (nothing.file, nothing.overrides, nothing.port, nothing.data_dir, nothing.force) == (
        None,
        [],
        None,
        None,
        False,
    )
    found = parse_arguments(["--override", "a=1", "server.properties", "--override=b=2=3"])
    assert (found.file, found.overrides) == ("server.properties", ["a=1", "b=2=3"])


def test_a_start_without_a_file_has_a_port_and_a_folder() -> None:
    found = parse_arguments(["--port", "19092", "--data-dir=/data", "--force"])
    assert (found.port, found.data_dir, found.force) == (19092, "/data", True)
    found = parse_arguments(["--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", "--log-level=info"])
    assert (found.cluster_id, found.log_level) == ("MkU3OEVBNTcwNTJENDM2Qg", "INFO")
    assert parse_arguments(["a.properties", "--log-level", "DEBUG"]).log_level == "DEBUG"
    assert parse_arguments(["a.properties", "--log-format", "json"]).log_format == "json"


def test_the_console_has_an_address_of_its_own_or_the_usual_one() -> None:
    assert parse_arguments([]).console is None
    assert parse_arguments(["--console"]).console == ""
    assert parse_arguments(["a.properties", "--console=127.0.0.1:0"]).console == "127.0.0.1:0"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--override"],
        ["--override", "x"],
        ["--override==1"],
        ["--daemon"],
        ["a.properties", "b.properties"],
        ["--port"],
        ["--port", "x"],
        ["--port", "65535"],
        ["--port=-1"],
        ["--data-dir="],
        ["a.properties", "--port", "1"],
        ["a.properties", "--data-dir", "x"],
        ["a.properties", "--force"],
        ["a.properties", "--cluster-id", "x"],
        ["--cluster-id="],
        ["--log-level", "LOUD"],
        ["--log-format", "xml"],
        ["--console=x"],
        ["--console=localhost:70000"],
    ],
)
def test_arguments_that_make_no_sense(arguments: list[str]) -> None:
    with pytest.raises(BadArguments):
        parse_arguments(arguments)


def test_bad_arguments_end_with_usage_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_server(["--nope"]) == 2
    assert "Usage: moldau server" in capsys.readouterr().err


def test_a_listener_whose_name_stands_for_nothing_is_not_blamed_on_the_port(tmp_path: Path) -> None:
    listeners = "listeners=PLAINTEXT://nohost.invalid:0,CONTROLLER://127.0.0.1:0"
    command = [sys.executable, "-m", "moldau", "server", "--data-dir", str(tmp_path / "data"), "--override", listeners]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert "the host name cannot be resolved" in done.stderr and "advertised.listeners" in done.stderr
    assert "free" not in done.stderr and "Traceback" not in done.stderr
