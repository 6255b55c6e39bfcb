"""`moldau security check`: files as brokers read them, exit codes, and that what is secured is found to be so."""

from __future__ import annotations

import json
import shutil
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root
from moldau.config.broker_config import BrokerConfig
from moldau.config.properties import format_properties, parse_properties
from moldau.security.exposure.check import check_exposure
from moldau.security.exposure.findings import Facts
from moldau.security.exposure.listeners import view_listeners
from moldau.server.dev_certificates import LOCAL_HOSTS, DevCertificates
from moldau.server.signing import SigningError, find_signer

OPEN = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://localhost:9093",
}


@pytest.fixture
def certificates(tmp_path: Path) -> DevCertificates:
    try:
        found = DevCertificates(tmp_path / "certs", find_signer(), has_pkcs12=False)
    except SigningError as error:
        pytest.skip(str(error))
    found.ensure_authority()
    found.ensure("node", "node", LOCAL_HOSTS)
    return found


def secured(certificates: DevCertificates) -> dict[str, str]:
    return {
        **OPEN,
        "listeners": "CLIENTS://:9092,CONTROLLER://localhost:9093",
        "advertised.listeners": "CLIENTS://localhost:9092",
        "inter.broker.listener.name": "CLIENTS",
        "listener.security.protocol.map": "CLIENTS:SSL,CONTROLLER:SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.file("node")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority_file),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=node",
        "max.connections.per.ip": "100",
    }


def run(folder: Path, values: dict[str, str], *arguments: str) -> Result:
    file = folder / "server.properties"
    file.write_text(format_properties({"log.dirs": str(folder / "logs"), **values}))
    file.chmod(0o600)
    return CliRunner().invoke(root, ["security", "check", str(file), *arguments])


def codes(result: Result) -> dict[str, str]:
    """The worst of each code, which comes first."""
    found: dict[str, Any] = json.loads(result.output)
    worst: dict[str, str] = {}
    for finding in found["findings"]:
        worst.setdefault(finding["code"], finding["severity"])
    return worst


def test_an_open_broker_is_severe(tmp_path: Path) -> None:
    result = run(tmp_path, OPEN)
    assert result.exit_code == 1
    assert "SEVERE   PLAINTEXT: Whoever reaches *:9092 is let in without a login" in result.output
    assert "change listener.security.protocol.map" in result.output
    assert "Authorizer: none" in result.output


def test_a_secured_broker_passes_even_strictly(tmp_path: Path, certificates: DevCertificates) -> None:
    result = run(tmp_path, secured(certificates), "--strict", "--format", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["findings"] == []
    assert found["super_users"] == ["User:CN=node"]
    assert [(row["name"], row["encrypted"], row["anonymous"], row["reach"]) for row in found["listeners"]] == [
        ("CLIENTS", True, False, "everywhere"),
        ("CONTROLLER", True, False, "this machine"),
    ]


def test_warnings_count_only_when_strict(tmp_path: Path, certificates: DevCertificates) -> None:
    values = secured(certificates)
    del values["max.connections.per.ip"]
    assert run(tmp_path, values).exit_code == 0
    result = run(tmp_path, values, "--strict", "--format", "json")
    assert (result.exit_code, codes(result)) == (1, {"unlimited-connections": "warning"})


def test_the_certificates_in_the_files_are_looked_at(tmp_path: Path, certificates: DevCertificates) -> None:
    values = secured(certificates)
    values["advertised.listeners"] = "CLIENTS://kafka.test:9092"
    assert codes(run(tmp_path, values, "--format", "json")) == {"certificate-lacks-host": "warning"}
    certificates.file("node").chmod(0o644)
    assert codes(run(tmp_path, values, "--format", "json"))["key-readable"] == "severe"
    certificates.file("node").chmod(0o600)
    shutil.copy(certificates.file("node", "crt"), certificates.file("node"))
    result = run(tmp_path, values, "--format", "json")
    assert codes(result)["does-not-start"] == "severe"
    assert "private key" in result.output
    certificates.file("node").unlink()
    assert codes(run(tmp_path, values, "--format", "json"))["does-not-start"] == "severe"


def test_who_can_change_or_read_the_files_is_looked_at(tmp_path: Path, certificates: DevCertificates) -> None:
    values = {**secured(certificates), "super.users": "User:ops", "log.dirs": str(tmp_path / "logs")}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o755)
    certificates.authority_file.chmod(0o666)
    result = run(tmp_path, values, "--format", "json")
    found = codes(result)
    assert (found["trust-writable"], found["node-is-no-super-user"]) == ("severe", "warning")
    assert "by its certificate as User:CN=node" in result.output
    rules = {**values, "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT"}
    assert "by its certificate as User:node," in run(tmp_path, rules).output


