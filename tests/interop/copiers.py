"""Copiers as processes that are killed and started again, and a reader that follows what they have committed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from moldau.client import Consumer, Producer, TopicPartition
from tests.interop.kafka_oracle import java_command
from tests.pace import patience


def value_of(partition: int, number: int) -> bytes:
    return b"%d/%d" % (partition, number)


def fill(bootstrap: str, topic: str, partitions: int, records: int) -> None:
    """Numbered records, as many for each partition."""
    with Producer(bootstrap, config={"acks": "all", "linger.ms": 5}) as producer:
        sent = [
            producer.send(topic, value_of(partition, number), partition=partition)
            for number in range(records // partitions)
            for partition in range(partitions)
        ]
        producer.flush()
    assert all(future.exception(0) is None for future in sent)


class Copier:
    """One process that copies a topic, or one partition of it, into the topic with `-copy` behind its name."""

    def __init__(self, name: str, places: list[TopicPartition], command: list[str], log_file: Path, ends: bool) -> None:
        self.name = name
        # The partitions that it writes to.
        self.places = places
        self._command = command
        self._log_file = log_file
        self._ends = ends
        self._process: subprocess.Popen[bytes] | None = None
        self.lives = 0
        self.finished = False

    def start(self) -> None:
        self.lives += 1
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def tend(self) -> None:
        """Starts it again if it died; one that ends when there is nothing left to copy may end once."""
        if self.finished or (self._process is not None and self._process.poll() is None):
            return
        if self._ends and self._process is not None and self._process.returncode == 0:
            self.finished = True
        else:
            self.start()

    def output(self) -> str:
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""


def confluent_copier(bootstrap: str, topic: str, partitions: int, size: int, folder: Path) -> Copier:
    script = Path(__file__).parent / "transactional_copier.py"
    command = [sys.executable, str(script), bootstrap, topic, str(size)]
    places = [TopicPartition(f"{topic}-copy", partition) for partition in range(partitions)]
    return Copier("confluent-kafka", places, command, folder / "confluent.log", ends=False)


def java_copier(bootstrap: str, topic: str, partition: int, size: int, folder: Path) -> Copier:
    """Kafka's own TransactionalMessageCopier; it ends when everything that was there when it started is copied."""
    command = java_command(
        "org.apache.kafka.tools.TransactionalMessageCopier",
        *("--broker-list", bootstrap, "--input-topic", topic, "--output-topic", f"{topic}-copy"),
        *("--input-partition", str(partition), "--max-messages", "-1", "--consumer-group", f"copier of {topic}"),
        *("--transactional-id", f"copy {topic} {partition}", "--transaction-size", str(size)),
        *("--transaction-timeout", "10000", "--enable-random-aborts"),
        heap="128M",
    )
    places = [TopicPartition(f"{topic}-copy", partition)]
    return Copier(f"java {partition}", places, command, folder / f"java-{partition}.log", ends=True)


class CommittedReader:
    """Reads committed records of several topics all the time; each must be the next one of its partition."""

    def __init__(self, bootstrap: str, topics: dict[str, int]) -> None:
        self.counts = {TopicPartition(topic, n): 0 for topic, count in topics.items() for n in range(count)}
        self.problems: list[str] = []
        settings = {"isolation.level": "read_committed", "fetch.max.wait.ms": 100, "request.timeout.ms": 5000}
        self._consumer = Consumer(bootstrap, config=settings)
        self._consumer.assign(list(self.counts))
        self._consumer.seek_to_beginning()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="committed reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def copied(self) -> int:
        return sum(self.counts.values())

    def copied_by(self, copier: Copier) -> int:
        return sum(self.counts[place] for place in copier.places)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for record in self._consumer.poll(200):
                    place = TopicPartition(record.topic, record.partition)
                    expected = value_of(record.partition, self.counts[place])
                    if record.value != expected:
                        self.problems.append(f"{place} at {record.offset}: {record.value!r} instead of {expected!r}")
                    self.counts[place] += 1
        except Exception as error:
            self.problems.append(f"the reader failed: {error!r}")
        finally:
            self._consumer.close()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(patience(30))
