"""Profiles, and which of flag, environment and profile says where the brokers are."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moldau.cli import options, profiles
from moldau.cli.root import root


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("MOLDAU_BOOTSTRAP_SERVER", "MOLDAU_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments), prog_name="moldau")


def ok(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def address(*arguments: str) -> str:
    """Where a command goes that finds nobody there."""
    result = run("topic", "list", "--timeout", "1", *arguments)
    assert result.exit_code == 1
    return result.stderr


def test_the_first_profile_is_taken_into_use_and_others_when_told(home: Path) -> None:
    assert "in use" in ok("profile", "create", "one", "-b", "127.0.0.1:1")
    assert "in use." not in ok("profile", "create", "two", "-b", "127.0.0.1:2")
    rows = json.loads(ok("profile", "list", "--format", "json"))
    assert [(row["name"], row["in_use"]) for row in rows] == [("one", True), ("two", False)]
    ok("profile", "use", "two")
    assert profiles.current() == "two"
    ok("profile", "use", "--none")
    assert profiles.current() is None


def test_a_profile_is_a_client_properties_file_that_only_its_owner_reads(home: Path) -> None:
    ok("profile", "create", "one", "-b", "127.0.0.1:1", "-X", "client.id=me")
    path = Path(ok("profile", "path", "one").strip())
    assert path == home / "moldau" / "profiles" / "one.properties"
    assert "client.id=me\n" in path.read_text()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert profiles.read("one") == {"bootstrap.servers": "127.0.0.1:1", "client.id": "me"}


def test_a_properties_file_can_be_taken_over(home: Path) -> None:
    file = home / "client.properties"
    file.write_text("# mine\nbootstrap.servers = 127.0.0.1:3\nacks=1\n")
    ok("profile", "create", "one", "--from-file", str(file), "-X", "linger.ms=9")
    assert profiles.read("one") == {"bootstrap.servers": "127.0.0.1:3", "acks": "1", "linger.ms": "9"}


def test_the_flag_is_stronger_than_the_environment_and_that_than_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    ok("profile", "create", "one", "-b", "127.0.0.1:1")
    ok("profile", "create", "two", "-b", "127.0.0.1:2")
    assert "127.0.0.1:1" in address() and "profile one" in address()
    monkeypatch.setenv("MOLDAU_PROFILE", "two")
    assert "127.0.0.1:2" in address()
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", "127.0.0.1:4")
    assert "127.0.0.1:4" in address() and "MOLDAU_BOOTSTRAP_SERVER" in address()
    assert "127.0.0.1:1" in address("--profile", "one")
    assert "127.0.0.1:5" in address("-b", "127.0.0.1:5", "--profile", "one")


def test_settings_of_the_profile_in_use_do_not_go_to_an_address_from_elsewhere() -> None:
    ok("profile", "create", "one", "-b", "127.0.0.1:1")
    with open(profiles.path_of("one"), "a") as file:
        file.write("no.such.setting=1\n")
    assert "no.such.setting" in address()
    assert "no.such.setting" not in address("-b", "127.0.0.1:5")
    assert "no.such.setting" in address("-b", "127.0.0.1:5", "--profile", "one")


def test_settings_for_other_kinds_of_clients_are_left_out() -> None:
    ok("profile", "create", "one", "-b", "127.0.0.1:1", "-X", "acks=1", "-X", "auto.offset.reset=earliest")
    assert "refused" in address()
    result = run("consume", "t", "--timeout", "1")
    assert "refused" in result.stderr, result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("create", "a/b", "-b", "h:1"), "cannot be the name"),
        (("create", "x"), "Say where the brokers are"),
        (("create", "x", "-b", "nowhere"), "host:port"),
        (("create", "x", "-b", "h:1", "-X", "ackz=1"), "Did you mean acks?"),
        (("show", "x"), "no profile x"),
        (("use", "x"), "no profile x"),
        (("delete", "x"), "no profile x"),
        (("path",), "No profile is in use"),
        (("use",), "Name a profile"),
    ],
)
def test_mistakes_are_told_with_what_to_do(arguments: tuple[str, ...], sentence: str) -> None:
    result = run("profile", *arguments)
    assert result.exit_code in (1, 2) and sentence in result.stderr, result.stderr
    assert profiles.names() == []


def test_an_existing_profile_is_replaced_only_by_force() -> None:
    ok("profile", "create", "one", "-b", "h:1")
    result = run("profile", "create", "one", "-b", "h:2")
    assert result.exit_code == 1 and "--force" in result.stderr
    ok("profile", "create", "one", "-b", "h:2", "--force")
    assert profiles.read("one")["bootstrap.servers"] == "h:2"


def test_a_deleted_profile_is_not_in_use_any_more() -> None:
    ok("profile", "create", "one", "-b", "h:1")
    assert "No profile is in use" in ok("profile", "delete", "one")
    assert profiles.current() is None and profiles.names() == []


def test_a_profile_in_use_whose_file_is_gone_tells_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "DEFAULT_BOOTSTRAP_SERVER", "127.0.0.1:7")
    ok("profile", "create", "one", "-b", "h:1")
    os.remove(profiles.path_of("one"))
    assert "profile use --none" in address()
    ok("profile", "use", "--none")
    assert "127.0.0.1:7" in address()


def test_passwords_are_not_shown() -> None:
    profiles.write("one", {"bootstrap.servers": "h:1", "ssl.keystore.password": "hush", "sasl.jaas.config": "x"})
    for more in ((), ("--format", "json")):
        text = ok("profile", "show", "one", *more)
        assert "hush" not in text and "[hidden]" in text and "h:1" in text


def test_every_verb_answers_programs_too(home: Path) -> None:
    path = str(home / "moldau" / "profiles" / "one.properties")
    made = json.loads(ok("profile", "create", "one", "-b", "127.0.0.1:1", "--format", "json"))
    assert made == {"name": "one", "in_use": True, "path": path}
    assert json.loads(ok("profile", "path", "--format", "json")) == made
    assert json.loads(ok("profile", "use", "--none", "--format", "json")) == {"in_use": None}
    assert json.loads(ok("profile", "use", "one", "--format", "json")) == {"in_use": "one"}
    assert json.loads(ok("profile", "delete", "one", "--format", "json")) == {"deleted": "one", "in_use": None}
