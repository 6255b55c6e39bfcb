"""A write load with a memory: what was sent, what was acknowledged when and where, and what readers saw meanwhile.

The producer is idempotent with acks=all. Each record's value is its partition and its number there, so that a log can
be held against what was sent: everything acknowledged exactly once, at the offset it was acknowledged with, in order.
"""

from __future__ import annotations

import functools
import threading
import time
from bisect import bisect_left

from moldau.client import Consumer, Producer, RecordMetadata, TopicPartition
from tests.pace import moment_ms, patience

PADDING = b"." * 180
DELIVERY_S_MAX = round(patience(120))


def value_of(partition: int, number: int) -> bytes:
    return b"%d/%d/" % (partition, number) + PADDING


def number_of(partition: int, value: bytes) -> int:
    """The number of a record; AssertionError when the value was never sent to this partition."""
    named, number, rest = value.split(b"/", 2)
    assert int(named) == partition and rest == PADDING, f"{value[:40]!r} in partition {partition}"
    return int(number)


class PartitionLoad:
    """What was sent to one partition; the sender thread of the producer writes the acknowledgements."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.sent = 0
        self.offsets: dict[int, int] = {}
        """Number of a record: the offset it was acknowledged with."""
        self.failures: list[str] = []
        self.sent_times: list[float] = []
        self.acked_times: dict[int, float] = {}

    def on_delivery(self, number: int, metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is None:
            self.failures.append(f"record {number}: {error}")
            return
        self.offsets[number] = metadata.offset
        self.acked_times[number] = time.monotonic()

    def gap_after(self, moment: float) -> float | None:
        """How long after the moment a record was acknowledged that was sent after it; None: not yet."""
        first = bisect_left(self.sent_times, moment)
        times = [self.acked_times[n] for n in range(first, min(first + 2000, self.sent)) if n in self.acked_times]
        return min(times) - moment if times else None


class Load:
    """Writes to all partitions of a topic at a steady rate until told to stop."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        records_per_second: int = 300,
        security: dict[str, object] | None = None,
    ) -> None:
        self.topic = topic
        self.parts = [PartitionLoad(number) for number in range(partitions)]
        self._producer = self._open(bootstrap, security or {})
        self._in_use = threading.Lock()
        self._pause_s = partitions / records_per_second
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    @staticmethod
    def _open(bootstrap: str, security: dict[str, object]) -> Producer:
        return Producer(
            bootstrap,
            config={
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.timeout.ms": DELIVERY_S_MAX * 1000,
                "request.timeout.ms": moment_ms(1500),
                "max.block.ms": DELIVERY_S_MAX * 1000,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                **security,
            },
        )

    def start(self) -> None:
        self._thread.start()

    def move(self, bootstrap: str, security: dict[str, object]) -> None:
        """Goes on with another producer, like an application that is started anew with other settings."""
        with self._in_use:
            self._producer.flush(DELIVERY_S_MAX * 1000)
            self._producer.close()
            self._producer = self._open(bootstrap, security)

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._stop.is_set():
                with self._in_use:
                    for part in self.parts:
                        self._send(part)
                due = max(due + self._pause_s, time.monotonic() - 1.0)
                self._stop.wait(max(0.0, due - time.monotonic()))
        except BaseException as error:
            self._error = error

    def _send(self, part: PartitionLoad) -> None:
        number = part.sent
        part.sent_times.append(time.monotonic())
        part.sent += 1
        self._producer.send(
            self.topic,
            value_of(part.partition, number),
            partition=part.partition,
            on_delivery=functools.partial(part.on_delivery, number),
        )

    def longest_wait(self) -> float:
        """Of any record, from its first attempt to its acknowledgement."""
        return max(acked - part.sent_times[number] for part in self.parts for number, acked in part.acked_times.items())

    def gap_after(self, moment: float) -> float | None:
        """The longest wait of any partition for its first acknowledged write that was sent after the moment."""
        gaps = [part.gap_after(moment) for part in self.parts]
        known = [gap for gap in gaps if gap is not None]
        return max(known) if len(known) == len(gaps) else None

    def finish(self) -> None:
        """Stops sending and waits until everything has its answer; nothing may have failed."""
        self._stop.set()
        self._thread.join(DELIVERY_S_MAX)
        if self._error is not None:
            raise self._error
        self._producer.flush(DELIVERY_S_MAX * 1000)
        self._producer.close()
        failures = [f"{self.topic}-{part.partition} {text}" for part in self.parts for text in part.failures]
        assert not failures, f"{len(failures)} sends failed: {failures[:5]}"

    @property
    def acknowledged(self) -> int:
        return sum(len(part.offsets) for part in self.parts)


class Reader:
    """Follows the topic while faults happen and remembers which value it saw at which offset."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, security: dict[str, object] | None = None) -> None:
        self.seen: list[dict[int, int]] = [{} for _ in range(partitions)]
        self.problems: list[str] = []
        self._topic = topic
        self._open(bootstrap, security or {})

    def _open(self, bootstrap: str, security: dict[str, object]) -> None:
        """Reads on behind what it has seen."""
        config = {"request.timeout.ms": 5000, "fetch.max.wait.ms": 100, **security}
        self._consumer = Consumer(bootstrap, config=config)
        self._consumer.assign([TopicPartition(self._topic, number) for number in range(len(self.seen))])
        for number, seen in enumerate(self.seen):
            self._consumer.seek(TopicPartition(self._topic, number), next(reversed(seen)) + 1 if seen else 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def move(self, bootstrap: str, security: dict[str, object]) -> None:
        """Goes on with another consumer, like an application that is started anew with other settings."""
        self.finish()
        self._open(bootstrap, security)
        self.start()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for record in self._consumer.poll(200):
                    self._note(record.partition, record.offset, record.value or b"")
        except Exception as error:
            self.problems.append(f"the reader failed: {error!r}")
        finally:
            self._consumer.close()

    def _note(self, partition: int, offset: int, value: bytes) -> None:
        seen = self.seen[partition]
        if seen and offset <= next(reversed(seen)):
            self.problems.append(f"{partition}: offset {offset} after {next(reversed(seen))}")
        seen[offset] = number_of(partition, value)

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(patience(30))
        assert not self.problems, self.problems[:5]
