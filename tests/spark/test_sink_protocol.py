"""The exactly-once sink against a running Moldau, stopped at every step, and with two runs of one query at once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'moldau[spark]'")
pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")

import pyarrow as pa

from moldau.client import Admin
from moldau.spark.decisions import SinkError
from moldau.spark.sink_driver import SinkDriver
from moldau.spark.sink_tasks import Place, write_in_transaction
from tests.interop import kafka_oracle
from tests.interop.nodes import MoldauNode, Node
from tests.pace import moment_ms, wait_until
from tests.spark import topics
from tests.spark.sink_runs import Crash, Query, Turns, commit, options, write_tasks

# For every change: one seed, and each of four tests stops at another quarter of the steps.
SEEDS = int(os.environ.get("MOLDAU_SPARK_SEEDS", "1"))
QUARTERS = 4 if SEEDS == 1 else 1
FEW_PARTITIONS = {"transaction.state.log.num.partitions": "4", "offsets.topic.num.partitions": "4"}
PARTS = (["a", "b"], ["c"], [], ["d"])


@pytest.fixture(scope="module", params=["two-phase", "timeouts", *(["kafka"] if SEEDS > 1 else [])])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A Moldau with two-phase commit, one without; in the long form an Apache Kafka too."""
    folder = tmp_path_factory.mktemp("cluster") / "node"
    node: Node
    if request.param == "kafka":
        reason = kafka_oracle.missing()
        if reason:
            pytest.skip(reason)
        node = kafka_oracle.KafkaNode(folder, FEW_PARTITIONS)
    else:
        two_phase = "true" if request.param == "two-phase" else "false"
        node = MoldauNode(folder, {**FEW_PARTITIONS, "transaction.two.phase.commit.enable": two_phase})
    node.format()
    node.start()
    yield node
    node.stop()


@pytest.fixture
def out(cluster: Node, topic: str) -> str:
    topics.create(cluster, topic, 2)
    return topic


def values(prefix: object) -> list[list[str]]:
    return [[f"{prefix}-{value}" for value in part] for part in PARTS]


def nothing(_: str) -> None:
    pass


def check_once(cluster: Node, topic: str, expected: list[str]) -> None:
    found = Counter(topics.committed_values(cluster, topic))
    assert found == Counter(expected)


def open_transactions(cluster: Node) -> list[str]:
    with Admin(cluster.bootstrap) as admin:
        return [item.transactional_id for item in admin.list_transactions(states=["Ongoing"])]


def steps_of_a_commit(cluster: Node, out: str) -> list[str]:
    """What a driver does in one commit, as a batch of its own shows it."""
    seen: list[str] = []
    write = options(cluster.bootstrap, out, "dry")
    batch = values("dry")
    commit(write, f"{out}-dry", 0, write_tasks(write, f"{out}-dry", 0, batch), seen.append)
    return seen


