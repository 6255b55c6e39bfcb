"""What `moldau up --secure` writes for clients: names of profiles, files, and that other profiles are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from moldau.cli import profiles
from moldau.cli.client_lines import Access, call_lines, java_settings, kafka_python_arguments, librdkafka_settings
from moldau.cli.root import root
from moldau.cli.up_secure import SecuredClients
from moldau.client import config
from moldau.config.properties import parse_properties
from moldau.security.jaas import parse_jaas
from moldau.server.local_cluster import plan_cluster
from moldau.server.secured_cluster import ClusterSecurity, SecurityState

CLUSTER_ID = "M" + "A" * 21


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


def clients_of(folder: Path) -> SecuredClients:
    """A cluster whose certificates need not be good."""
    security = ClusterSecurity(folder)
    security.directory.mkdir(parents=True, exist_ok=True)
    security.authority.touch()
    security.state = SecurityState("the admin's", "the user's")
    return SecuredClients(plan_cluster(folder, 1, None, "127.0.0.1", 9092, CLUSTER_ID, True), security)


def test_the_profiles_are_those_of_the_two_users(tmp_path: Path) -> None:
    clients = clients_of(tmp_path / "data")
    clients.write(None)
    for name, user, password in (("secure", "user", "the user's"), ("secure-admin", "admin", "the admin's")):
        settings = profiles.read(name)
        assert settings["bootstrap.servers"] == "127.0.0.1:9092"
        assert parse_jaas(settings["sasl.jaas.config"]).options == {"username": user, "password": password}
        config.ClientConfig({**config.ADMIN, **config.CONSUMER, **config.PRODUCER}, settings)
        assert parse_properties(clients.files[user].java.read_text()) == settings


def test_two_clusters_have_profiles_of_different_names_and_keep_them(tmp_path: Path) -> None:
    first, second = clients_of(tmp_path / "one"), clients_of(tmp_path / "two")
    first.write(None)
    second.write(None)
    assert (first.profile, second.profile) == ("secure", "secure-2")
    again = clients_of(tmp_path / "two")
    again._security.state.profile = "secure-2"
    again.write(None)
    assert again.profile == "secure-2"


def test_a_profile_of_a_cluster_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    gone = clients_of(tmp_path / "gone")
    gone.write(None)
    gone._security.authority.unlink()
    clients = clients_of(tmp_path / "data")
    clients.write(None)
    assert clients.profile == "secure"


def test_a_profile_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    mine = {"bootstrap.servers": "prod:9092", "ssl.truststore.location": "/etc/ssl/prod.pem"}
    profiles.write("mine", mine)
    profiles.write("secure-admin", mine)
    with pytest.raises(profiles.ProfileError, match="choose another name with --profile"):
        clients_of(tmp_path / "data").write("mine")
    clients = clients_of(tmp_path / "data")
    clients.write(None)
    assert clients.profile == "secure-2", "secure-admin is taken"
    assert profiles.read("mine") == profiles.read("secure-admin") == mine


def test_profile_goes_with_secure(tmp_path: Path) -> None:
    result = CliRunner().invoke(root, ["up", "--profile", "x", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "--profile goes with --secure" in result.output


def test_each_client_has_its_own_names_for_the_same() -> None:
    access = Access("h:1", Path("/c/ca.pem"), Path("/c/anna"), "anna", 'a"b\\c')
    assert parse_jaas(java_settings(access)["sasl.jaas.config"]).options["password"] == 'a"b\\c'
    assert librdkafka_settings(access) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/c/ca.pem",
        "ssl.certificate.location": "/c/anna.crt",
        "ssl.key.location": "/c/anna.key",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "anna",
        "sasl.password": 'a"b\\c',
    }
    lines = "\n".join(call_lines("dict", kafka_python_arguments(access)))
    assert eval(lines) == kafka_python_arguments(access)
