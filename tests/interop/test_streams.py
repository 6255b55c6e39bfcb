"""Kafka Streams with exactly_once_v2 counts words on a cluster of three whose brokers are killed, and itself.

With the classic protocol, and as a streams group (KIP-1071), whose internal topics the brokers create.

MOLDAU_STREAMS_LINES says how many lines of text there are, MOLDAU_STREAMS_KILLS how often a broker is killed meanwhile.
"""

from __future__ import annotations

import collections
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Consumer, NewTopic, Producer, TopicPartition
from tests.cluster.cluster_nodes import QUICK, Cluster
from tests.interop.kafka_oracle import CACHE, VERSION, java_command
from tests.pace import patience

LINES = int(os.environ.get("MOLDAU_STREAMS_LINES", "6000"))
KILLS = int(os.environ.get("MOLDAU_STREAMS_KILLS", "4"))
SEED = int(os.environ.get("MOLDAU_FAULT_SEED", str(random.SystemRandom().randrange(1 << 30))))
STREAMS_LIBS = CACHE / "streams-libs"
PARTITIONS = 2
WORDS = [f"word{number}" for number in range(40)]
WORDS_IN_LINE = 4
STALL_S_MAX = patience(90)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    few = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
    # Members of streams groups are told how often they are to be heard of; the brokers decide.
    soon = {
        "group.streams.min.session.timeout.ms": "6000",
        "group.streams.session.timeout.ms": "6000",
        "group.streams.min.heartbeat.interval.ms": "1000",
        "group.streams.heartbeat.interval.ms": "1000",
    }
    with Cluster(tmp_path, 3, {**QUICK, **few, **soon}) as started:
        started.start()
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("text", "counts")]
        for outcome in started.admin.create_topics(topics).values():
            outcome.get()
        started.await_full_isr("counts")
        yield started


class Application:
    """The process that counts."""

    def __init__(self, bootstrap: str, folder: Path, protocol: str = "classic", replicas: int = 3) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._log_file = folder / "streams.log"
        self._process: subprocess.Popen[bytes] | None = None
        source = Path(__file__).with_name("WordCount.java")
        classpath = f"{STREAMS_LIBS}/*"
        done = subprocess.run(
            ["javac", "-cp", classpath, "-d", str(folder / "classes"), str(source)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        names = ("word-count", "text", "counts", str(folder / "state"))
        command = java_command("WordCount", bootstrap, *names, protocol, str(replicas))
        command[command.index("-cp") + 1] = f"{folder / 'classes'}:{classpath}"
        self._command = command
        self.lives = 0

    def start(self) -> None:
        self.lives += 1
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def check(self) -> None:
        assert self._process is not None and self._process.poll() is None, f"it ended:\n{self.output()}"

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def output(self) -> str:
        return self._log_file.read_text(errors="replace")[-5000:] if self._log_file.exists() else ""


class CountReader:
    """Reads the committed counts: of each word they must be 1, 2, 3, … without a gap and without one twice."""

    def __init__(self, bootstrap: str) -> None:
        self.counts: dict[str, int] = collections.defaultdict(int)
        self.problems: list[str] = []
        settings = {"isolation.level": "read_committed", "fetch.max.wait.ms": 100, "request.timeout.ms": 5000}
        self._consumer = Consumer(bootstrap, config=settings)
        self._consumer.assign([TopicPartition("counts", number) for number in range(PARTITIONS)])
        self._consumer.seek_to_beginning()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="count reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for record in self._consumer.poll(200):
                    word, count = (record.key or b"").decode(), int.from_bytes(record.value or b"")
                    if count != self.counts[word] + 1:
                        self.problems.append(f"{word}: {count} after {self.counts[word]}, offset {record.offset}")
                    self.counts[word] = count
        except Exception as error:
            self.problems.append(f"the reader failed: {error!r}")
        finally:
            self._consumer.close()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(patience(30))


class Text:
    """Writes lines of random words, a part at a time, and knows how often each word comes."""

    def __init__(self, bootstrap: str, rng: random.Random) -> None:
        self._producer = Producer(bootstrap, config={"acks": "all", "linger.ms": 5})
        self._rng = rng
        self.counts: collections.Counter[str] = collections.Counter()

    def write(self, lines: int) -> None:
        for number in range(lines):
            words = self._rng.choices(WORDS, k=WORDS_IN_LINE)
            self.counts.update(words)
            self._producer.send("text", " ".join(words).encode(), partition=number % PARTITIONS)
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()


def skip_without_streams() -> None:
    if shutil.which("javac") is None:
        pytest.skip("a Java development kit is missing: the application is compiled from its source")
    if not (STREAMS_LIBS / f"kafka-streams-{VERSION}.jar").exists():
        pytest.skip(f"Kafka Streams {VERSION} is not in {STREAMS_LIBS}: run tools/fetch_kafka.sh")


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_words_are_counted_exactly_while_brokers_are_killed(
    cluster: Cluster, tmp_path: Path, kafka_tools: None, protocol: str
) -> None:
    skip_without_streams()
    print(f"\nMOLDAU_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    text = Text(cluster.bootstrap, rng)
    application, reader = Application(cluster.bootstrap, tmp_path, protocol), CountReader(cluster.bootstrap)
    reader.start()
    application.start()
    try:
        run_with_kills(cluster, application, text, reader, rng)
    finally:
        application.kill()
        text.close()
        reader.finish()
    assert not reader.problems, reader.problems[:5]
    assert dict(reader.counts) == dict(text.counts)
    assert application.lives == 2


def run_with_kills(
    cluster: Cluster, application: Application, text: Text, reader: CountReader, rng: random.Random
) -> None:
    """Kills a broker in the middle of every part of the text, and the application once."""

    def await_counted(count: int) -> None:
        before, since = -1, time.monotonic()
        while reader.total < count:
            assert not reader.problems, reader.problems[:5]
            application.check()
            if reader.total != before:
                before, since = reader.total, time.monotonic()
            explain = f"{reader.total} of {text.counts.total()}\n{application.output()}{cluster.outputs()}"
            assert time.monotonic() - since < STALL_S_MAX, f"nothing is counted any more:\n{explain}"
            time.sleep(0.01)

    for number in range(KILLS):
        text.write(LINES // KILLS)
        await_counted(reader.total + 1)
        if number == KILLS // 2:
            application.kill()
            application.start()
        node_id = rng.choice(cluster.ids)
        cluster.kill(node_id)
        print(f"{reader.total:7d} of {text.counts.total()} words counted: node {node_id} is killed", flush=True)
        cluster.start(node_id)
        for topic in ("counts", "__consumer_offsets", "__transaction_state"):
            cluster.await_full_isr(topic, 60)
    await_counted(text.counts.total())