@pytest.mark.parametrize("spark_aborts", [False, True], ids=["driver-dies", "commit-raises"])
def test_a_driver_that_stops_at_any_step_leaves_nothing_lost_or_twice(
    cluster: Node, out: str, spark_aborts: bool, request: pytest.FixtureRequest
) -> None:
    """Whatever the last step was, the batch is there once after it was run again; so are those around it."""
    steps = steps_of_a_commit(cluster, out)
    assert "after write" in steps
    assert "within end_transactions" in steps
    expected = [value for part in values("dry") for value in part]
    first_stop = (2 * spark_aborts + ("timeouts" in request.node.name)) % QUARTERS
    for stop in range(first_stop, len(steps), QUARTERS):
        query = f"{out}-{stop}"
        first, again = (options(cluster.bootstrap, out, f"{name}-{stop}") for name in ("first", "again"))
        for batch in (0, 1):
            written = write_tasks(first, query, batch, values((stop, batch)))
            if batch == 0:
                commit(first, query, 0, written, nothing)
        left = iter(range(stop + 1))

        def tell(_: str, left: Iterator[int] = left, stop: int = stop) -> None:
            if next(left) == stop:
                raise Crash

        with pytest.raises(Crash):
            commit(first, query, 1, written, tell)
        if spark_aborts:
            with SinkDriver(first, query) as driver:
                driver.abort(1, written, written[0].run)
        for batch in (1, 2):
            commit(again, query, batch, write_tasks(again, query, batch, values((stop, batch))), nothing)
        expected += [value for batch in range(3) for part in values((stop, batch)) for value in part]
    check_once(cluster, out, expected)
    assert [name for name in open_transactions(cluster) if f".{out}-" in name] == []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_two_runs_of_one_query_at_once_write_everything_once(cluster: Node, out: str, seed: int) -> None:
    """Whatever the order of their steps, crashes, lost reports and late attempts included."""
    turns = Turns(seed)
    inputs = [[f"{batch}-{number}" for number in range(6)] for batch in range(4)]
    query = Query(out, inputs, turns)

    def run(who: int) -> None:
        query.run(who, lambda life: options(cluster.bootstrap, out, f"run-{seed}-{who}-{life}"))

    turns.run([lambda: run(0), lambda: run(1)])
    write = options(cluster.bootstrap, out, "last")
    commit(write, out, len(inputs), write_tasks(write, out, len(inputs), [["end"]]), nothing)
    check_once(cluster, out, ["end", *(value for batch in inputs for value in batch)])


def test_ids_are_used_again(cluster: Node, out: str) -> None:
    """Ten batches of four tasks need as many transactional ids as one, for those with rows."""
    write = options(cluster.bootstrap, out, "again")
    for batch in range(10):
        commit(write, out, batch, write_tasks(write, out, batch, values(batch)), nothing)
    with Admin(cluster.bootstrap) as admin:
        ids = [item.transactional_id for item in admin.list_transactions() if f".{out}." in item.transactional_id]
    assert len(ids) == 3 + 1  # the decider's


def test_a_run_that_has_no_next_batch_keeps_no_producer(cluster: Node, out: str) -> None:
    """A worker process that writes for many runs, one after the other, does not fill up with their threads."""
    write = options(cluster.bootstrap, out, "once")
    threads = threading.active_count()
    for run in range(3):
        rows = [pa.record_batch({"value": [f"{run}"]})]
        written = write_in_transaction(write, Place(f"{out}-{run}", 0, 0, "aa"), rows, only_near=True)
        commit(write, f"{out}-{run}", 0, [written], nothing)
    wait_until(lambda: threading.active_count() <= threads)
    check_once(cluster, out, ["0", "1", "2"])


def test_a_checkpoint_that_went_back_is_refused(cluster: Node, out: str) -> None:
    """A batch before the last decision is neither written nor skipped, and what was written of it is aborted."""
    write = options(cluster.bootstrap, out, "back")
    for batch in range(2):
        commit(write, out, batch, write_tasks(write, out, batch, values(batch)), nothing)
    with pytest.raises(SinkError, match="checkpoint is older"):
        write_tasks(write, out, 0, values(0))


def test_a_transaction_that_is_over_fails_the_batch_before_it_is_decided(tmp_path: Path, topic: str) -> None:
    """Without two-phase commit brokers abort what takes too long; then nothing of the batch is committed."""
    settings = {**FEW_PARTITIONS, "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    node = MoldauNode(tmp_path / "node", settings)
    node.format()
    node.start()
    try:
        topics.create(node, topic, 1)
        write = options(node.bootstrap, topic, "slow", kafka_transaction_timeout_ms=str(moment_ms(2000)))
        written = write_tasks(write, topic, 0, values(0))
        with Admin(node.bootstrap) as admin:
            wait_until(lambda: not list(admin.list_transactions(states=["Ongoing"])))
        with pytest.raises(SinkError, match="is over before the batch is"):
            commit(write, topic, 0, written, nothing)
        check_once(node, topic, [])
        again = options(node.bootstrap, topic, "again")
        commit(again, topic, 0, write_tasks(again, topic, 0, values(0)), nothing)
        check_once(node, topic, [value for part in values(0) for value in part])
    finally:
        node.stop()
