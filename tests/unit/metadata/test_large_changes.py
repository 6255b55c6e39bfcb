"""Changes of more records than a batch may have: all or nothing where that was promised, in pieces where not."""

from __future__ import annotations

import functools

import pytest

from moldau.controller.batches import split_into_batches
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.stored.metadata_records import BeginTransactionRecord, EndTransactionRecord, decode_metadata_record
from moldau.raft.batches import metadata_values
from moldau.records.batch import split_batches
from tests.unit.metadata.harness import Harness

RECORDS_PER_BATCH_MAX = 100
"""Less than there is, so that the tests are quick."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = functools.partial(split_into_batches, limit=RECORDS_PER_BATCH_MAX)
    monkeypatch.setattr("moldau.node.active_controller.split_into_batches", limited)


def ready() -> Harness:
    harness = Harness()
    harness.start()
    harness.run(lambda: harness.ready)
    return harness


def batch_sizes(harness: Harness, start: int) -> list[int]:
    """The number of records of each batch from an offset on, without those of an idle controller."""
    sizes = []
    position = start
    while position < harness.node.log.end_offset():
        data = harness.node.log.read(position, 1 << 20)
        for header in split_batches(data, 0, len(data)):
            sizes.append(int(header.records_count))
            position = int(header.last_offset) + 1
    return [size for size in sizes if size > 1]


def test_a_topic_of_many_partitions_is_a_transaction() -> None:
    harness = ready()
    start = harness.node.log.end_offset()
    assert harness.create("large", RECORDS_PER_BATCH_MAX).topics[0].error_code == 0
    # Topic and partitions, and what begins and ends the transaction.
    assert batch_sizes(harness, start) == [RECORDS_PER_BATCH_MAX, 3]
    data = harness.node.log.read(start, 1 << 20)
    first, last = split_batches(data, 0, len(data))[:2]
    assert isinstance(decode_metadata_record(metadata_values(data, first)[0]), BeginTransactionRecord)
    assert isinstance(decode_metadata_record(metadata_values(data, last)[-1]), EndTransactionRecord)
    shown = {len(image.topics_by_name["large"].partitions) for _, image in harness.published if image.topic("large")}
    assert shown == {RECORDS_PER_BATCH_MAX}, "nobody sees a part of it"

    harness.stop()
    harness.start(previous_epoch=0)
    harness.run(lambda: harness.ready)
    assert len(harness.node.image.topics_by_name["large"].partitions) == RECORDS_PER_BATCH_MAX


def test_a_change_that_need_not_be_whole_is_several_batches_and_one_answer() -> None:
    harness = ready()
    for number in range(2):
        harness.create(f"t{number}", RECORDS_PER_BATCH_MAX // 2 + 1)
    start = harness.node.log.end_offset()

    def fence(controller: Controller) -> Result:
        records = controller.brokers.fence_stale(harness.now_ms + 1_000_000).records
        return Result(records, len(records), is_atomic=False)

    written = harness.ask(fence)
    assert written == RECORDS_PER_BATCH_MAX + 3
    assert batch_sizes(harness, start)[:2] == [RECORDS_PER_BATCH_MAX, 3]
    assert harness.node.image.brokers[1].fenced


def test_an_open_transaction_is_not_there_for_whoever_comes_after() -> None:
    """Power is lost between the batches of a transaction: the next controller ends it with an abort."""
    harness = ready()
    start = harness.node.log.end_offset()
    harness.create("before")
    propose, harness.node.raft.propose = harness.node.raft.propose, None  # type: ignore[method-assign, assignment]
    calls: list[int] = []

    def propose_first(values: list[bytes], now_ms: int) -> int:
        calls.append(len(values))
        if len(calls) > 1:
            raise OSError("no more")
        return propose(values, now_ms)

    harness.node.raft.propose = propose_first  # type: ignore[method-assign]
    refused = harness.create("large", RECORDS_PER_BATCH_MAX)
    assert isinstance(refused, KafkaError) and refused.code == errors.NOT_CONTROLLER
    assert calls == [RECORDS_PER_BATCH_MAX, 3]
    harness.node.raft.propose = propose  # type: ignore[method-assign]
    harness.node.log.sync_later(lambda error: None)
    harness.run_for(100)
    harness.disk.process_crash()
    harness.events.clear()
    harness.start()
    harness.run(lambda: harness.ready)
    assert harness.node.image.topic("before") is not None and harness.node.image.topic("large") is None
    assert RECORDS_PER_BATCH_MAX in batch_sizes(harness, start)
    assert harness.create("large").topics[0].error_code == 0
