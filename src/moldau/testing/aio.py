"""The same for event loops: what waits is done by a thread, so that the application under test goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from moldau.testing.cluster import Broker
from moldau.testing.waiting import DEFAULT_TIMEOUT_MS, wait_for_async

if TYPE_CHECKING:
    from moldau.client import ConsumerRecord, RecordMetadata, TopicPartition
    from moldau.testing.topic import Topic

T = TypeVar("T")


class AsyncBroker:
    """A broker whose methods are coroutines; `async with` starts and ends it. Faults are methods of `broker`."""

    def __init__(self, broker: Broker | None = None, *, config: Mapping[str, str] | None = None) -> None:
        """broker: one that runs already, such as that of a fixture, and is left running."""
        self.broker = broker if broker is not None else Broker(config=config)
        self._is_own = broker is None

    async def __aenter__(self) -> AsyncBroker:
        if self._is_own:
            await asyncio.to_thread(self.broker.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_own:
            await asyncio.to_thread(self.broker.close)

    @property
    def bootstrap_servers(self) -> str:
        """The address for any client of any language: host:port."""
        return self.broker.bootstrap_servers

    async def topic(
        self, name: str | None = None, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> Topic:
        """Creates a topic, with a name of its own unless one is given."""
        return await asyncio.to_thread(self.broker.topic, name, partitions, -1, config)

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic; one that is not there is fine."""
        await asyncio.to_thread(self.broker.delete_topic, name)

    async def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]] = (),
    ) -> RecordMetadata:
        """Writes a record and waits until it is there."""
        return await asyncio.to_thread(self.broker.produce, topic, value, key, partition=partition, headers=headers)

    async def records(self, topic: str, partition: int | None = None, committed: bool = True) -> list[ConsumerRecord]:
        """All records that are in a topic now; as Broker.records()."""
        return await asyncio.to_thread(self.broker.records, topic, partition, committed)

    async def wait_for_records(
        self, topic: str, count: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> list[ConsumerRecord]:
        """Waits until at least so many records are in a topic, and returns all; WaitTimedOut otherwise."""
        return await asyncio.to_thread(self.broker.wait_for_records, topic, count, timeout_ms)

    async def wait_for_group(self, group_id: str, members: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        """Waits until a group is stable and has so many members; WaitTimedOut otherwise."""
        await asyncio.to_thread(self.broker.wait_for_group, group_id, members, timeout_ms)

    async def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """The offsets that a group has committed."""
        return await asyncio.to_thread(self.broker.committed, group_id)

    async def wait_for(
        self, condition: Callable[[], T | Awaitable[T]], timeout_ms: int = DEFAULT_TIMEOUT_MS, message: str = ""
    ) -> T:
        """Calls `condition`, which may be a coroutine function, until what it returns is true, and returns that."""
        return await wait_for_async(condition, timeout_ms, message)

    async def kill(self) -> None:
        """Ends the broker at once, as `kill -9` does; `restart()` or `heal()` brings it back with its data."""
        await asyncio.to_thread(self.broker.kill)

    async def restart(self, hard: bool = False) -> None:
        """Stops and starts the broker on the same port; `hard` kills it instead."""
        await asyncio.to_thread(self.broker.restart, hard)

    async def heal(self) -> None:
        """Ends all faults; a broker that is gone is started again."""
        await asyncio.to_thread(self.broker.heal)
