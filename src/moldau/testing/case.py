"""A broker for unittest: one for all test classes of a run, a topic for each test."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.testing.cluster import Broker
from moldau.testing.looking import unique_name
from moldau.testing.topic import Topic

_lock = threading.Lock()
_brokers: dict[frozenset[tuple[str, str]], Broker] = {}


class KafkaTestMixin:
    """`class TestOrders(KafkaTestMixin, unittest.TestCase)`: self.broker, self.bootstrap_servers, self.new_topic().

    Test classes with the same `kafka_config` share a broker, which ends with the process.
    """

    kafka_config: ClassVar[Mapping[str, str]] = {}
    broker: ClassVar[Broker]

    @classmethod
    def setUpClass(cls) -> None:
        """Finds or starts the broker of these settings."""
        super().setUpClass()  # type: ignore[misc]
        cls.broker = shared_broker(cls.kafka_config)

    def setUp(self) -> None:
        """Heals the broker where the test before left a fault, and will do so after this one."""
        case: Any = self
        if not self.broker.is_healthy:
            self.broker.heal()
        case.addCleanup(self._heal)
        super().setUp()  # type: ignore[misc]

    @property
    def bootstrap_servers(self) -> str:
        """The address for any client of any language: host:port."""
        return self.broker.bootstrap_servers

    def new_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> Topic:
        """A topic of this test alone, deleted at its end."""
        case: Any = self
        topic = self.broker.topic(unique_name(case.id()), partitions, config=config)
        case.addCleanup(topic.delete)
        return topic

    def _heal(self) -> None:
        if not self.broker.is_healthy:
            self.broker.heal()


def shared_broker(config: Mapping[str, str]) -> Broker:
    """The broker of this process with these settings, started when it is first wanted."""
    key = frozenset((str(name), str(value)) for name, value in config.items())
    with _lock:
        broker = _brokers.get(key)
        if broker is None:
            broker = _brokers[key] = Broker(config=config).start()
            atexit.register(broker.close)
        return broker
