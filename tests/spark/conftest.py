"""Fixtures of the Spark tests: one Spark session, a running Moldau, a running Apache Kafka, and topics with records.

They skip, saying why, where pyspark or Java is missing. MOLDAU_SPARK=brief leaves out what is asked of Apache Kafka a
second time and what takes long, for the run that each change gets. Jars that a test wants in the session (Spark's own
Kafka connector) come from `tests/spark/connector.py`.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop import kafka_oracle
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import MoldauNode, Node
from tests.interop.secured import SecuredKafka
from tests.interop.secured import missing as secured_missing

_numbers = itertools.count(1)


# What `make spark` runs and the run for every change does not: the same questions to Apache Kafka, but for two.
THOROUGH = re.compile(
    r"(?<!sparks_connector)(?<!every_record_once)\[kafka|test_sink_kills|test_declarative|test_connector_against_moldau"
    r"|test_secured_kafka|timeouts|test_stream_read.*(created_again|own_connector|another_topic)|test_write.*at-least-once"
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("MOLDAU_SPARK") == "brief":
        left_out = [item for item in items if "spark" in item.path.parts and THOROUGH.search(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def missing() -> str | None:
    """Why Spark cannot run here; None when it can."""
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is missing: pip install 'moldau[spark]'"
    return None if shutil.which("java") else "Java is missing: install a Java 17 (or newer) runtime and put it on PATH"


def connector_jars() -> list[str]:
    """Spark's own Kafka connector, where its jars can be had."""
    try:
        from tests.spark import connector
    except ImportError:
        return []
    return [str(path) for path in connector.jars()]


def worker_environment() -> dict[str, str]:
    """What Spark's Python processes need to find this build of Moldau: the same Python and the same path."""
    paths = [entry for entry in sys.path if entry]
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session on two local threads for all tests."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    os.environ.update(worker_environment())
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("moldau-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.streaming.pollingDelay", "20ms")
    )
    jars = connector_jars()
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def moldau_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One Moldau for all tests that create topics of their own and leave the rest alone."""
    yield from running(MoldauNode(tmp_path_factory.mktemp("moldau")))


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A real Apache Kafka with the same settings."""
    reason = kafka_oracle.missing()
    if reason:
        pytest.skip(reason)
    yield from running(KafkaNode(tmp_path_factory.mktemp("kafka")))


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A real Apache Kafka with a listener for each kind of TLS and SASL: a `SecuredKafka`."""
    reason = secured_missing()
    if reason:
        pytest.skip(reason)
    yield from running(SecuredKafka(tmp_path_factory.mktemp("secured")))


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[Node]:
    """A Moldau for one test alone, which may stop and start it."""
    yield from running(MoldauNode(tmp_path / "node"))


def running(node: Node) -> Iterator[Node]:
    node.format()
    node.start()
    yield node
    if node.process is not None:
        node.stop()


@pytest.fixture(params=["moldau", "kafka"])
def node(request: pytest.FixtureRequest) -> Node:
    """Moldau, and Apache Kafka where it can be had."""
    found: Node = request.getfixturevalue(f"{request.param}_node")
    return found


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"spark-{os.getpid()}-{next(_numbers)}"