@pytest.mark.parametrize(("above", "is_found"), [(0o755, True), (0o750, False)])
def test_a_closed_folder_above_closes_the_logs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: int, is_found: bool
) -> None:
    modes = {str(tmp_path.resolve()): above}
    monkeypatch.setattr("moldau.server.security_facts._mode", lambda path: modes.get(path, 0o755))
    found = codes(run(tmp_path, {**OPEN, "log.dirs": str(tmp_path / "logs")}, "--format", "json"))
    assert ("logs-readable" in found) is is_found


def test_what_is_not_looked_at_is_said(tmp_path: Path) -> None:
    assert "not settings that were changed while nodes run" in run(tmp_path, OPEN).stderr
    assert "dynamic settings" in json.loads(run(tmp_path, OPEN, "--format", "json").output)["not_looked_at"]


def test_overrides_and_the_environment_count_as_for_a_broker(
    tmp_path: Path, certificates: DevCertificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = secured(certificates)
    result = run(tmp_path, values, "--override", "ssl.client.auth=none", "--format", "json")
    assert (result.exit_code, codes(result)) == (0, {"anonymous-clients": "warning"})
    monkeypatch.setenv("KAFKA_SUPER_USERS", "User:ANONYMOUS")
    result = run(tmp_path, values, "--override", "ssl.client.auth=none", "--format", "json")
    assert (result.exit_code, codes(result)["open-listener"]) == (1, "severe")


def test_no_secret_is_printed(tmp_path: Path) -> None:
    secret = "hunter2hunter2"
    line = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_anna="{secret}" user_ben="b3n";'
    values = {
        **OPEN,
        "listeners": "CLIENTS://:9092,CONTROLLER://localhost:9093",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": line,
        "ssl.keystore.password": secret,
        "delegation.token.secret.key": secret,
    }
    for arguments in ((), ("--format", "json")):
        result = run(tmp_path, values, *arguments)
        assert result.exit_code == 1
        assert secret not in result.output
        assert "b3n" not in result.output


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({**OPEN, "listeners": "NOPE"}, "NOPE"),
        ({"node.id": "1"}, "Missing required"),
        ({**OPEN, "node.id": "x"}, "Invalid value x"),
        (
            {
                **OPEN,
                "listeners": "C://:9092,CONTROLLER://localhost:9093",
                "listener.security.protocol.map": "C:SSL,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "C",
                "listener.name.c.ssl.client.auth": "Required",
            },
            "Invalid value Required",
        ),
    ],
)
def test_what_is_no_configuration_has_an_exit_code_of_its_own(
    tmp_path: Path, values: dict[str, str], sentence: str
) -> None:
    result = run(tmp_path, values)
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(root, ["security", "check", str(tmp_path / "none.properties")])
    assert result.exit_code == 2
    assert "does not exist" in result.output


def test_the_example_of_the_documentation_keeps_what_it_promises() -> None:
    """The first block of settings on the page about security; its stores are not there to be looked into."""
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text().splitlines()
    first = next(number for number, line in enumerate(page) if line.startswith("    listeners="))
    block = list(takewhile(lambda line: line.startswith("    "), page[first:]))
    roles = {key: value for key, value in OPEN.items() if key != "listeners"}
    config = BrokerConfig({**roles, **parse_properties("\n".join(block))}, warn=False)
    assert [view.is_anonymous for view in view_listeners(config)] == [False, False]
    found = check_exposure(config, Facts(), 0)
    assert {finding.code for finding in found} == {"unlimited-connections", "endless-logins"}
