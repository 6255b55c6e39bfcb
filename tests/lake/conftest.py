"""What the lake's tests share: a running Moldau, and records whose values tell where they belong.

They are left out where the packages of moldau[spark] are missing. Each change gets a small form, with one format
where all three take the same way; MOLDAU_LAKE=thorough runs all of them.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic, Producer
from tests.interop.nodes import RECENT_MS, MoldauNode

NEEDED = ("pyarrow", "deltalake", "pyiceberg", "sqlalchemy", "pyspark")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

# Modules that import these packages at the top cannot even be collected without them.
collect_ignore_glob = ["test_*.py"] if MISSING else []

_numbers = itertools.count(1)

# Formats differ in their commits, which test_commits.py looks at; the rest is the same for all of them.
THOROUGH = re.compile(
    r"test_(maintenance|load|kills|spark).*\[(iceberg|parquet)"
    r"|test_changelog.*(optimized_meanwhile|columns_of_changes)"
    r"|test_from_kafka|test_commits.*snapshots_shorten|test_many_kills|test_a_driver_and_a_worker_are_killed"
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("MOLDAU_LAKE") != "thorough" and not os.environ.get("MOLDAU_LAKE_SPARK_KILLS"):
        left_out = [item for item in items if "lake" in item.path.parts and THOROUGH.search(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoldauNode]:
    """A Moldau of one node that all tests of this folder share; each has topics of its own."""
    started = MoldauNode(tmp_path_factory.mktemp("moldau"))
    started.format()
    started.start()
    yield started
    started.kill()


class Topic:
    """A topic and what was sent to it: record n of a partition has the key kP-n and the value vP-n…"""

    def __init__(self, bootstrap: str, name: str, partitions: int) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.sent = [0] * partitions

    def send(self, count: int, size: int = 20) -> None:
        """So many more records to each partition, one a second from an hour ago."""
        with Producer(self.bootstrap) as producer:
            for partition, first in enumerate(self.sent):
                for number in range(first, first + count):
                    producer.send(
                        self.name,
                        value_of(partition, number, size),
                        b"k%d-%d" % (partition, number),
                        partition=partition,
                        timestamp_ms=RECENT_MS + number * 1000,
                        headers=[("n", b"%d" % number)],
                    )
                self.sent[partition] = first + count
            producer.flush()

    def expected(self) -> list[tuple[int, bytes]]:
        """(partition, key) of every record, in order."""
        return sorted((p, b"k%d-%d" % (p, n)) for p, count in enumerate(self.sent) for n in range(count))


def value_of(partition: int, number: int, size: int) -> bytes:
    return (b"v%d-%d|" % (partition, number)).ljust(size, b"x")


@pytest.fixture
def make_topic(node: MoldauNode) -> Callable[..., Topic]:
    def make(partitions: int = 2, **configs: str) -> Topic:
        name = f"topic{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with Admin(node.bootstrap) as admin:
            for outcome in admin.create_topics([NewTopic(name, partitions, 1, configs=settings)]).values():
                outcome.get()
        return Topic(node.bootstrap, name, partitions)

    return make


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


MakeTopic = Callable[..., Topic]
