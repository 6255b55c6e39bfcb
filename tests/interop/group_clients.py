"""Members of groups made of other people's clients: each polls in a thread of its own, all have the same few verbs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

from tests.pace import patience

SECONDS = patience(40)
POLL_SECONDS = 0.05


class GroupClient:
    """What a member does with its client; called from the member's thread only."""

    def poll(self) -> list[tuple[int, int]]:
        """Partition and offset of each record that came."""
        raise NotImplementedError

    def assigned(self) -> set[int]:
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Confluent(GroupClient):
    """librdkafka."""

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str, instance: str | None) -> None:
        confluent_kafka: Any = import_module("confluent_kafka")
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if instance is not None:
            settings["group.instance.id"] = instance
        self.consumer = confluent_kafka.Consumer(settings)
        self.consumer.subscribe([topic])

    def poll(self) -> list[tuple[int, int]]:
        """One by one: a fatal error does not come with a batch."""
        found = []
        message = self.consumer.poll(POLL_SECONDS)
        while message is not None:
            error = message.error()
            if error is None:
                found.append((message.partition(), message.offset()))
            elif error.fatal():
                raise RuntimeError(error.str())
            message = self.consumer.poll(0)
        return found

    def assigned(self) -> set[int]:
        return {row.partition for row in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


class KafkaPython(GroupClient):
    """kafka-python."""

    STRATEGIES: ClassVar = {
        "range": ("range", "RangePartitionAssignor"),
        "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
        "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
    }

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str, instance: str | None) -> None:
        kafka: Any = import_module("kafka")
        module, name = self.STRATEGIES[strategy]
        assignor = getattr(import_module(f"kafka.coordinator.assignors.{module}"), name)
        self.consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            partition_assignment_strategy=[assignor],
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def poll(self) -> list[tuple[int, int]]:
        batches = self.consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        return [(row.partition, row.offset) for rows in batches.values() for row in rows]

    def assigned(self) -> set[int]:
        return {row.partition for row in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit()

    def close(self) -> None:
        self.consumer.close()


class Aiokafka(GroupClient):
    """aiokafka, on an event loop of the member's thread."""

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str, instance: str | None) -> None:
        aiokafka: Any = import_module("aiokafka")
        name = {"range": "RangePartitionAssignor", "roundrobin": "RoundRobinPartitionAssignor"}[strategy]
        assignor = getattr(import_module(f"aiokafka.coordinator.assignors.{strategy}"), name)
        self.loop = asyncio.new_event_loop()

        async def start() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                group_instance_id=instance,
                partition_assignment_strategy=[assignor],
                session_timeout_ms=6000,
                heartbeat_interval_ms=200,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            await consumer.start()
            return consumer

        self.consumer = self.loop.run_until_complete(start())

    def poll(self) -> list[tuple[int, int]]:
        batches = self.loop.run_until_complete(self.consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000)))
        return [(row.partition, row.offset) for rows in batches.values() for row in rows]

    def assigned(self) -> set[int]:
        return {row.partition for row in self.consumer.assignment()}

    def commit(self) -> None:
        self.loop.run_until_complete(self.consumer.commit())

    def close(self) -> None:
        self.loop.run_until_complete(self.consumer.stop())
        self.loop.close()


CLIENTS: dict[str, tuple[str, type]] = {
    "confluent": ("confluent_kafka", Confluent),
    "kafka-python": ("kafka", KafkaPython),
    "aiokafka": ("aiokafka", Aiokafka),
}


class Member(threading.Thread):
    """Polls until it is told to leave. `assigned` and `read` are what it has now, `seen` every assignment it had."""

    def __init__(self, make: Callable[[], GroupClient]) -> None:
        super().__init__(daemon=True)
        self._make = make
        self._stop_event = threading.Event()
        self._commit_asked = threading.Event()
        self._commit_done = threading.Event()
        self.assigned: set[int] = set()
        self.seen: list[set[int]] = []
        self.read: list[tuple[int, int]] = []
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            client = self._make()
            try:
                while not self._stop_event.is_set():
                    self.read += client.poll()
                    self._look(client.assigned())
                    if self._commit_asked.is_set():
                        client.commit()
                        self._commit_asked.clear()
                        self._commit_done.set()
            finally:
                client.close()
                self.assigned = set()
        except BaseException as error:
            self.failure = error

    def _look(self, assigned: set[int]) -> None:
        if assigned != self.assigned:
            self.assigned = assigned
            self.seen.append(assigned)

    def commit(self) -> None:
        """Commits what was read so far."""
        self._commit_done.clear()
        self._commit_asked.set()
        assert self._commit_done.wait(SECONDS), f"nothing was committed: {self.failure!r}"

    @property
    def has_left(self) -> bool:
        return self._stop_event.is_set()

    def leave(self) -> None:
        self._stop_event.set()
        self.join(SECONDS)
        assert not self.is_alive(), "the client does not end"


def wait_until(condition: Callable[[], bool], members: list[Member], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for member in members:
            if member.failure is not None:
                raise AssertionError(f"a member failed: {member.failure!r}") from member.failure
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen; assigned: {[member.assigned for member in members]}")


def shares(members: list[Member], partitions: int) -> bool:
    """Whether the members have all partitions between them, each exactly once and none without."""
    owned = [one for member in members for one in member.assigned]
    return sorted(owned) == list(range(partitions)) and all(member.assigned for member in members)
