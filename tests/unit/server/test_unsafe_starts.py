"""What a node refuses to start with, and what it only names: promises it cannot keep, folders that are not its own."""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.server.local_cluster import plan_cluster, write_files
from moldau.server.main import run
from moldau.server.posix_disk import PosixDisk
from moldau.server.storage_format import FormatOptions, format_storage
from tests.pace import patience

CLUSTER_ID = "M" + "A" * 21
READY_S_MAX = patience(60)
STARTS_S = 20.0
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZER = "org.example.OurAuthorizer"
ALL_PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"

# What Apache Kafka's config/server.properties says, with a few settings that people add.
USUAL = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": ALL_PROTOCOLS,
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
    "background.threads": "20",
    "super.users": "User:admin",
    "zookeeper.connect": "localhost:2181",
    "zookeeper.connection.timeout.ms": "18000",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rsm.config.dir": "tiers",
    "confluent.support.metrics.enable": "false",
    "my.own.setting": "1",
}


def write(folder: Path, **changes: str) -> Path:
    values = {**USUAL, "log.dirs": str(folder / "data"), **changes}
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


def formatted(folder: Path, **changes: str) -> Path:
    format_storage({**USUAL, "log.dirs": str(folder / "data")}, CLUSTER_ID, PosixDisk(), FormatOptions(), 0)
    return write(folder, **changes)


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object, **more: object) -> list[str]:
    """The sentences with which a start was refused; a node that starts nevertheless is stopped again."""
    stop = threading.Timer(STARTS_S, os.kill, (os.getpid(), signal.SIGTERM))
    stop.start()
    code = run(*arguments, **more)  # type: ignore[arg-type]
    stop.cancel()
    assert code == 1, "it has started"
    output = capsys.readouterr()
    assert output.out == "" and "Traceback" not in output.err
    lines = [line for line in output.err.splitlines() if not line.startswith("[")]
    assert all(line.startswith("moldau server: ") for line in lines), output.err
    return [line.removeprefix("moldau server: ") for line in lines]


def environment(**more: str) -> dict[str, str]:
    found = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
    return {**found, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), **more}


