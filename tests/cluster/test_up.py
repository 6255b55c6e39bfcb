"""`moldau up`: a cluster of processes that is ready with one command, mends itself, and leaves nobody behind."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, NewTopic
from tests.cluster.cluster_nodes import is_open, wait_for
from tests.interop.nodes import MoldauNode
from tests.pace import patience, wait_until

READY_S_MAX = patience(60)


class Up:
    """The command, with its output in a file."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        environment = dict(os.environ)
        if "MOLDAU_COMMAND" not in environment:
            environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        self.log_file = folder.parent / f"{folder.name}.log"
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*MoldauNode.command(), "up", "--data-dir", str(folder), "--format", "json", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )

    def ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S_MAX)
        line = self.process.stdout.readline() if readable else b""
        assert line, f"it is not ready:\n{self.log()}"
        found: dict[str, Any] = json.loads(line)
        return found

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")[-5000:]

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(READY_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it did not stop:\n{self.log()}") from None
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def ups() -> Iterator[list[Up]]:
    started: list[Up] = []
    yield started
    for up in started:
        up.stop()


def in_sync(admin: Admin, topic: str) -> set[int]:
    """How many replicas of its partitions are in sync."""
    partitions = admin.describe_topics([topic])[topic].get().partitions.values()
    return {len(partition.in_sync_replicas) for partition in partitions}


def test_one_command_makes_a_cluster_that_mends_itself_and_stops_cleanly(tmp_path: Path, ups: list[Up]) -> None:
    up = Up(tmp_path / "data", "--brokers", "3", "--port", "0")
    ups.append(up)
    ready = up.ready()
    assert [node["roles"] for node in ready["nodes"]] == [["broker", "controller"]] * 3
    with Admin(ready["bootstrap_servers"]) as admin:
        brokers = admin.describe_cluster().brokers
        assert len(brokers) == 3
        assert {broker.rack for broker in brokers} == {socket.gethostname()}, "who is on one host falls with it"
        for outcome in admin.create_topics([NewTopic("kept", 3, 3)]).values():
            outcome.get()
        victim = ready["nodes"][1]
        os.kill(victim["pid"], signal.SIGKILL)
        wait_for(lambda: "started again" in up.log(), 10, "it is noticed", up.log)
        wait_for(lambda: is_open(victim["port"]), 30, "the node is back", up.log)
        wait_for(lambda: in_sync(admin, "kept") == {3}, 30, "it has caught up", up.log)
    pids = [node["pid"] for node in ready["nodes"]]
    assert up.stop() == 0, up.log()
    assert not any(is_alive(pid) for pid in pids)
    for node in ready["nodes"]:
        assert (Path(node["directory"]) / "data" / ".kafka_cleanshutdown").exists(), up.log()
    again = Up(tmp_path / "data", "--brokers", "4")
    ups.append(again)
    grown = again.ready()
    assert grown["cluster_id"] == ready["cluster_id"]
    assert [node["port"] for node in grown["nodes"]][:3] == [node["port"] for node in ready["nodes"]]
    assert grown["nodes"][3]["roles"] == ["broker"]
    with Admin(grown["bootstrap_servers"]) as admin:
        assert "kept" in [topic.name for topic in admin.list_topics()]
        wait_for(lambda: len(admin.describe_cluster().brokers) == 4, 20, "the new one belongs to it", again.log)


def test_controllers_of_their_own(tmp_path: Path, ups: list[Up]) -> None:
    up = Up(tmp_path / "data", "--brokers", "1", "--controllers", "1", "--port", "0")
    ups.append(up)
    ready = up.ready()
    assert [(node["node_id"], node["roles"]) for node in ready["nodes"]] == [(1, ["broker"]), (101, ["controller"])]
    with Admin(ready["bootstrap_servers"]) as admin:
        assert admin.describe_metadata_quorum().leader_id == 101
    assert up.stop() == 0, up.log()


def test_nobody_survives_a_supervisor_that_was_killed(tmp_path: Path, ups: list[Up]) -> None:
    up = Up(tmp_path / "data", "--brokers", "2", "--port", "0")
    ups.append(up)
    pids = [node["pid"] for node in up.ready()["nodes"]]
    up.process.kill()
    wait_for(lambda: not any(is_alive(pid) for pid in pids), 20, "the nodes stop as well", up.log)


def test_a_second_signal_kills_what_is_left(tmp_path: Path, ups: list[Up]) -> None:
    up = Up(tmp_path / "data", "--brokers", "1", "--port", "0")
    ups.append(up)
    (node,) = up.ready()["nodes"]
    os.kill(node["pid"], signal.SIGSTOP)
    up.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert up.process.poll() is None, "it waits for the node"

    def is_gone_after_another() -> bool:
        up.process.send_signal(signal.SIGINT)
        return up.process.poll() is not None

    wait_until(is_gone_after_another, 10, up.log, pause_s=0.3)
    assert not is_alive(node["pid"])


def test_what_cannot_start_is_said_and_not_tried_for_ever(tmp_path: Path, ups: list[Up]) -> None:
    up = Up(tmp_path / "data", "--brokers", "1", "--port", "0", "--override", "listeners=NOPE")
    ups.append(up)
    assert up.process.wait(READY_S_MAX) == 1
    assert "listener" in up.log().lower()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--brokers", "1"], "has 2 brokers"),
        (["--controllers", "3"], "--controllers"),
        (["--override", "x"], "key=value"),
    ],
)
def test_a_cluster_keeps_its_shape(tmp_path: Path, ups: list[Up], arguments: list[str], complaint: str) -> None:
    from moldau.server.local_cluster import plan_cluster, write_files

    write_files(plan_cluster(tmp_path / "data", 2, None, "127.0.0.1", 0, "M" + "A" * 21), [])
    up = Up(tmp_path / "data", *arguments)
    ups.append(up)
    assert up.process.wait(READY_S_MAX) == 1
    assert complaint in up.log()
