"""Small values that the client hands out: topic partitions, record metadata, per-item outcomes."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from moldau.client.errors import ClientError

T = TypeVar("T")

Headers = list[tuple[str, bytes | None]]


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RecordMetadata(NamedTuple):
    """Where a produced record went; the offset is -1 when the broker did not say (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class OffsetAndTimestamp(NamedTuple):
    """An offset found by a time, the timestamp of its record (-1: none) and its leader epoch."""

    offset: int
    timestamp: int
    leader_epoch: int


class OffsetAndMetadata(NamedTuple):
    """A committed offset with the committer's remark; leader epoch -1: not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class ConsumerGroupMetadata(NamedTuple):
    """A consumer's place in its group, for offsets that are committed in a transaction (KIP-447)."""

    group_id: str
    # Of the classic protocol; the member epoch in that of KIP-848. -1: not a member.
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class PreparedTransaction(NamedTuple):
    """A transaction that an outside coordinator decides on (KIP-939); str() and parse() carry it there and back."""

    producer_id: int
    producer_epoch: int

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.producer_epoch}"

    @staticmethod
    def parse(text: str) -> PreparedTransaction:
        """Reads what str() of a prepared transaction wrote."""
        first, colon, second = text.partition(":")
        if not colon or not first.lstrip("-").isdigit() or not second.lstrip("-").isdigit():
            raise ValueError(f"{text!r} is no prepared transaction: it is written as producer id:epoch.")
        return PreparedTransaction(int(first), int(second))


class Outcome(Generic[T]):
    """What became of one item of a request: a value or an error, never both.

    get() is the value or raises the error; error is None where all went well. Items of one request succeed and fail on
    their own, so a method returns one outcome per item and raises only when nothing could be asked.
    """

    __slots__ = ("_value", "error")

    def __init__(self, value: T | None = None, error: ClientError | None = None) -> None:
        self._value = value
        self.error = error

    def get(self) -> T:
        """The value, or the item's error raised."""
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Outcome(error={self.error!r})" if self.error is not None else f"Outcome({self._value!r})"