class Started:
    """`moldau …` as a process; `ready` waits for the first line it prints."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.errors = folder / "errors.log"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moldau", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(),
                cwd=folder,
            )

    def ready(self) -> str:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            readable = selector.select(READY_S_MAX)
        line = self.process.stdout.readline().decode() if readable else ""
        assert line, f"it is not ready:\n{self.errors.read_text()}"
        return line

    def stop(self) -> int:
        assert self.process.stdout is not None
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(READY_S_MAX)
        self.process.stdout.close()
        return code


@pytest.fixture
def started() -> Iterator[list[Started]]:
    processes: list[Started] = []
    yield processes
    for each in processes:
        each.stop()


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def moldau(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moldau", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(**variables), cwd=folder, timeout=READY_S_MAX
    )
    assert "Traceback" not in done.stderr
    return done


# Promises of safety

UNSAFE: list[tuple[dict[str, str], list[str]]] = [
    (
        {
            "listeners": "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.location": "/nonexistent.jks",
            "ssl.client.auth": "required",
        },
        ["listener SSL: SSL key store is specified, but key store password is not specified."],
    ),
    (
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
        },
        ["listener OUTSIDE offers PLAIN, but has no users"],
    ),
    (
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        },
        ["listener OUTSIDE has sasl.enabled.mechanisms=GSSAPI"],
    ),
    (
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL"},
        ["listener CONTROLLER has sasl.enabled.mechanisms=GSSAPI"],
    ),
    (
        {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL",
        },
        ["sasl.mechanism.controller.protocol is GSSAPI"],
    ),
    (
        {"listener.name.plaintext.ssl.client.auth": "requested"},
        ["listener.name.plaintext.ssl.client.auth is requested"],
    ),
    ({"authorizer.class.name": AUTHORIZER}, [f"authorizer.class.name is {AUTHORIZER}"]),
]


@pytest.mark.parametrize(("changes", "sentences"), UNSAFE)
def test_a_setting_that_promises_safety_stops_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], sentences: list[str]
) -> None:
    file = formatted(tmp_path, **changes)
    before = tree(tmp_path)
    told = refusal(capsys, str(file), [])
    assert len(told) == len(sentences)
    for line, beginning in zip(told, sentences, strict=True):
        assert line.startswith(beginning) and line.endswith(".")
    assert tree(tmp_path) == before, "nothing was touched"


@pytest.mark.parametrize("source", ["override", "environment"])
@pytest.mark.parametrize("with_file", [True, False])
def test_it_does_not_matter_where_the_setting_comes_from(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    with_file: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(formatted(tmp_path)) if with_file else None
    overrides = []
    if source == "override":
        overrides = ["listeners=SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "inter.broker.listener.name=SSL"]
    else:
        monkeypatch.setenv("KAFKA_LISTENERS", "SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0")
        monkeypatch.setenv("KAFKA_INTER_BROKER_LISTENER_NAME", "SSL")
    (line,) = refusal(capsys, file, overrides)
    assert line.startswith("listener SSL has no key store")
    if not with_file:
        assert tree(tmp_path) == {}
        (line,) = refusal(capsys, file, ["listeners=SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0"])
        assert line.startswith("listener SSL has no key store")


def test_a_cluster_is_not_begun_with_such_a_setting(tmp_path: Path) -> None:
    arguments = ("up", "--data-dir", "data", "--port", "0")
    done = moldau(tmp_path, *arguments, "--override", f"authorizer.class.name={AUTHORIZER}")
    assert done.returncode == 1 and done.stderr.count("authorizer.class.name is") == 1
    done = moldau(tmp_path, *arguments, KAFKA_SSL_CLIENT_AUTH="required")
    assert done.returncode == 1 and done.stderr.count("ssl.client.auth is required") == 1
    assert not (tmp_path / "data").exists()


def test_formatting_is_done_and_says_that_the_node_will_not_start(tmp_path: Path) -> None:
    """The directories are as good for Apache Kafka, and the logins of a later start may be among what is formatted."""
    file = write(tmp_path, **{"authorizer.class.name": AUTHORIZER})
    done = moldau(tmp_path, "storage", "format", "-t", CLUSTER_ID, "-c", str(file))
    assert done.returncode == 0, done.stderr
    assert "`moldau server` will not start with this file: authorizer.class.name is" in done.stderr
    assert (tmp_path / "data" / "meta.properties").exists()


def test_a_usual_file_starts_and_names_once_what_has_no_effect(tmp_path: Path, started: list[Started]) -> None:
    node = Started(tmp_path, "server", str(formatted(tmp_path)))
    started.append(node)
    assert node.ready().startswith("moldau ready:")
    assert node.stop() == 0
    lines = [re.sub(r"^\[.*?\] ", "", line) for line in node.errors.read_text().splitlines()]
    lines = [line for line in lines if not line.endswith("(moldau.loop)")]  # the machine may be busy
    named = "background.threads, super.users"
    of_others = ", ".join(
        [
            "confluent.support.metrics.enable",
            "rlmm.config.remote.log.metadata.topic.replication.factor",
            "rsm.config.dir",
            "zookeeper.connect",
            "zookeeper.connection.timeout.ms",
        ]
    )
    assert lines == [
        "WARNING config my.own.setting is not known and has no effect (moldau.config)",
        f"WARNING settings that are known but have no effect yet: {named} (moldau.server)",
        f"WARNING settings without effect here: {of_others} (moldau.server)",
    ]


def test_what_nobody_chose_is_not_named(tmp_path: Path, started: list[Started]) -> None:
    """Neither the built-in settings nor those that `moldau up` writes; what is unknown is told once."""
    node = Started(tmp_path, "server", "--port", "0", "--override", "my.own.setting=1")
    started.append(node)
    node.ready()
    assert node.stop() == 0
    text = node.errors.read_text()
    assert text.count("my.own.setting") == 1 and "no effect yet" not in text and "without effect" not in text
    (tmp_path / "errors.log").unlink()
    override = ("--override", "num.network.threads=9")
    cluster = Started(tmp_path, "up", "--brokers", "1", "--port", "0", "--data-dir", "cluster", *override)
    started.append(cluster)
    cluster.ready()
    assert cluster.stop() == 0
    told = [line for line in cluster.errors.read_text().splitlines() if "no effect" in line]
    assert len(told) == 1 and "no effect yet: num.network.threads (" in told[0]


# Folders of others


def test_a_server_leaves_the_folder_of_a_cluster_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "moldau-data"
    write_files(plan_cluster(folder, 3, None, "127.0.0.1", 0, CLUSTER_ID), [])
    before = tree(folder)
    file = str(write(tmp_path, **{"log.dirs": str(folder)}))
    for arguments in (
        {"file": None, "data_directory": str(folder)},
        {"file": None, "data_directory": str(folder), "force": True},
        {"file": file},
    ):
        (line,) = refusal(capsys, overrides=[], **arguments)
        assert f"run it with `moldau up --data-dir {folder}`" in line
        assert tree(folder) == before
    done = moldau(tmp_path, "storage", "format", "-t", CLUSTER_ID, "-c", file, "--force")
    assert done.returncode == 1 and "moldau up" in done.stderr
    assert tree(folder) == before


def test_a_folder_with_other_things_is_neither_formatted_nor_locked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    (mine / "photos-2024").mkdir(parents=True)
    (mine / "photos-2024" / "beach.jpg").write_bytes(b"sun")
    before = tree(mine)
    (line,) = refusal(capsys, None, [], data_directory=str(mine))
    assert "photos-2024" in line and "--force" in line
    assert "moldau storage format" in refusal(capsys, str(write(tmp_path, **{"log.dirs": str(mine)})), [])[0]
    config = write(tmp_path, **{"log.dirs": str(mine)})
    for tool in ("storage", "kafka-storage"):
        done = moldau(tmp_path, tool, "format", "-t", CLUSTER_ID, "-c", str(config))
        assert done.returncode == 1 and "photos-2024" in done.stderr
    assert tree(mine) == before


def test_what_lies_beside_the_logs_stays_as_it_is(tmp_path: Path, started: list[Started]) -> None:
    """With --force the folder is used, and what is in it is still nobody's replica."""
    mine = tmp_path / "mine"
    (mine / "photos-2024").mkdir(parents=True)
    (mine / "photos-2024" / "beach.jpg").write_bytes(b"sun")
    (mine / "empty-1").mkdir()
    for arguments in (["--force"], []):
        node = Started(tmp_path, "server", "--port", "0", "--data-dir", "mine", *arguments)
        started.append(node)
        node.ready()
        assert node.stop() == 0
        assert tree(mine / "photos-2024") == {"beach.jpg": b"sun"} and tree(mine / "empty-1") == {}
        assert not list(mine.glob("*-stray"))
    assert node.errors.read_text().count("photos-2024: the directory is named like a replica") == 2


