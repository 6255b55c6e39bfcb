"""Apache Kafka and Moldau do in transactions what the scripts show, record by record."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from tests.interop.conftest import NodeFactory, require_kafka
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import Node
from tests.interop.peers import Peer
from tests.pace import wait_until
from tests.scripts import transactions
from tests.scripts.replay import check_script
from tests.scripts.transactions.player import Player

ALL_SCRIPTS = sorted(Path(transactions.__file__).parent.glob("*.txt"))
FINALIZED = [path for path in ALL_SCRIPTS if path.stem.startswith("finalized")]
SCRIPTS = [path for path in ALL_SCRIPTS if path not in FINALIZED]
ONLY_HERE = "# Not as Apache Kafka"
TRANSACTION_PARTITIONS = 50
_numbers = itertools.count(1)


def play(node: Node, path: Path) -> None:
    peer = Peer(node)
    suffix = f".{path.stem}.{next(_numbers)}"
    try:
        peer.create(f"t{suffix}", 3)
        for key_type in (0, 1):
            wait_for_coordinators(peer, key_type, suffix)
        wait_until_loaded(peer, suffix)
        player = Player(
            peer.ask, lambda: time.sleep(0.02), lambda: int(time.time() * 1000), TRANSACTION_PARTITIONS, suffix
        )
        check_script(path, player.play)
    finally:
        peer.close()


def wait_for_coordinators(peer: Peer, key_type: int, suffix: str) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[f"x{suffix}", f"y{suffix}", f"g{suffix}"])
    wait_until(
        lambda: all(one.error_code == 0 for one in peer.ask(request, 4).coordinators), 20, "there are no coordinators"
    )


def wait_until_loaded(peer: Peer, suffix: str) -> None:
    request = DescribeTransactionsRequest([f"x{suffix}", f"y{suffix}"])
    unknown = errors.TRANSACTIONAL_ID_NOT_FOUND
    wait_until(
        lambda: all(one.error_code == unknown for one in peer.ask(request, 0).transaction_states),
        20,
        "the coordinators are not ready",
    )


@pytest.mark.parametrize("path", FINALIZED, ids=lambda path: path.stem)
def test_both_do_so_in_older_transaction_versions(start_moldau: NodeFactory, tmp_path: Path, path: Path) -> None:
    """What is finalized holds for the whole cluster, so each has one of its own."""
    play(start_moldau(), path)
    require_kafka()
    kafka = KafkaNode(tmp_path / "kafka")
    kafka.format()
    kafka.start()
    try:
        play(kafka, path)
    finally:
        kafka.stop()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_moldau_does_what_the_script_shows(moldau_server: Node, path: Path) -> None:
    play(moldau_server, path)


@pytest.mark.parametrize(
    "path", [path for path in SCRIPTS if ONLY_HERE not in path.read_text()], ids=lambda path: path.stem
)
def test_kafka_does_what_the_script_shows(oracle: KafkaNode, path: Path) -> None:
    play(oracle, path)
