"""Real brokers for tests of applications that use Kafka: one or several, in half a second, with faults as methods.

`with Broker() as broker` gives an address that any client can use. The pytest plugin has them as fixtures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.testing.aio import AsyncBroker
    from moldau.testing.case import KafkaTestMixin
    from moldau.testing.cluster import Broker, Cluster
    from moldau.testing.errors import BrokerNotStarted, NotRunning, TestingError, WaitTimedOut
    from moldau.testing.faults import Fault
    from moldau.testing.node import Node
    from moldau.testing.topic import Topic
    from moldau.testing.waiting import wait_for, wait_for_async

__all__ = [
    "AsyncBroker",
    "Broker",
    "BrokerNotStarted",
    "Cluster",
    "Fault",
    "KafkaTestMixin",
    "Node",
    "NotRunning",
    "TestingError",
    "Topic",
    "WaitTimedOut",
    "wait_for",
    "wait_for_async",
]

_HOME = {
    "AsyncBroker": "aio",
    "Broker": "cluster",
    "BrokerNotStarted": "errors",
    "Cluster": "cluster",
    "Fault": "faults",
    "KafkaTestMixin": "case",
    "Node": "node",
    "NotRunning": "errors",
    "TestingError": "errors",
    "Topic": "topic",
    "WaitTimedOut": "errors",
    "wait_for": "waiting",
    "wait_for_async": "waiting",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
