"""The `moldau` command as a process, against a running broker: Moldau, or Apache Kafka with MOLDAU_INTEROP_SELF=1."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.cli import SECONDS_MAX, Cli
from tests.interop.nodes import HOST, Node, free_ports
from tests.pace import patience


@pytest.fixture
def cli(moldau_server: Node, tmp_path: Path) -> Cli:
    return Cli(moldau_server, tmp_path)


def test_a_topic_lives_from_create_to_delete(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "3", "-r", "1", "-c", "retention.ms=86400000")
    assert topic in cli.ok("topic", "list", "-q").decode().split()
    (described,) = json.loads(cli.ok("topic", "describe", topic, "--format", "json"))
    assert [row["leader"] for row in described["partitions"]] == [1, 1, 1]
    assert {"name": "retention.ms", "value": "86400000", "source": "topic"} in described["configs"]
    code, _, err = cli.run("topic", "create", topic)
    assert code == 1 and "already exists" in err
    cli.ok("topic", "delete", topic)
    assert topic not in cli.ok("topic", "list", "-q").decode().split()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back_as_they_went_in(cli: Cli, topic: str, codec: str) -> None:
    cli.ok("topic", "create", topic, "-p", "4")
    lines = [f"key-{number}:value {number}" for number in range(2000)]
    cli.ok("produce", topic, "-K", ":", "-z", codec, "-H", "trace=1", stdin="\n".join(lines).encode() + b"\n")
    printed = cli.ok("consume", topic, "-f", "%k:%s\\n").decode().splitlines()
    assert sorted(printed) == sorted(lines)
    assert cli.ok("consume", topic, "-n", "1", "-f", "%h") == b"trace=1"


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(cli: Cli, topic: str, acks: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    cli.ok("produce", topic, "--acks", acks, stdin=b"a\nb\n")
    deadline = time.monotonic() + patience(10)
    while cli.ok("consume", topic) != b"a\nb\n":
        assert time.monotonic() < deadline


def test_offsets_partitions_counts_and_times(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "2")
    records = "".join(json.dumps({"value": str(n), "partition": 0, "timestamp": 1000 + n}) + "\n" for n in range(10))
    cli.ok("produce", topic, "-f", "json", stdin=records.encode())
    assert cli.ok("consume", topic, "-o", "7") == b"7\n8\n9\n"
    assert cli.ok("consume", topic, "-o", "-2") == b"8\n9\n"
    assert cli.ok("consume", topic, "-o", "end") == b""
    assert cli.ok("consume", topic, "-o", "@1004", "-n", "2") == b"4\n5\n"
    assert cli.ok("consume", topic, "-p", "1") == b""
    code, _, err = cli.run("consume", topic, "-p", "7")
    assert code == 1 and "no partition 7" in err


def test_nulls_bytes_and_headers_survive_as_json(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    record = {"key": {"base64": "/wA="}, "value": None, "headers": [{"name": "n", "value": None}]}
    cli.ok("produce", topic, "-f", "json", stdin=json.dumps(record).encode())
    (line,) = cli.ok("consume", topic, "-f", "json").splitlines()
    found = json.loads(line)
    assert {name: found[name] for name in record} == record


def test_follow_shows_what_arrives_and_ctrl_c_is_quiet(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    reader = cli.start("consume", topic, "--follow")
    assert reader.stdout is not None
    for line in (b"one\n", b"two\n"):
        cli.ok("produce", topic, stdin=line)
        assert reader.stdout.readline() == line
    reader.send_signal(signal.SIGINT)
    _, err = reader.communicate(timeout=SECONDS_MAX)
    assert reader.returncode == 130 and err == b""


def test_a_closed_pipe_is_quiet(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    cli.ok("produce", topic, stdin=b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 20_000)
    reader = cli.start("consume", topic)
    assert reader.stdout is not None and reader.stderr is not None
    assert reader.stdout.readline().startswith(b"x")
    reader.stdout.close()
    assert reader.wait(SECONDS_MAX) == 141
    assert reader.stderr.read() == b""


def test_lines_typed_one_by_one_are_sent_one_by_one(cli: Cli, topic: str) -> None:
    cli.ok("topic", "create", topic, "-p", "1")
    writer = cli.start("produce", topic)
    assert writer.stdin is not None
    writer.stdin.write(b"first\n")
    writer.stdin.flush()
    deadline = time.monotonic() + patience(20)
    while cli.ok("consume", topic) != b"first\n":
        assert time.monotonic() < deadline, "the first line waits for the second"
    writer.communicate(b"", SECONDS_MAX)
    assert writer.returncode == 0


def test_what_does_not_exist_is_told_in_a_sentence(cli: Cli) -> None:
    for command in (("topic", "describe", "no-such"), ("topic", "delete", "no-such"), ("consume", "no-such")):
        code, _, err = cli.run(*command)
        assert code == 1 and "Topic no-such does not exist." in err
    code, _, err = cli.run("topic", "create", "not/a/name")
    assert code == 1 and "is invalid" in err
    code, _, err = cli.run("topic", "create", "fine", "-c", "no.such.config=1")
    assert code == 1 and "no.such.config" in err


def test_nobody_and_nobody_useful_at_the_address(cli: Cli) -> None:
    (port,) = free_ports(1)
    code, _, err = cli.run("topic", "list", "-b", f"{HOST}:{port}")
    assert code == 1 and "Connection refused" in err and "--bootstrap-server" in err

    def web(peer: socket.socket) -> None:
        peer.recv(100)
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with serving(web) as where:
        code, _, err = cli.run("topic", "list", "-b", where)
    assert code == 1 and "does not speak Kafka's protocol" in err


class serving:
    """Listens on loopback; each connection is handed to a function and closed."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self.listener = socket.create_server((HOST, 0))
        self.behave = behave

    def __enter__(self) -> str:
        threading.Thread(target=self.serve, daemon=True).start()
        return f"{HOST}:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                self.behave(peer)

    def __exit__(self, *ignored: object) -> None:
        os.close(self.listener.detach())
