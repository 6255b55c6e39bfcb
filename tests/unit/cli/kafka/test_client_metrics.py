"""kafka-client-metrics: its options, what it asks for and what it prints, against a scripted admin client."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.cli.kafka import client_metrics
from moldau.cli.kafka.frame import guard
from moldau.client.admin import CLIENT_METRICS, DELETE, SET, ConfigChange, ConfigEntry, ConfigResource
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

RESOURCE = ConfigResource(CLIENT_METRICS, "m1")


def entries(**values: str) -> dict[ConfigResource, Outcome[list[ConfigEntry]]]:
    rows = [ConfigEntry(name.replace("_", "."), value, 7, False, False, [], None) for name, value in values.items()]
    return {RESOURCE: Outcome(rows)}


def run(admin: FakeAdmin, *line: str) -> int:
    return guard(lambda: client_metrics.main([*line, "--bootstrap-server", "h:1"], connect=admin.connect))


def changes(admin: FakeAdmin) -> list[ConfigChange]:
    (asked,) = [arguments[0] for name, arguments, _ in admin.calls if name == "incremental_alter_configs"]
    (found,) = asked.values()
    return sorted(found)


def test_altering(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(incremental_alter_configs={RESOURCE: Outcome(None)})
    line = ["--alter", "--name", "m1", "--metrics", "a,b", "--metrics", "c", "--interval", "1000", "--match", ""]
    assert run(admin, *line) == 0
    assert changes(admin) == [
        ConfigChange("interval.ms", "1000", SET),
        ConfigChange("match", "", DELETE),
        ConfigChange("metrics", "a,b,c", SET),
    ]
    assert capsys.readouterr().out == "Altered client metrics config for m1.\n"


def test_a_name_can_be_made_up(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(incremental_alter_configs={RESOURCE: Outcome(None)})
    assert run(admin, "--alter", "--generate-name", "--metrics", "a") == 0
    said = capsys.readouterr().out
    assert re.fullmatch(r"Altered client metrics config for [\w-]{22}\.\n", said)


def test_describing_and_deleting_and_listing_are_as_they_were_seen(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"metrics": "org.apache", "interval_ms": "10000", "match": ""}
    admin = FakeAdmin(
        describe_configs=entries(**values),
        incremental_alter_configs={RESOURCE: Outcome(None)},
        list_client_metrics_resources=["m1"],
    )
    assert run(admin, "--describe", "--name", "m1") == 0
    shown = "Client metrics configs for m1 are:\n  interval.ms=10000\n  match=\n  metrics=org.apache\n"
    assert capsys.readouterr().out == shown
    assert run(admin, "--describe") == 0 and capsys.readouterr().out == shown
    assert run(admin, "--list") == 0 and capsys.readouterr().out == "m1\n"
    assert run(admin, "--delete", "--name", "m1") == 0
    assert capsys.readouterr().out == "Deleted client metrics config for m1.\n"
    assert [(change.name, change.operation) for change in changes(admin)] == [
        (name, DELETE) for name in ("interval.ms", "match", "metrics")
    ]


def test_errors_are_told_and_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    failure = error_for(errors.INVALID_REQUEST, "no")
    admin = FakeAdmin(incremental_alter_configs={RESOURCE: Outcome(error=failure)})
    assert run(admin, "--alter", "--name", "m1", "--interval", "1") == 1
    shown = capsys.readouterr()
    assert shown.out == "Error while executing client metrics command : no\n"
    assert "org.apache.kafka.common.errors.InvalidRequestException: no" in shown.err
    assert run(admin, "--alter", "--name", "m1", "--interval", "x") == 1
    assert "Cannot parse argument 'x' of option interval" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--list --describe", "Command must include exactly one action: --alter, --delete, --describe or --list."),
        ("--name x", "Command must include exactly one action: --alter, --delete, --describe or --list."),
        ("--alter", "One of --name or --generate-name must be specified with --alter."),
        ("--alter --name x --generate-name", "One of --name or --generate-name must be specified with --alter."),
        ("--delete", "A client metrics resource name must be specified with --delete."),
        ("--delete --name x --interval 1", 'Option "[delete]" can\'t be used with option "[interval]"'),
        ("--list --name x", 'Option "[list]" can\'t be used with option "[name]"'),
        ("--bogus", "bogus is not a recognized option"),
    ],
)
def test_lines_that_make_no_sense(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), *line.split()) == 1
    assert said in capsys.readouterr().err


def test_brokers_have_to_be_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert guard(lambda: client_metrics.main(["--list"], connect=FakeAdmin().connect)) == 1
    assert "--bootstrap-server must be specified." in capsys.readouterr().err