@pytest.mark.parametrize(
    "content",
    ["lost+found/", ".DS_Store", ".lock", "bootstrap.checkpoint", "__cluster_metadata-0/", "meta.properties.tmp"],
)
def test_what_a_volume_or_an_interrupted_formatting_leaves_does_not_count(tmp_path: Path, content: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if content.endswith("/"):
        (data / content).mkdir()
    else:
        (data / content).write_bytes(b"")
    done = moldau(tmp_path, "storage", "format", "-t", CLUSTER_ID, "-c", str(write(tmp_path)))
    assert done.returncode == 0, done.stderr


def test_a_metadata_log_that_lost_its_identity_is_not_formatted_over(tmp_path: Path) -> None:
    file = formatted(tmp_path)
    (tmp_path / "data" / "meta.properties").unlink()
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(exist_ok=True)
    (tmp_path / "data" / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(b"x")
    done = moldau(tmp_path, "storage", "format", "-t", CLUSTER_ID, "-c", str(file))
    assert done.returncode == 1 and "__cluster_metadata-0" in done.stderr


# Ports, and who runs already


def test_the_advice_about_a_port_that_is_taken_works_when_it_is_followed(
    tmp_path: Path, started: list[Started]
) -> None:
    first = Started(tmp_path, "server", "--port", "0", "--data-dir", "one")
    started.append(first)
    port = re.search(r":(\d+)", first.ready())
    assert port is not None
    done = moldau(tmp_path, "server", "--port", port[1], "--data-dir", "two")
    assert done.returncode == 1
    assert "cannot listen on" in done.stderr and "--port" in done.stderr and "--data-dir" in done.stderr
    second = Started(tmp_path, "server", "--port", "0", "--data-dir", "two")
    started.append(second)
    assert second.ready().startswith("moldau ready:")
    done = moldau(tmp_path, "server", "--override", f"listeners=PLAINTEXT://:{port[1]},CONTROLLER://127.0.0.1:0")
    assert done.returncode == 1
    assert f"it names all of them: PLAINTEXT://:{port[1]},CONTROLLER://127.0.0.1:0" in done.stderr


def test_a_second_up_in_a_folder_says_who_runs_there(tmp_path: Path, started: list[Started]) -> None:
    first = Started(tmp_path, "up", "--brokers", "1", "--port", "0", "--data-dir", "data", "--format", "json")
    started.append(first)
    assert json.loads(first.ready())["event"] == "ready"
    before = (tmp_path / "data" / "cluster.json").read_bytes()
    done = moldau(tmp_path, "up", "--brokers", "2", "--data-dir", "data")
    assert done.returncode == 1
    assert f"runs already, pid {first.process.pid}:" in done.stderr
    assert (tmp_path / "data" / "cluster.json").read_bytes() == before
    assert first.stop() == 0
    again = Started(tmp_path, "up", "--data-dir", "data", "--port", "4")
    started.append(again)
    assert again.ready().startswith("1 nodes are ready")
    assert "keeps the ports it had first" in again.errors.read_text()


def test_the_standard_authorizer_starts_and_its_settings_have_an_effect(tmp_path: Path, started: list[Started]) -> None:
    """Nobody but the super user may ask for anything, and it is told who was refused."""
    file = formatted(tmp_path, **{"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"})
    node = Started(tmp_path, "server", str(file))
    started.append(node)
    assert node.ready().startswith("moldau ready:")
    assert node.stop() == 0
    errors = node.errors.read_text()
    assert "background.threads (moldau.server)" in errors and "super.users" not in errors
