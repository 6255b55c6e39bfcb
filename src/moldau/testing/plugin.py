"""The pytest plugin: fixtures for a broker, topics and clusters. It is found by pytest through its entry point.

Nothing of it is imported before a test asks for a fixture. A fault ends with its test: before the fixtures of a test
end, the broker of the session is healed, so that the next test finds it as new.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moldau.testing.cluster import Broker, Cluster
    from moldau.testing.topic import Topic

INI_CONFIG = "moldau_config"
_LOG_LINES_SHOWN = 30
_session_brokers: list[Broker] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        INI_CONFIG, "Settings of the broker of the fixture kafka_broker, one key=value a line.", "linelist", default=[]
    )


@pytest.fixture(scope="session")
def kafka_broker_config(pytestconfig: pytest.Config) -> Mapping[str, str]:
    """The settings of `kafka_broker`; override this fixture, or set `moldau_config` in the ini file."""
    found = {}
    for line in pytestconfig.getini(INI_CONFIG):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise pytest.UsageError(f"{INI_CONFIG} takes key=value, not {line!r}")
        found[key.strip()] = value.strip()
    return found


@pytest.fixture(scope="session")
def kafka_broker(kafka_broker_config: Mapping[str, str]) -> Iterator[Broker]:
    """A broker for the whole session (with xdist, for each worker), started when a test first asks for it."""
    with _started(kafka_broker_config) as broker:
        _session_brokers.append(broker)
        yield broker
        _session_brokers.remove(broker)


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_broker: Broker) -> str:
    """The address of `kafka_broker`, for any client."""
    return kafka_broker.bootstrap_servers


@pytest.fixture
def kafka_topic(kafka_broker: Broker, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A topic of this test alone, named after it and deleted after it; parametrize it indirectly for its settings."""
    from moldau.testing.looking import unique_name

    settings: dict[str, Any] = dict(getattr(request, "param", None) or {})
    with kafka_broker.topic(unique_name(request.node.name), **settings) as topic:
        yield topic


@pytest.fixture
def kafka_cluster() -> Iterator[Callable[..., Cluster]]:
    """Starts clusters: `cluster = kafka_cluster(brokers=3)`; they end with the test."""
    from moldau.testing.cluster import Cluster

    started: list[Cluster] = []

    def start(brokers: int = 3, **more: Any) -> Cluster:
        cluster = Cluster(brokers, **more)
        started.append(cluster)
        return cluster.start()

    yield start
    for cluster in started:
        cluster.close()


def _started(config: Mapping[str, str]) -> Broker:
    from moldau.testing.cluster import Broker

    return Broker(config=config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    for broker in _session_brokers:
        if not broker.is_healthy:
            broker.heal()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """A failed test shows what the brokers it used have logged."""
    outcome = yield
    report = outcome.get_result()
    if report.when != "call" or not report.failed:
        return
    for broker in _session_brokers:
        if "kafka_broker" in getattr(item, "fixturenames", ()):
            # That the machine was busy explains nothing.
            said = [line for line in broker.log.splitlines() if not line.endswith("(moldau.loop)")]
            lines = said[-_LOG_LINES_SHOWN:]
            if lines:
                report.sections.append(("the broker's log", "\n".join(lines)))
