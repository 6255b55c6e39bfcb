"""The few arguments of `moldau server`, which are read without a library."""

from __future__ import annotations

import pytest

from moldau.cli.server import BadArguments, parse_arguments, run_server


def test_a_file_and_overrides_in_any_order() -> None:
    assert parse_arguments([]) == (None, [])
    assert parse_arguments(["--override", "a=1", "server.properties", "--override=b=2=3"]) == (
        "server.properties",
        ["a=1", "b=2=3"],
    )


@pytest.mark.parametrize(
    "arguments",
    [["--override"], ["--override", "x"], ["--override==1"], ["--daemon"], ["a.properties", "b.properties"]],
)
def test_arguments_that_make_no_sense(arguments: list[str]) -> None:
    with pytest.raises(BadArguments):
        parse_arguments(arguments)


def test_bad_arguments_end_with_usage_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_server(["--nope"]) == 2
    assert "Usage: moldau server" in capsys.readouterr().err
