"""Where a container keeps its properties and its data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moldau.cli.container import layout
from moldau.cli.container.commands import main
from moldau.cli.container.layout import ROOT_VARIABLE, find_layout


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("opt/kafka/config", "etc/kafka", "var/lib/kafka/data", "dev/shm", "tmp"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    monkeypatch.setattr(layout.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    return tmp_path


def test_each_image_has_its_own_file(root: Path) -> None:
    assert find_layout("apache").path_to_write() == root / "opt/kafka/config/server.properties"
    assert find_layout("confluent").path_to_write() == root / "etc/kafka/kafka.properties"
    with pytest.raises(ValueError, match="no layout 'other'"):
        find_layout("other")


def test_on_a_read_only_root_the_file_goes_where_one_can_write(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tmpfs if there is one, shared memory or the data's volume otherwise; `launch` looks there too."""
    found = find_layout("apache")
    closed = {found.properties}
    monkeypatch.setattr(layout, "_can_write", lambda path: path not in closed)
    place = found.path_to_write()
    assert place == root / "tmp/.moldau-apache.properties"
    assert found.path_to_read() == found.properties, "nothing was written there yet"
    found.properties.write_text("")
    os.utime(found.properties, (1, 1))
    place.write_text("")
    assert found.path_to_read() == place
    monkeypatch.setattr(layout, "_can_write", lambda path: True)
    assert found.path_to_read() == place, "another user asks"
    monkeypatch.setattr(layout, "_can_write", lambda path: path not in closed)
    closed |= {place, root / "dev/shm/.moldau-apache.properties"}
    assert found.path_to_write() == root / "var/lib/kafka/data/.moldau-apache.properties"


def test_a_volume_at_apaches_place_is_used(root: Path) -> None:
    assert find_layout("apache").default_data() == root / "var/lib/kafka/data"
    (root / "tmp/kraft-combined-logs").mkdir()
    assert find_layout("apache").default_data() == root / "tmp/kraft-combined-logs"
    assert find_layout("confluent").default_data() == root / "var/lib/kafka/data"


def test_health_of_a_node_that_is_not_there(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health"]) == 1
    assert capsys.readouterr().err == "The node is not configured yet.\n"
    assert main(["frobnicate"]) == 2


def test_brokers_that_do_not_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka-ready", "-b", "127.0.0.1:1", "1", "0.1"]) == 1
    assert capsys.readouterr().err.startswith("Not ready after 0.1 s: ")
    assert main(["zk-ready", "zookeeper:2181", "40"]) == 0


def test_a_quorum_of_others_is_not_begun_anew(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that names other bootstrap servers must not become a cluster of its own."""
    monkeypatch.setenv("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw")
    text = (
        "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        "controller.listener.names=CONTROLLER\nlog.dirs={data}\ncontroller.quorum.bootstrap.servers={servers}\n"
    )
    file = root / "etc/kafka/kafka.properties"
    file.write_text(text.format(data=root / "var/lib/kafka/data", servers="one:9093,two:9093,three:9093"))
    assert main(["ensure", "confluent"]) == 1
    assert "Set KAFKA_CONTROLLER_QUORUM_VOTERS" in capsys.readouterr().err
    file.write_text(text.format(data=root / "var/lib/kafka/data", servers="localhost:9093"))
    assert main(["ensure", "confluent"]) == 0
    assert "Formatting dynamic metadata voter directory" in capsys.readouterr().out
    assert main(["ensure", "confluent"]) == 0
    monkeypatch.setenv("CLUSTER_ID", "MkU3OEVBNTcwNTJENDM2Qg")
    assert main(["ensure", "confluent"]) == 1
    assert "Invalid cluster.id" in capsys.readouterr().err
