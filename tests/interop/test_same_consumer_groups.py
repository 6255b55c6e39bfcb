"""Moldau and Apache Kafka treat the members of consumer groups alike: the scripts are true of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import new_node, require_kafka, stop_cleanly
from tests.interop.consumer_group_scripts import play_live, script
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.peers import Peer
from tests.scripts import consumer_groups

SCRIPTS = [
    path
    for path in sorted(Path(consumer_groups.__file__).parent.glob("*.txt"))
    if "Apache Kafka does the same." in path.read_text()
]

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    require_kafka()
    node = KafkaNode(tmp_path_factory.mktemp("kafka-consumer-groups"), SETTINGS)
    node.format()
    node.start()
    peer = Peer(node)
    yield peer
    peer.close()
    stop_cleanly(node)


@pytest.fixture(scope="module")
def moldau(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    node = new_node(tmp_path_factory.mktemp("moldau-consumer-groups"), SETTINGS)
    node.start()
    peer = Peer(node)
    yield peer
    peer.close()
    stop_cleanly(node)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_true_of_apache_kafka(kafka: Peer, path: Path) -> None:
    assert play_live(kafka, path.stem, script(path)) == script(path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_true_of_a_running_moldau(moldau: Peer, path: Path) -> None:
    assert play_live(moldau, path.stem, script(path)) == script(path)
