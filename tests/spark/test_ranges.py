"""Ranges of offsets read as a task does, without Spark around it: each record once, whatever happens meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from moldau.client import Admin, Producer, TopicPartition
from tests.interop.nodes import Node
from tests.spark import topics

pytestmark = pytest.mark.interop
pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'moldau[spark]'")

from moldau.spark import kept_clusters  # noqa: E402
from moldau.spark.batch_plan import plan_batch  # noqa: E402
from moldau.spark.options import read_options  # noqa: E402
from moldau.spark.planning import OffsetRange  # noqa: E402
from moldau.spark.rows import ReadError, read_range  # noqa: E402


@pytest.fixture(params=["alone", "kept"], autouse=True)
def _process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process of its own for each task, or one of Spark's, which keeps connections and metadata for the next task."""
    monkeypatch.setattr(kept_clusters, "is_worker", lambda: request.param == "kept")
    yield
    while kept_clusters._kept:
        kept_clusters._kept.pop()[2].close()


def config(node: Node, **more: str) -> dict[str, str]:
    return {"bootstrap.servers": node.bootstrap, **{name.replace("_", "."): value for name, value in more.items()}}


def values(node: Node, wanted: OffsetRange, fail_on_data_loss: bool = True, **more: str) -> list[str]:
    batches = read_range(wanted, config(node, **more), fail_on_data_loss=fail_on_data_loss, rows_per_batch=7)
    return [value.as_py().decode() for batch in batches for value in batch["value"]]


