"""What keeps a server from starting or makes it stop: exit code 1 and one line that says why, never a traceback."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig
from moldau.node.node import Node
from moldau.server.main import run
from moldau.server.posix_disk import PosixDisk
from moldau.server.storage_format import FormatOptions, format_storage
from tests.pace import patience

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
OTHER_CLUSTER = "NkU3OEVBNTcwNTJENDM2Qk"


def values_in(folder: Path, **settings: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": f"{folder}/one,{folder}/two",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }


def write(folder: Path, **settings: str) -> str:
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values_in(folder, **settings).items()))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    format_storage(values_in(tmp_path), CLUSTER, PosixDisk(), FormatOptions(), 0)
    return tmp_path


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """The server takes over signals; the tests get theirs back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def refused(capsys: pytest.CaptureFixture[str], file: str) -> str:
    assert run(file, []) == 1
    output = capsys.readouterr()
    assert output.out == ""
    lines = [line for line in output.err.splitlines() if not line.startswith("[")]
    assert len(lines) == 1 and lines[0].startswith("moldau server: "), output.err
    assert "Traceback" not in output.err
    return lines[0]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_folder_that_was_not_formatted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "moldau storage format" in refused(capsys, write(tmp_path))


def test_one_of_two_folders_was_not_formatted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "two" / "meta.properties").unlink()
    assert f"{folder}/two" in refused(capsys, write(folder))


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_folder_of_another_node(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    change(folder / name / "meta.properties", "node.id=1", "node.id=9")
    line = refused(capsys, write(folder))
    assert f"{folder}/{name}" in line and "node id 9" in line


def test_a_folder_of_another_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder / "two" / "meta.properties", CLUSTER, OTHER_CLUSTER)
    line = refused(capsys, write(folder))
    assert CLUSTER in line and OTHER_CLUSTER in line


def test_a_copy_of_the_other_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "two" / "meta.properties").write_text((folder / "one" / "meta.properties").read_text())
    assert "directory.id" in refused(capsys, write(folder))


@pytest.mark.parametrize("name", ["one", "two"])
@pytest.mark.parametrize("content", [b"", b"version=7\n", b"node.id=x\nversion=1\ncluster.id=y\n", b"\xff\xfe\x00"])
def test_a_damaged_identity(folder: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes) -> None:
    (folder / name / "meta.properties").write_bytes(content)
    assert f"{folder}/{name}/meta.properties" in refused(capsys, write(folder))


def test_the_metadata_folder_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one").write_text("not a folder")
    assert f"{tmp_path}/one" in refused(capsys, write(tmp_path))


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "__cluster_metadata-0/quorum-state"])
def test_damaged_metadata(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = folder / "one" / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(b"{this is nothing" * 10)
    assert f"{folder}/one" in refused(capsys, write(folder))


def test_a_folder_that_is_in_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "two" / ".lock").touch()
    child = os.fork()
    if child == 0:
        PosixDisk().lock_directory(f"{folder}/two")
        (folder / "locked").touch()
        time.sleep(patience(60))
        os._exit(0)
    try:
        while not (folder / "locked").exists():
            time.sleep(0.01)
        assert "in use by another process" in refused(capsys, write(folder))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_port_that_is_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        file = write(folder, listeners=f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0")
        assert f"127.0.0.1:{port}" in refused(capsys, file)
    assert not (folder / "one" / ".lock").exists()


def test_a_configuration_that_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "num.partitions" in refused(capsys, write(folder, num_partitions="many"))
    assert "no-such-file" in refused(capsys, str(folder / "no-such-file"))


# Running and stopping


def stop_soon(after_s: float) -> None:
    threading.Timer(after_s, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()


def poll_with(monkeypatch: pytest.MonkeyPatch, action: Callable[[Node], None]) -> None:
    """Runs `action` once in the first turn after the node has become ready."""
    original = Node.poll
    done: list[bool] = []

    def poll(node: Node, now_ms: int) -> int:
        if node.is_ready and not done:
            done.append(True)
            action(node)
        return original(node, now_ms)

    monkeypatch.setattr(Node, "poll", poll)


def test_a_term_signal_ends_it_cleanly_also_while_it_starts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(folder)
    for after_s in (0.0, 0.3):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until the server has its own handler
        stop_soon(after_s)
        if after_s == 0.0:
            stop_soon(0.2)
        assert run(file, []) == 0
        assert capsys.readouterr().err == ""
        for name in ("one", "two"):
            assert (folder / name / ".kafka_cleanshutdown").exists()
            assert not (folder / name / ".lock").exists()


def test_an_error_in_the_nodes_turn_stops_the_server(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timers would stand still otherwise, and it would look alive."""

    def fail(node: Node) -> None:
        raise ZeroDivisionError("a bug")

    poll_with(monkeypatch, fail)
    started = time.monotonic()
    assert run(write(folder), []) == 1
    assert "moldau server: unexpected error: ZeroDivisionError('a bug')" in capsys.readouterr().err
    assert time.monotonic() - started < patience(5)


def test_a_metadata_log_that_fails_stops_the_server_without_a_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_away(node: Node) -> None:
        (folder / "one").rename(folder / "gone")
        node.logs.directories[0].fail(OSError(5, "Input/output error"))

    poll_with(monkeypatch, take_away)
    started = time.monotonic()
    assert run(write(folder), []) == 1
    error = capsys.readouterr().err
    assert f"moldau server: the metadata log directory {folder}/one failed" in error
    assert "Traceback" not in error
    assert time.monotonic() - started < patience(5)


def test_the_configuration_of_the_tests_is_valid(folder: Path) -> None:
    assert BrokerConfig(values_in(folder), warn=False).log_dirs == [f"{folder}/one", f"{folder}/two"]
