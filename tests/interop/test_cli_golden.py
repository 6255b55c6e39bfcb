"""Every transcript of Kafka's tools: ours against Moldau, ours against Apache Kafka, the real ones against Moldau.

The transcripts in tests/data/cli were recorded with the real tools against Apache Kafka; see golden.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import golden
from tests.interop.conftest import NodeFactory, require_kafka
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import Node

NAMES = sorted(path.stem for path in golden.FOLDER.glob("*.txt"))
RECORDED = Path(__file__).parents[1] / "data" / "kafka-facts" / "command-lines.txt"
# Which of the recorded command lines need what one node of this age does not have.
ELSEWHERE = (
    # A dead node of three, transactions, share groups and the topics of coordinators; kafka-dump-log has its own tests.
    r"--topic (short|down|txn|__\w+)|kafka-dump-log|verifiable-consumer|broker-loggers|--topic-list orders,txn|"
    # Replicas that one node cannot have, and what our client does not count.
    r"--replica-assignment|--print-metrics|:19299|"
    # Three nodes: tests/interop/test_cluster_tools.py.
    r"--broker-list 1,2,3|--topic move"
)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_ours_against_moldau(name: str, start_moldau: NodeFactory, work: Path) -> None:
    check(name, start_moldau(), work, golden.run_ours)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaNode]:
    """A fresh Apache Kafka: a transcript begins with an empty cluster."""
    require_kafka()
    node = KafkaNode(tmp_path / "kafka")
    node.format()
    node.start()
    yield node
    node.stop()


@pytest.mark.parametrize("name", NAMES)
def test_ours_against_kafka(name: str, kafka: KafkaNode, work: Path) -> None:
    check(name, kafka, work, golden.run_ours)


@pytest.mark.parametrize("name", NAMES)
def test_real_tools_against_moldau(name: str, start_moldau: NodeFactory, work: Path) -> None:
    require_kafka()
    tools = golden.RealTools(work)
    try:
        check(name, start_moldau(), work, tools.run)
    finally:
        tools.close()


def check(name: str, node: Node, work: Path, run: golden.Runner) -> None:
    different = golden.compare(golden.FOLDER / f"{name}.txt", node, work, run)
    assert not different, "\n\n".join(["", *different])


def test_the_transcripts_have_every_recorded_command_line() -> None:
    """What was seen of the real tools is in the transcripts, but for what one node cannot do."""
    known = {words(step.line) for name in NAMES for step in golden.read(golden.FOLDER / f"{name}.txt")}
    recorded = [line for line in RECORDED.read_text().splitlines() if line.startswith("$ ")]
    missing = [line for line in recorded if words(line[2:]) not in known and not re.search(ELSEWHERE, line)]
    assert len(recorded) > 100
    assert not missing, "\n".join(["", *missing])


def words(line: str) -> tuple[str, ...]:
    """The line without amounts and times, which a short test and one node have others of."""
    plain = re.sub(r" --max-messages \d+| --print-metrics", "", line)
    return tuple(shlex.split(re.sub(r"\d+", "N", plain)))
