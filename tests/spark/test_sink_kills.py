"""Kills under a stream from topic to topic: workers, drivers, executors and the broker; every record arrives once.

`make test` kills a few times on local threads. MOLDAU_SPARK_KILLS=20 kills so often, and does half of it on a real
Spark cluster; MOLDAU_SPARK_SEED repeats the choices of a run.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, Producer
from moldau.client.errors import ClientError
from tests.interop.nodes import MoldauNode, Node
from tests.pace import patience, patience_ms
from tests.spark import topics
from tests.spark.conftest import missing
from tests.spark.jobs import Job, StandaloneCluster, kill_one

KILLS = int(os.environ.get("MOLDAU_SPARK_KILLS", "0"))
SEED = int(os.environ.get("MOLDAU_SPARK_SEED", str(random.randrange(1 << 30))))
# Without a single record, on a machine that may be busy with other things.
SILENCE_SECONDS_MAX = patience(600)
AHEAD = 200
SOURCE, TARGET = "in", "out"
NODE_SETTINGS = {
    "transaction.two.phase.commit.enable": "true",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    node = MoldauNode(tmp_path / "node", NODE_SETTINGS)
    node.format()
    node.start()
    topics.create(node, SOURCE, 2)
    topics.create(node, TARGET, 3)
    yield node
    if node.process is not None:
        node.stop()


class Feeder:
    """Keeps the source a little ahead of the target, with numbers, over all deaths of the broker."""

    def __init__(self, node: Node, output: Output) -> None:
        self._producer = Producer(
            node.bootstrap, linger_ms=20, delivery_timeout_ms=patience_ms(600_000), max_block_ms=patience_ms(600_000)
        )
        self._output = output
        self._stop = threading.Event()
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            if self.sent < len(self._output.values) + AHEAD:
                self._producer.send(SOURCE, str(self.sent), key=str(self.sent))
                self.sent += 1

    def finish(self) -> int:
        """How many there are altogether."""
        self._stop.set()
        self._thread.join()
        self._producer.flush(patience_ms(300_000))
        self._producer.close()
        return self.sent


class Output:
    """Follows the target with a reader of committed records."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._consumer = Consumer(node.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed")
        self._consumer.assign(self._consumer.partitions_for(TARGET))
        self.values: Counter[int] = Counter()

    def take(self) -> int:
        """How many records came since the last time."""
        found = 0
        try:
            while records := self._consumer.poll(50):
                found += len(records)
                self.values.update(int(record.value or b"-1") for record in records)
        except ClientError:
            pass  # the broker is down
        return found

    def wait_for(self, condition: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
        deadline = time.monotonic() + SILENCE_SECONDS_MAX
        while not condition():
            assert time.monotonic() < deadline, f"no progress with {self.values.total()} records (seed {SEED})"
            meanwhile()
            if self.take():
                deadline = time.monotonic() + SILENCE_SECONDS_MAX

    def wait_for_more(self, meanwhile: Callable[[], None]) -> None:
        before = self.values.total()
        self.wait_for(lambda: self.values.total() > before, meanwhile)

    def close(self) -> None:
        self._consumer.close()


def job_settings(node: Node, folder: Path, master: str) -> dict[str, object]:
    return {
        "master": master,
        "bootstrap": node.bootstrap,
        "source": SOURCE,
        "target": TARGET,
        "rows_per_batch": 60,
        "checkpoint": str(folder / "checkpoint"),
    }


def run_with_kills(node: Node, job: Job, kills: list[Callable[[random.Random], bool]]) -> None:
    """Each kill waits until the query has made progress since the last one, and then for a moment by chance."""
    chance = random.Random(SEED)
    print(f"seed {SEED}: {len(kills)} kills")
    output = Output(node)
    feeder = Feeder(node, output)
    job.start()
    try:
        for kill in kills:
            output.wait_for_more(job.keep_alive)
            output.wait_for(_after(chance.random() * 1.5), job.keep_alive)
            output.wait_for(lambda kill=kill: kill(chance), job.keep_alive)  # type: ignore[misc]
        output.wait_for_more(job.keep_alive)
        count = feeder.finish()
        output.wait_for(lambda: len(output.values) >= count, job.keep_alive)
        # Once more from the checkpoint: what is decided must not be written again.
        job.kill()
        job.start()
        topics.fill(node, SOURCE, [str(count)])
        output.wait_for(lambda: count in output.values, job.keep_alive)
    finally:
        job.kill()
        output.close()
        print(job.output()[-6000:])
    found = Counter(int(value) for value in topics.committed_values(node, TARGET))
    assert found == Counter(range(count + 1)), "records are lost or twice in the topic"
    with Admin(node.bootstrap) as admin:
        print(f"{len(list(admin.list_transactions()))} transactional ids, {job.starts} starts, {count + 1} records")


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def driver_kill(job: Job) -> Callable[[random.Random], bool]:
    def kill(chance: random.Random) -> bool:
        job.kill()
        return True

    return kill


def broker_kill(node: Node) -> Callable[[random.Random], bool]:
    def kill(chance: random.Random) -> bool:
        node.kill()
        time.sleep(chance.random())
        node.start()
        return True

    return kill


def worker_kill(job: Job) -> Callable[[random.Random], bool]:
    return lambda chance: kill_one(job.python_workers(), chance)


def mixed(kinds: list[Callable[[random.Random], bool]], count: int) -> list[Callable[[random.Random], bool]]:
    """Each kind in turn, so that all of them happen, however few there are."""
    return [kinds[number % len(kinds)] for number in range(count)]


def test_a_worker_the_broker_and_the_driver_are_killed(node: Node, tmp_path: Path) -> None:
    """On local threads, with a checkpoint; three kills, or as many as asked for."""
    job = Job("tests.spark.sink_job", job_settings(node, tmp_path, "local[2,20]"), tmp_path / "job.log")
    kinds = [worker_kill(job), broker_kill(node), driver_kill(job)]
    run_with_kills(node, job, mixed(kinds, KILLS - KILLS // 2 if KILLS else 3))


@pytest.mark.skipif(not KILLS, reason="the long form, with a cluster of Spark: MOLDAU_SPARK_KILLS=20")
def test_executors_and_all_others_are_killed_on_a_cluster(node: Node, tmp_path: Path) -> None:
    """A standalone cluster with a master and two workers; executors are processes of their own there."""
    cluster = StandaloneCluster(tmp_path / "spark")
    cluster.start()
    try:
        job = Job("tests.spark.sink_job", job_settings(node, tmp_path, cluster.url), tmp_path / "job.log")
        kinds = [
            lambda chance: kill_one(cluster.executors(), chance),
            lambda chance: kill_one(cluster.python_workers(), chance),
            driver_kill(job),
            broker_kill(node),
        ]
        run_with_kills(node, job, mixed(kinds, KILLS // 2))
    finally:
        cluster.stop()
