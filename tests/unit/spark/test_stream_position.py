"""Where a stream goes: limits, waiting, new and lost partitions, topics created again; the brokers are a model."""

from __future__ import annotations

import logging

import pytest

from moldau.client.results import TopicPartition
from moldau.spark.lookup import Found, ReadError
from moldau.spark.offsets import Offsets, StreamOffsets
from moldau.spark.options import read_options
from moldau.spark.planning import OffsetRange
from moldau.spark.stream_position import StreamPosition

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a,b"}
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Brokers:
    """Stands in for Lookup: logs as (first, end) by partition, ids by topic, and a clock."""

    def __init__(self, **logs: tuple[int, int]) -> None:
        self.logs = {TopicPartition(name[:-1], int(name[-1])): ends for name, ends in logs.items()}
        self.ids = {item.topic: f"id-{item.topic}" for item in self.logs}
        self.now_ms = 0

    def find_partitions(self, allow_missing: bool = False) -> Found:
        return Found(tuple(sorted(self.logs)), {item.topic: self.ids[item.topic] for item in self.logs})

    def starting_offsets(self, partitions: list[TopicPartition]) -> Offsets:
        return self.latest(partitions)

    def earliest(self, partitions: list[TopicPartition]) -> Offsets:
        return {item: self.logs[item][0] for item in partitions}

    def latest(self, partitions: list[TopicPartition]) -> Offsets:
        return {item: self.logs[item][1] for item in partitions}

    def close(self) -> None: ...


def stream(brokers: Brokers, **more: str) -> StreamPosition:
    return StreamPosition(read_options({**BASE, **more}, streaming=True), brokers, lambda: brokers.now_ms)  # type: ignore[arg-type]


def test_a_micro_batch_goes_to_the_ends_of_all_partitions() -> None:
    brokers = Brokers(a0=(0, 10), b0=(0, 5))
    position = stream(brokers)
    start = position.initial()
    assert start == StreamOffsets({A0: 10, B0: 5}, {"a": "id-a", "b": "id-b"})
    brokers.logs[A0] = (0, 12)
    end = position.next_end(start)
    assert end.offsets == {A0: 12, B0: 5}
    assert position.plan(start, end) == [OffsetRange("a", 0, 10, 12, "id-a")]


def test_without_anything_new_the_end_is_the_start_as_text_too() -> None:
    """Spark would otherwise run micro-batches without end."""
    brokers = Brokers(a0=(0, 10), b0=(0, 5))
    position = stream(brokers)
    start = position.initial()
    assert position.next_end(start).to_json() == start.to_json()
    assert position.plan(start, position.next_end(start)) == []


def test_a_limit_is_kept_and_the_true_ends_are_reported() -> None:
    brokers = Brokers(a0=(0, 300), b0=(0, 100))
    position = stream(brokers)
    start = StreamOffsets({A0: 0, B0: 0}, dict(brokers.ids))
    assert position.next_end(start, most=40).offsets == {A0: 30, B0: 10}
    assert position.latest_seen == StreamOffsets({A0: 300, B0: 100}, dict(brokers.ids))


