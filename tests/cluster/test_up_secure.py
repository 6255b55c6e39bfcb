"""`moldau up --secure`: three secured nodes, and clients that get in with the files it wrote, and not without."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.errors import ClientError
from moldau.config.properties import parse_properties
from moldau.server.signing import SigningError, find_signer
from tests.cluster.test_up import Up, ups
from tests.interop.nodes import MoldauNode
from tests.pace import patience, patience_ms

__all__ = ["ups"]
TOPIC = "orders"
COMMAND_S_MAX = patience(60)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where profiles are kept."""
    try:
        find_signer()
    except SigningError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if "MOLDAU_COMMAND" not in environment:
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(
        [*MoldauNode.command(), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        env=environment,
        timeout=COMMAND_S_MAX,
    )


def succeed(*arguments: str, typed: str = "") -> str:
    done = run(*arguments, typed=typed)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def settings_of(ready: dict[str, Any], user: str) -> dict[str, Any]:
    return dict(parse_properties(Path(ready["users"][user]["properties"]).read_text()))


def librdkafka_settings(ready: dict[str, Any], user: str) -> dict[str, Any]:
    lines = Path(ready["users"][user]["librdkafka"]).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def check_commands(ready: dict[str, Any]) -> None:
    """The profile alone is enough."""
    profile = ready["users"]["user"]["profile"]
    wait = ["--timeout", str(patience(20))]
    succeed("topic", "create", TOPIC, "-p", "3", "--profile", profile, *wait)
    succeed("produce", TOPIC, "-K", ":", "--profile", profile, *wait, typed="anna:bread\nben:milk\n")
    read = succeed("consume", TOPIC, "--group", "g", "-n", "2", "--profile", profile, *wait)
    assert sorted(read.split()) == ["bread", "milk"]
    assert TOPIC in succeed("topic", "list", "--profile", profile, *wait)
    refused = run("user", "create", "clara", "--generate", "--profile", profile, *wait)
    assert refused.returncode == 1
    assert "uthoriz" in refused.stderr, "an ordinary user makes no users"
    admin = ready["users"]["admin"]["profile"]
    succeed("user", "create", "clara", "--password-stdin", "--profile", admin, *wait, typed="clara's own\n")
    assert "clara" in succeed("user", "list", "--profile", admin, *wait)
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="clara" password="clara\'s own";'
    with Admin(config={**settings_of(ready, "user"), "sasl.jaas.config": jaas}) as hers:
        assert hers.list_topics() == [], "she can log in, and has no rights"


def check_librdkafka(ready: dict[str, Any]) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="pip install 'moldau[interop]'")
    settings = librdkafka_settings(ready, "user")
    producer = confluent.Producer({**settings, "message.timeout.ms": patience_ms(20_000)})
    errors: list[Any] = []
    producer.produce(TOPIC, b"tea", b"clara", on_delivery=lambda error, message: errors.append(error))
    producer.flush(patience(25))
    assert errors == [None]
    consumer = confluent.Consumer({**settings, "group.id": "by-librdkafka", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([TOPIC])
        values: list[bytes] = []
        while len(values) < 3:
            message = consumer.poll(patience(20))
            assert message is not None, f"only {values} came"
            assert message.error() is None, message.error()
            values.append(message.value())
    finally:
        consumer.close()
    assert sorted(values) == [b"bread", b"milk", b"tea"]


def check_refusals(ready: dict[str, Any]) -> None:
    """A wrong password, no login, no TLS; nor an authority that is not the cluster's."""
    timeouts = {"default.api.timeout.ms": patience_ms(5000), "request.timeout.ms": patience_ms(4000)}
    good = {**settings_of(ready, "user"), **timeouts}
    with Admin(config=good) as admin:
        assert TOPIC in [topic.name for topic in admin.list_topics()]
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="user" password="guessed";'
    wrong_password = {**good, "sasl.jaas.config": jaas}
    no_login = {key: value for key, value in good.items() if not key.startswith("sasl.")}
    no_login["security.protocol"] = "SSL"
    plaintext = {"bootstrap.servers": ready["bootstrap_servers"], **timeouts}
    stranger = {key: value for key, value in good.items() if not key.startswith("ssl.truststore")}

    def be_refused(settings: dict[str, Any]) -> None:
        with pytest.raises(ClientError), Admin(config=settings) as admin:
            admin.list_topics()

    with ThreadPoolExecutor() as threads:  # each tries until its time is over
        list(threads.map(be_refused, (wrong_password, no_login, plaintext, stranger)))


def check_modes(folder: Path, home: Path) -> None:
    """Nobody else gets at a secret: either the file or a folder above it is closed."""
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "security").stat().st_mode) == 0o700
    secret = [*(folder / "security").iterdir(), *folder.glob("*/server.properties"), *home.rglob("*.properties")]
    public = {"ca.pem", "moldau-node.crt"}
    assert {file.name for file in secret if stat.S_IMODE(file.stat().st_mode) != 0o600} == public


def test_one_command_makes_a_secured_cluster_that_starts_again(tmp_path: Path, ups: list[Up], home: Path) -> None:
    up = Up(tmp_path / "data", "--secure", "--brokers", "3", "--port", "0")
    ups.append(up)
    ready = up.ready()
    assert len(ready["nodes"]) == 3
    check_modes(tmp_path / "data", home)
    check_commands(ready)
    check_librdkafka(ready)
    check_refusals(ready)
    report = run("security", "check", str(Path(ready["nodes"][0]["directory"]) / "server.properties"), "--strict")
    assert report.returncode == 0, report.stdout
    password = settings_of(ready, "user")["sasl.jaas.config"]
    assert up.stop() == 0, up.log()
    assert password.split('"')[3] not in up.log()

    open_one = run("up", "--data-dir", str(tmp_path / "data"))
    assert open_one.returncode == 1
    assert "is secured: start it with --secure" in open_one.stderr

    again = Up(tmp_path / "data", "--secure")
    ups.append(again)
    once_more = again.ready()
    assert once_more["cluster_id"] == ready["cluster_id"]
    assert once_more["users"] == ready["users"]
    assert settings_of(once_more, "user") == settings_of(ready, "user")
    reading = {**settings_of(once_more, "user"), "group.id": "again", "auto.offset.reset": "earliest"}
    with Consumer(config=reading) as consumer:
        consumer.subscribe([TOPIC])
        found: list[bytes | None] = []
        while len(found) < 3:
            records = consumer.poll(timeout_ms=patience_ms(20_000))
            assert records, f"only {found} came"
            found += [record.value for record in records]
    with Producer(config=settings_of(once_more, "user")) as producer:
        producer.send(TOPIC, b"butter").result(timeout_ms=patience_ms(20_000))
    assert again.stop() == 0, again.log()