def planned(node: Node, topic: str) -> OffsetRange:
    """The only partition of a topic, as the driver plans it."""
    return plan_batch(read_options({"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic}))[0]


def test_a_range_may_begin_and_end_anywhere(moldau_node: Node, topic: str) -> None:
    """Inside of batches, compressed or not, and around the markers of transactions."""
    expected: dict[int, str] = {}
    aborted = set()
    with Producer(moldau_node.bootstrap, transactional_id=topic, compression_type="zstd", batch_size=200) as producer:
        producer.init_transactions()
        offset = 0
        for turn in range(4):
            producer.begin_transaction()
            for number in range(5):
                producer.send(topic, f"{turn}-{number}", partition=0)
                expected[offset] = f"{turn}-{number}"
                offset += 1
            producer.flush()
            if turn == 2:
                producer.abort_transaction()
                aborted |= set(range(offset - 5, offset))
            else:
                producer.commit_transaction()
            offset += 1  # the marker
    for start in range(0, offset, 2):
        for end in range(start + 1, offset + 1, 5):
            inside = {place: value for place, value in expected.items() if start <= place < end}
            wanted = OffsetRange(topic, 0, start, end)
            assert values(moldau_node, wanted) == list(inside.values())
            committed = [value for place, value in inside.items() if place not in aborted]
            assert values(moldau_node, wanted, isolation_level="read_committed") == committed


def test_what_retention_took_is_an_error_or_a_warning(
    moldau_node: Node, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Planned when the records were there; gone when the task fetches."""
    topics.fill(moldau_node, topic, topics.numbers(0, 100))
    with Admin(moldau_node.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 60})[TopicPartition(topic, 0)].get()
    with pytest.raises(ReadError, match=f"{topic}-0 from offset 5 to 60 are gone"):
        values(moldau_node, OffsetRange(topic, 0, 5, 90))
    with caplog.at_level(logging.WARNING, "moldau.spark"):
        assert values(moldau_node, OffsetRange(topic, 0, 5, 90), False) == topics.numbers(60, 90)
    assert "failOnDataLoss is false" in caplog.text
    assert values(moldau_node, OffsetRange(topic, 0, 5, 30), False) == []
    with pytest.raises(ReadError, match="ends at offset 100, before 200"):
        values(moldau_node, OffsetRange(topic, 0, 200, 300))


def test_a_topic_of_the_same_name_is_not_taken_for_the_one_that_was_planned(moldau_node: Node, topic: str) -> None:
    """Created again between the plan and the task, and longer than before."""
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    wanted = planned(moldau_node, topic)
    assert values(moldau_node, wanted) == topics.numbers(0, 10)
    topics.delete(moldau_node, topic)
    topics.fill(moldau_node, topic, topics.numbers(100, 150))
    with pytest.raises(ReadError, match="was deleted and created again"):
        values(moldau_node, wanted)
    assert values(moldau_node, wanted, fail_on_data_loss=False) == []


def test_a_topic_created_again_in_the_middle_of_a_task_is_noticed(own_node: Node, topic: str) -> None:
    topics.fill(own_node, topic, [f"{number:01000}" for number in range(4000)])
    batches = read_range(planned(own_node, topic), config(own_node, max_partition_fetch_bytes="100000"))
    next(batches)
    topics.delete(own_node, topic)
    topics.fill(own_node, topic, topics.numbers(0, 10))
    with pytest.raises(ReadError, match="was deleted and created again"):
        list(batches)


def test_a_broker_that_dies_in_the_middle_of_a_task_is_waited_for(own_node: Node, topic: str) -> None:
    topics.fill(own_node, topic, [f"{number:01000}" for number in range(4000)])
    batches = read_range(planned(own_node, topic), config(own_node, max_partition_fetch_bytes="100000"))
    offsets = next(batches)["offset"].to_pylist()
    own_node.kill()
    own_node.start()
    for batch in batches:
        offsets += batch["offset"].to_pylist()
    assert offsets == list(range(4000))


def test_no_broker_at_all_is_told_after_the_timeout(own_node: Node, topic: str) -> None:
    topics.fill(own_node, topic, topics.numbers(0, 10))
    wanted = planned(own_node, topic)
    own_node.kill()
    with pytest.raises(ReadError, match=r"arrived for 700 ms.*kafkaConsumer.pollTimeoutMs"):
        list(read_range(wanted, config(own_node), poll_timeout_ms=700))


def test_offsets_without_records_are_no_data_loss(moldau_node: Node, topic: str) -> None:
    """Aborted records and markers are walked over, also at the end of a range."""
    with Producer(moldau_node.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, "a", partition=0)
        producer.flush()
        producer.abort_transaction()
    wanted = planned(moldau_node, topic)
    assert (wanted.start, wanted.end) == (0, 2)
    assert values(moldau_node, wanted, isolation_level="read_committed") == []
    assert values(moldau_node, wanted) == ["a"]


def test_tasks_of_one_process_use_the_same_connections(
    moldau_node: Node, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_clusters, "is_worker", lambda: True)
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    wanted = planned(moldau_node, topic)
    assert values(moldau_node, wanted) == topics.numbers(0, 10)
    [(_, _, kept)] = kept_clusters._kept
    assert values(moldau_node, wanted) == topics.numbers(0, 10)
    assert [cluster for _, _, cluster in kept_clusters._kept] == [kept]
    assert values(moldau_node, wanted, isolation_level="read_committed") == topics.numbers(0, 10)
    assert len(kept_clusters._kept) == 2, "other settings, other connections"
    batches = read_range(wanted, config(moldau_node), rows_per_batch=3)
    next(batches)
    del batches
    assert len(kept_clusters._kept) == 1, "a task that was cut short may leave answers on the way"
    monkeypatch.setattr(kept_clusters, "KEEP_SECONDS", 0.0)
    [(_, _, kept)] = kept_clusters._kept
    assert values(moldau_node, wanted, isolation_level="read_committed") == topics.numbers(0, 10)
    assert kept_clusters._kept[0][2] is not kept, "brokers drop connections that nobody uses"


def test_a_broker_that_was_started_again_between_tasks(own_node: Node, topic: str) -> None:
    topics.fill(own_node, topic, topics.numbers(0, 10))
    wanted = planned(own_node, topic)
    assert values(own_node, wanted) == topics.numbers(0, 10)
    own_node.kill()
    own_node.start()
    assert values(own_node, wanted) == topics.numbers(0, 10)


def test_a_topic_created_again_between_tasks(moldau_node: Node, topic: str) -> None:
    """A task that was planned after it reads the new one, whatever the process knew before."""
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    assert values(moldau_node, planned(moldau_node, topic)) == topics.numbers(0, 10)
    topics.delete(moldau_node, topic)
    topics.fill(moldau_node, topic, topics.numbers(100, 150))
    assert values(moldau_node, planned(moldau_node, topic)) == topics.numbers(100, 150)
    assert values(moldau_node, OffsetRange(topic, 0, 0, 50)) == topics.numbers(100, 150)
