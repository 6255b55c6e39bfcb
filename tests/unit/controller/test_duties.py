"""What the controller does by itself, and how what it decides is cut into batches."""

from __future__ import annotations

import pytest

from moldau.controller.batches import split_into_batches
from moldau.controller.duties import ELECTIONS_PER_BATCH_MAX
from moldau.controller.result import VersionedRecord
from moldau.metadata.loader import MetadataLoader
from moldau.protocol.errors import KafkaError
from moldau.protocol.stored.metadata_records import NoOpRecord, TopicRecord
from tests.unit.controller.world import World

LATEST = 30
WITHOUT_TRANSACTIONS = 13


def due(w: World) -> list[list[str]]:
    """The records of everything that is due now, duty by duty."""
    found = []
    duty = w.controller.duties.take(w.now_ms)
    while duty is not None:
        w.run(duty)
        found.append(w.record_names())
        duty = w.controller.duties.take(w.now_ms)
    return found


def test_an_idle_controller_appends_something_twice_a_second() -> None:
    w = World()
    w.controller.duties.activate(w.now_ms)
    assert w.controller.duties.next_ms(w.now_ms) == w.now_ms + 500
    assert due(w) == []
    w.now_ms += 500
    assert due(w) == [["NoOpRecord"]]
    assert due(w) == []


def test_an_interval_of_zero_means_no_records_without_reason() -> None:
    w = World(metadata_max_idle_interval_ms="0")
    w.controller.duties.activate(w.now_ms)
    w.now_ms += 200_000
    assert due(w) == []


def test_all_silent_brokers_are_fenced_one_after_the_other() -> None:
    """The second one sees that the first is gone."""
    w = World()
    w.add_brokers(1, 2, 3)
    w.create("t", assignments=[[1, 2, 3]])
    w.controller.duties.activate(w.now_ms)
    w.now_ms += 9_000
    w.heartbeat(3)
    found = [names for names in due(w) if names not in ([], ["NoOpRecord"])]
    assert found == [["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]] * 2
    assert (w.partition("t").leader, w.partition("t").isr) == (3, (3,))


def test_leaderships_go_back_in_batches_with_room_for_others_between() -> None:
    w = World()
    w.add_brokers(1, 2)
    partitions = ELECTIONS_PER_BATCH_MAX + 100
    w.create("t", assignments=[[1, 2]] * partitions)
    w.controller.brokers.connection_lost(1, w.image.brokers[1].broker_epoch)
    w.run(w.controller.fence_broker(1, w.image.brokers[1].broker_epoch))
    w.heartbeat(1)
    for partition in w.image.topics_by_name["t"].partitions.values():
        partition.isr = (2, 1)
    w.controller.duties.activate(w.now_ms)
    w.now_ms += 300_000
    w.heartbeat(1)
    w.heartbeat(2)
    sizes = [len(names) for names in due(w) if "PartitionChangeRecord" in names]
    w.now_ms += 1
    sizes += [len(names) for names in due(w) if "PartitionChangeRecord" in names]
    assert sizes == [ELECTIONS_PER_BATCH_MAX, 100]
    assert all(p.leader == 1 for p in w.image.topics_by_name["t"].partitions.values())
    assert w.controller.state.partitions.leads(1) and not w.controller.state.partitions.leads(2)


# Batches


def records(count: int) -> list[VersionedRecord]:
    return [(TopicRecord(f"t{i}", i.to_bytes(16, "big")), 0) for i in range(1, count + 1)]


def test_few_records_are_one_batch() -> None:
    assert split_into_batches(records(3), True, LATEST, 3) == [records(3)]


def test_many_records_that_stand_for_themselves_are_several_batches_in_order() -> None:
    batches = split_into_batches(records(7), False, LATEST, 3)
    assert [len(batch) for batch in batches] == [3, 3, 1]
    assert [record for batch in batches for record in batch] == records(7)


def test_many_records_that_belong_together_are_a_transaction_that_shows_at_its_end() -> None:
    batches = split_into_batches(records(7), True, LATEST, 3)
    assert [len(batch) for batch in batches] == [3, 3, 3]
    seen: list[int] = []
    loader = MetadataLoader(lambda delta, image: seen.append(len(image.topics_by_id)))
    for number, batch in enumerate(batches):
        loader.load_batch([record for record, _ in batch], 3 * number + 2, 1, 0)
    assert (seen[0], seen[-1]) == (0, 7) and set(seen) == {0, 7}


def test_without_transactions_what_belongs_together_must_fit_one_batch() -> None:
    with pytest.raises(KafkaError):
        split_into_batches(records(7), True, WITHOUT_TRANSACTIONS, 3)
    assert split_into_batches([(NoOpRecord(), 0)], True, WITHOUT_TRANSACTIONS, 3) == [[(NoOpRecord(), 0)]]
