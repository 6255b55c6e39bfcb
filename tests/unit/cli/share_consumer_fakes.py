"""A share consumer that is told what comes, and keeps what was said about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau.client.errors import ClientError
from moldau.client.record import ConsumerRecord
from moldau.client.results import TopicPartition
from moldau.client.share.acknowledgements import AcknowledgeType

Callback = Callable[[dict[TopicPartition, set[int]], ClientError | None], object]


def record(offset: int, value: bytes | None = b"v", key: bytes | None = None, deliveries: int = 1) -> ConsumerRecord:
    made = ConsumerRecord(
        "t", 0, offset, timestamp=1000, timestamp_type=0, key=key, value=value, headers=None, leader_epoch=0
    )
    made.delivery_count = deliveries
    return made


class FakeShareConsumer:
    """Gives the polls one after another, then nothing; poll() and commit() finish what was said before."""

    def __init__(self, *polls: list[ConsumerRecord] | BaseException, refuse: ClientError | None = None) -> None:
        self.polls = list(polls)
        self.refuse = refuse
        self.config: dict[str, Any] = {}
        self.topics: list[str] = []
        self.said: dict[int, str] = {}
        self.sent: dict[int, str] = {}
        self.closed = False
        self.interrupted = False
        self.callback: Callback | None = None
        self._given: list[ConsumerRecord] = []

    def new(self, config: dict[str, Any], on_acknowledged: Callback | None = None, **_: object) -> FakeShareConsumer:
        self.config = dict(config)
        self.callback = on_acknowledged
        return self

    def set_acknowledgement_callback(self, callback: Callback) -> None:
        self.callback = callback

    def subscribe(self, topics: Iterable[str]) -> None:
        self.topics = list(topics)

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("t", 0)]

    def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        self.commit()
        self._given = []
        if not self.polls:
            return []
        found = self.polls.pop(0)
        if isinstance(found, BaseException):
            raise found
        self._given = found
        return found

    def acknowledge(self, item: ConsumerRecord, type: AcknowledgeType) -> None:
        assert item in self._given
        self.said[int(item.offset)] = type.name

    def commit(self) -> dict[TopicPartition, ClientError | None]:
        if self.config.get("share.acknowledgement.mode") != "explicit":
            self.said |= {int(item.offset): "ACCEPT" for item in self._given}
        taken, self.said = self.said, {}
        self._given = [item for item in self._given if int(item.offset) not in taken]
        if not taken:
            return {}
        where = TopicPartition("t", 0)
        if self.refuse is None:
            self.sent |= taken
        if self.callback is not None:
            self.callback({where: set(taken)}, self.refuse)
        return {where: self.refuse}

    commit_async = commit

    def interrupt_poll(self) -> None:
        self.interrupted = True

    def close(self, timeout_ms: int = 0) -> None:
        self.sent |= self.said
        self.closed = True

    def __enter__(self) -> FakeShareConsumer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
