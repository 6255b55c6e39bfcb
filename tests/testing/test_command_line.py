"""Tools and nodes as a person starts and ends them, against a broker for tests."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from moldau.testing import Broker, wait_for
from tests.pace import patience, patience_ms
from tests.testing.runs import environment

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def moldau(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "moldau", *arguments]


def test_a_member_that_is_told_to_stop_commits_what_it_printed(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic()
    broker.produce_many(topic, ["1", "2", "3"])
    printed = tmp_path / "printed"
    with printed.open("wb") as file:
        consumer = subprocess.Popen(
            moldau("consume", topic, "-b", broker.bootstrap_servers, "--group", "g", "--from-beginning", "--follow"),
            stdout=file,
            env=environment(),
        )
    try:
        wait_for(lambda: len(printed.read_text().splitlines()) == 3, timeout_ms=patience_ms(120_000))
        consumer.send_signal(signal.SIGTERM)
        assert consumer.wait(patience(60)) == 143
    finally:
        consumer.kill()
        consumer.wait()
    assert list(broker.committed("g").values()) == [3]


def test_a_folder_that_cannot_be_used_is_named_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run(
        moldau("server", "--port", "0", "--data-dir", str(tmp_path / "file" / "data")),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=patience(120),
    )
    assert done.returncode == 1
    assert "Errno" not in done.stderr and "Choose another directory with --data-dir" in done.stderr


def test_start_and_stop_are_told_with_their_time(tmp_path: Path) -> None:
    node = subprocess.Popen(
        moldau("server", "--port", "0", "--data-dir", str(tmp_path / "data")),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert node.stdout is not None
        assert re.fullmatch(rf"moldau ready: node 1 on \S+ \(\d+ ms\), {TIME}\n", node.stdout.readline())
        node.send_signal(signal.SIGTERM)
        said, _ = node.communicate(timeout=patience(120))
    finally:
        node.kill()
    assert re.fullmatch(rf"moldau stopped: node 1, {TIME}\n", said)
    assert node.returncode == 0


def test_a_node_whose_output_nobody_reads_any_more_ends_well(tmp_path: Path) -> None:
    node = subprocess.Popen(
        moldau("server", "--port", "0", "--data-dir", str(tmp_path / "data")),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert node.stdout is not None and node.stderr is not None
        node.stdout.readline()
        node.stdout.close()
        node.send_signal(signal.SIGTERM)
        assert node.wait(patience(120)) == 0
        assert "BrokenPipe" not in node.stderr.read()
    finally:
        node.kill()
        node.stderr.close()


def test_start_and_stop_are_logged_where_asked(tmp_path: Path) -> None:
    node = subprocess.Popen(
        moldau("server", "--port", "0", "--data-dir", str(tmp_path / "data"), "--log-level", "info"),
        env={**environment(), "MOLDAU_STOP_AT_END_OF_STDIN": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert node.stdout is not None and node.stdout.readline().startswith("moldau ready: node 1 on")
        node.send_signal(signal.SIGTERM)
        _, said = node.communicate(timeout=patience(120))
    finally:
        node.kill()
    assert node.returncode == 0
    for words in ("node 1 is ready on", "node 1 is stopping", "node 1 has stopped"):
        assert words in said