def test_a_stream_waits_for_enough_but_not_longer_than_the_delay() -> None:
    brokers = Brokers(a0=(0, 3))
    position = stream(brokers, minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    start = StreamOffsets({A0: 0}, dict(brokers.ids))
    first = position.next_end(start, least=10)
    assert first.offsets == {A0: 3}  # nobody knows how long these have been waiting
    brokers.logs[A0] = (0, 5)
    brokers.now_ms = 59_000
    assert position.next_end(first, least=10) == first
    brokers.logs[A0] = (0, 13)
    assert position.next_end(first, least=10).offsets == {A0: 13}
    brokers.now_ms = 130_000
    brokers.logs[A0] = (0, 14)
    second = StreamOffsets({A0: 13}, dict(brokers.ids))
    assert position.next_end(second, least=10).offsets == {A0: 14}


def test_available_now_ends_where_the_logs_ended_at_the_beginning() -> None:
    brokers = Brokers(a0=(0, 10))
    position = stream(brokers)
    position.freeze_end()
    brokers.logs[A0] = (0, 1000)
    brokers.logs[A1] = (0, 1000)
    start = StreamOffsets({A0: 0}, dict(brokers.ids))
    middle = position.next_end(start, most=6, least=100)
    assert middle.offsets == {A0: 6}
    end = position.next_end(middle, most=6, least=100)
    assert end.offsets == {A0: 10}
    assert position.next_end(end, most=6, least=100).to_json() == end.to_json()


def test_partitions_that_appear_are_read_from_their_beginning() -> None:
    brokers = Brokers(a0=(0, 10))
    position = stream(brokers)
    start = position.initial()
    brokers.logs[A1] = (2, 5)
    end = position.next_end(start)
    assert end.offsets == {A0: 10, A1: 5}
    assert position.plan(start, end) == [OffsetRange("a", 1, 2, 5, "id-a")]


def test_a_topic_created_again_is_noticed_even_if_it_is_longer_than_before() -> None:
    brokers = Brokers(a0=(0, 10), b0=(0, 5))
    position = stream(brokers)
    start = position.initial()
    brokers.logs[A0], brokers.ids["a"] = (0, 500), "id-new"
    with pytest.raises(ReadError, match=r"was deleted and created again.*failOnDataLoss"):
        position.next_end(start)


def test_where_data_may_be_lost_a_topic_created_again_is_read_from_its_start(caplog: pytest.LogCaptureFixture) -> None:
    brokers = Brokers(a0=(0, 10), b0=(0, 5))
    position = stream(brokers, failOnDataLoss="false")
    start = position.initial()
    brokers.logs[A0], brokers.ids["a"] = (0, 4), "id-new"
    with caplog.at_level(logging.WARNING, "moldau.spark"):
        end = position.next_end(start)
    assert "created again" in caplog.text
    assert end == StreamOffsets({A0: 4, B0: 5}, {"a": "id-new", "b": "id-b"})
    assert position.plan(start, end) == [OffsetRange("a", 0, 0, 4, "id-new")]


def test_a_checkpoint_without_ids_is_believed_and_gets_them() -> None:
    """That of Spark's own connector."""
    brokers = Brokers(a0=(0, 10))
    end = stream(brokers).next_end(StreamOffsets({A0: 7}))
    assert end == StreamOffsets({A0: 10}, {"a": "id-a"})


def test_the_checkpoint_of_another_query_is_refused() -> None:
    position = stream(Brokers(a0=(0, 10)), failOnDataLoss="false")
    with pytest.raises(ReadError, match=r"checkpoint is that of a query on other.*checkpointLocation of its own"):
        position.next_end(StreamOffsets({TopicPartition("other", 0): 3}, {"other": "id-other"}))


def test_a_topic_that_was_deleted_is_data_loss() -> None:
    brokers = Brokers(a0=(0, 10), b0=(0, 5))
    start = StreamOffsets({A0: 10, B0: 5}, dict(brokers.ids))
    del brokers.logs[B0]
    with pytest.raises(ReadError, match="Topic b was deleted"):
        stream(brokers).next_end(start)
    del brokers.logs[A0]
    with pytest.raises(ReadError, match="Topic a was deleted"):
        stream(brokers).next_end(start)


def test_a_topic_that_is_away_is_read_on_when_it_is_back_and_anew_when_it_is_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that does not know its topics for a moment must not make a query read everything once more."""
    brokers = Brokers(a0=(0, 10), b0=(0, 5))
    start = StreamOffsets({A0: 10, B0: 5}, dict(brokers.ids))
    position = stream(brokers, failOnDataLoss="false")
    del brokers.logs[B0]
    brokers.logs[A0] = (0, 11)
    with caplog.at_level(logging.WARNING, "moldau.spark"):
        middle = position.next_end(start)
        assert position.next_end(middle).to_json() == middle.to_json()
    assert caplog.text.count("Topic b was deleted") == 1
    assert middle == StreamOffsets({A0: 11, B0: 5}, {"a": "id-a", "b": "id-b"})
    assert position.plan(start, middle) == [OffsetRange("a", 0, 10, 11, "id-a")]
    brokers.logs[B0] = (0, 7)
    assert position.plan(middle, position.next_end(middle)) == [OffsetRange("b", 0, 5, 7, "id-b")]
    brokers.ids["b"] = "id-new"
    assert position.plan(middle, position.next_end(middle)) == [OffsetRange("b", 0, 0, 7, "id-new")]


def test_a_topic_that_is_not_subscribed_to_any_more_is_data_loss() -> None:
    brokers = Brokers(a0=(0, 10))
    start = StreamOffsets({A0: 10, TopicPartition("c", 0): 5}, {})
    with pytest.raises(ReadError, match="topic c, which the query does not read any more"):
        stream(brokers).next_end(start)


def test_a_log_that_is_shorter_than_it_was_is_data_loss() -> None:
    brokers = Brokers(a0=(0, 4))
    start = StreamOffsets({A0: 10}, dict(brokers.ids))
    with pytest.raises(ReadError, match="ends at offset 4, before 10"):
        stream(brokers).next_end(start)
    end = stream(brokers, failOnDataLoss="false").next_end(start)
    assert end.offsets == {A0: 4}
    assert stream(brokers, failOnDataLoss="false").plan(start, end) == []


def test_a_replayed_micro_batch_has_the_same_ranges() -> None:
    """After a restart Spark plans the last micro-batch again, before anything else is asked."""
    brokers = Brokers(a0=(0, 100))
    start, end = StreamOffsets({A0: 10}, dict(brokers.ids)), StreamOffsets({A0: 40}, dict(brokers.ids))
    before = stream(brokers, minPartitions="3").plan(start, end)
    brokers.logs[A0] = (0, 1000)
    assert stream(brokers, minPartitions="3").plan(start, end) == before


class Group:
    """Stands in for GroupProgress."""

    def __init__(self) -> None:
        self.told: list[Offsets] = []

    def commit(self, offsets: Offsets) -> None:
        self.told.append(dict(offsets))

    def close(self) -> None: ...


def test_a_group_is_told_what_is_finished_and_never_what_is_only_planned() -> None:
    brokers, group = Brokers(a0=(0, 10)), Group()
    options = read_options({**BASE, "commitGroup": "g"}, streaming=True)
    position = StreamPosition(options, brokers, progress=group)  # type: ignore[arg-type]
    start = StreamOffsets({A0: 0}, dict(brokers.ids))
    end = position.next_end(start)
    position.plan(start, end)
    assert group.told == [{A0: 0}]
    position.next_end(end)
    assert group.told == [{A0: 0}, {A0: 10}]
