"""What a test asks a cluster and puts into it, by Moldau's own client and past all faults on the way."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from moldau.testing.errors import NotRunning
from moldau.testing.topic import Topic
from moldau.testing.waiting import DEFAULT_TIMEOUT_MS, wait_for

if TYPE_CHECKING:
    from moldau.client import Admin, ConsumerRecord, Producer, RecordMetadata, TopicPartition

T = TypeVar("T")

CLIENT_ID = "moldau-testing"
NAME_CHARACTERS_MAX = 200
HELPER_TIMEOUT_MS = 30_000
POLL_MS = 100


class ClientMethods:
    """Topics, records and groups of a cluster. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._admin: Admin | None = None
        self._producer: Producer | None = None

    def _direct_servers(self) -> str:
        """The addresses that no fault stands before; NotRunning when there are none."""
        raise NotImplementedError

    # Topics

    def topic(
        self,
        name: str | None = None,
        partitions: int = 1,
        replication_factor: int = -1,
        config: Mapping[str, str] | None = None,
    ) -> Topic:
        """Creates a topic, with a name of its own unless one is given; a context manager that deletes it."""
        from moldau.client import NewTopic

        chosen = name or unique_name("topic")
        new = NewTopic(str(chosen), partitions, replication_factor, dict(config or {}))
        self._with_admin(lambda admin: admin.create_topics([new])[new.name].get())
        return Topic.of(chosen, partitions, self)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic; one that is not there is fine."""
        from moldau.client.errors import ClientError
        from moldau.protocol.errors import UNKNOWN_TOPIC_OR_PARTITION

        try:
            self._with_admin(lambda admin: admin.delete_topics([str(name)])[str(name)].get())
        except ClientError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise

    def topics(self) -> list[str]:
        """The names of all topics that are not the cluster's own."""
        return sorted(
            topic.name for topic in self._with_admin(lambda admin: admin.list_topics()) if not topic.is_internal
        )

    # Records

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]] = (),
    ) -> RecordMetadata:
        """Writes a record and waits until it is there."""
        given = dict(headers) if isinstance(headers, Mapping) else list(headers)
        with self._lock:
            sent = self._writer().send(str(topic), value, key, partition=partition, headers=given)
        return sent.result(HELPER_TIMEOUT_MS)

    def produce_many(self, topic: str, values: Iterable[bytes | str | None]) -> list[RecordMetadata]:
        """Writes a record for each value, and waits until all are there."""
        with self._lock:
            sent = [self._writer().send(str(topic), value) for value in values]
        return [each.result(HELPER_TIMEOUT_MS) for each in sent]

    def records(self, topic: str, partition: int | None = None, committed: bool = True) -> list[ConsumerRecord]:
        """All records that are in a topic now, in the order of their timestamps and offsets; none when it is not there.

        committed: leaves out what transactions have aborted or not finished.
        """
        from moldau.client import Consumer

        isolation = "read_committed" if committed else "read_uncommitted"
        found: list[ConsumerRecord] = []
        with Consumer(
            self._direct_servers(),
            client_id=CLIENT_ID,
            isolation_level=isolation,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
            default_api_timeout_ms=HELPER_TIMEOUT_MS,
        ) as consumer:
            wanted = [each for each in self._partitions(topic) if partition is None or each.partition == partition]
            if not wanted:
                return []
            ends = consumer.end_offsets(wanted)
            consumer.assign(wanted)
            consumer.seek_to_beginning()
            deadline = time.monotonic() + HELPER_TIMEOUT_MS / 1000
            while any(consumer.position(each) < ends[each] for each in wanted):
                found += consumer.poll(POLL_MS)
                if time.monotonic() > deadline:
                    raise NotRunning(f"{topic} could not be read to its end within {HELPER_TIMEOUT_MS // 1000} s")
        kept = (record for record in found if record.offset < ends[_partition_of(record)])
        return sorted(kept, key=lambda record: (record.timestamp, record.partition, record.offset))

    def wait_for_records(
        self, topic: str, count: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> list[ConsumerRecord]:
        """Waits until at least so many records are in a topic, and returns all."""
        found: list[ConsumerRecord] = []

        def enough() -> bool:
            found[:] = self.records(topic)
            assert len(found) >= count, f"{len(found)} are there: {[record.value for record in found[:5]]}"
            return True

        wait_for(enough, timeout_ms, f"{count} records in {topic}")
        return found

    # Groups

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """The offsets that a group has committed."""
        listed = self._with_admin(lambda admin: admin.list_consumer_group_offsets({group_id: None})[group_id].get())
        found = {partition: outcome.get() for partition, outcome in listed.items()}
        return {partition: committed.offset for partition, committed in found.items() if committed is not None}

    def wait_for_group(self, group_id: str, members: int = 1, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> None:
        """Waits until a group is stable and has so many members, so that what is written now is read by them."""
        from moldau.client.errors import ClientError

        def stable() -> bool:
            try:
                found = self._with_admin(lambda admin: admin.describe_consumer_groups([group_id])[group_id].get())
            except ClientError as error:
                raise AssertionError(str(error)) from None
            state = str(found.state)
            assert state.lower() == "stable" and len(found.members) >= members, f"{state}, {len(found.members)} members"
            return True

        wait_for(stable, timeout_ms, f"group {group_id} with {members} members")

    def wait_for(self, condition: Callable[[], T], timeout_ms: int = DEFAULT_TIMEOUT_MS, message: str = "") -> T:
        """Calls `condition` until what it returns is true, and returns that."""
        return wait_for(condition, timeout_ms, message)

    # The clients behind it

    def admin(self) -> Admin:
        """An admin client of your own, past all faults; close it."""
        from moldau.client import Admin

        return Admin(
            self._direct_servers(),
            client_id=CLIENT_ID,
            default_api_timeout_ms=HELPER_TIMEOUT_MS,
            request_timeout_ms=HELPER_TIMEOUT_MS,
        )

    def _with_admin(self, ask: Callable[[Admin], T]) -> T:
        with self._lock:
            self._direct_servers()  # says so at once when nobody is there to ask
            if self._admin is None:
                self._admin = self.admin()
            return ask(self._admin)

    def _writer(self) -> Producer:
        from moldau.client import Producer

        servers = self._direct_servers()
        if self._producer is None:
            self._producer = Producer(servers, client_id=CLIENT_ID, delivery_timeout_ms=HELPER_TIMEOUT_MS, linger_ms=0)
        return self._producer

    def _partitions(self, topic: str) -> list[TopicPartition]:
        from moldau.client import TopicPartition

        listed = self._with_admin(lambda admin: admin.list_topics())
        found = next((each for each in listed if each.name == topic), None)
        return [] if found is None else [TopicPartition(found.name, index) for index in sorted(found.partitions)]

    def _close_clients(self) -> None:
        with self._lock:
            admin, self._admin = self._admin, None
            producer, self._producer = self._producer, None
        if admin is not None:
            admin.close()
        if producer is not None:
            producer.close(0)


def _partition_of(record: ConsumerRecord) -> TopicPartition:
    from moldau.client import TopicPartition

    return TopicPartition(record.topic, record.partition)


def unique_name(what: str) -> str:
    """A name for a topic or group that nobody else has, made of what it is for."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", what).strip("-")[-NAME_CHARACTERS_MAX:].strip("-")
    return f"{plain or 'topic'}-{os.urandom(4).hex()}"
