"""One broker for the tests of a module; a test that leaves a fault behind does not spoil the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.heal()
