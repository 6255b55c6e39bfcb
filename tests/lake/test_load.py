"""Loads from a running Moldau, with the tasks in this process: rounds, restarts, bounds, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from moldau.client import Admin, Consumer, Producer, TopicPartition
from moldau.lake.errors import LakeError, LostRaceError
from moldau.lake.load import Load, LoadSettings, Round
from moldau.lake.open_table import detect_format, open_table
from moldau.lake.reading import read_table
from moldau.lake.tasks import LoadTask, TaskResult, run_here
from moldau.spark.lookup import ReadError
from tests.interop.nodes import RECENT_MS, MoldauNode
from tests.lake.conftest import MakeTopic, Topic


def settings_of(topic: Topic, lake: str, **options: str) -> LoadSettings:
    return LoadSettings({"kafka.bootstrap.servers": topic.bootstrap, "subscribe": topic.name, **options}, lake)


def load(settings: LoadSettings) -> list[Round]:
    with Load(settings, run_here) as running:
        return list(running.run_once())


def keys(lake: str) -> list[tuple[int, bytes]]:
    """(partition, key) of every row, in order; rows that are there twice are twice in the list."""
    rows = read_table(open_table(lake), ["partition", "key"]).to_pylist()
    return sorted((row["partition"], row["key"]) for row in rows)


@pytest.mark.parametrize("format_name", ["delta", "iceberg", "parquet"])
def test_each_run_loads_what_is_new(make_topic: MakeTopic, lake: str, format_name: str) -> None:
    topic = make_topic(2)
    settings = replace(settings_of(topic, lake), format=format_name, partition_by=("date",))
    topic.send(30)
    assert sum(done.rows for done in load(settings)) == 60
    assert load(settings) == []
    topic.send(5)
    assert sum(done.rows for done in load(settings)) == 10
    assert keys(lake) == topic.expected()


def test_rows_are_the_records_field_by_field(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    topic.send(3)
    with Producer(topic.bootstrap) as producer:
        producer.send(topic.name, None, None, timestamp_ms=RECENT_MS)
    load(settings_of(topic, lake, includeHeaders="true"))
    rows = sorted(read_table(open_table(lake)).to_pylist(), key=lambda row: row["offset"])
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [(topic.name, 0, n) for n in range(4)]
    assert rows[1]["value"].startswith(b"v0-1|") and rows[1]["headers"] == [{"key": "n", "value": b"1"}]
    assert round(rows[2]["timestamp"].timestamp() * 1000) == RECENT_MS + 2000
    assert (rows[3]["key"], rows[3]["value"], rows[3]["headers"]) == (None, None, None)


def test_a_backlog_is_committed_in_pieces(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(3)
    topic.send(50)
    rounds = load(replace(settings_of(topic, lake), round_offsets_max=40, task_offsets_max=8))
    assert len(rounds) == 4 and all(done.rows <= 40 for done in rounds)
    assert all(item.size <= 8 for done in rounds for item in done.ranges)
    assert rounds[0].lag == 110 and rounds[-1].lag == 0
    assert keys(lake) == topic.expected()


def test_a_load_from_the_end_loads_only_what_comes_later(make_topic: MakeTopic, lake: str) -> None:
    """Also what comes before the second run: the end of the first run counts."""
    topic = make_topic(1)
    topic.send(5)
    settings = settings_of(topic, lake, startingOffsets="latest")
    assert [done.rows for done in load(settings)] == [0]
    topic.send(3)
    assert [done.rows for done in load(settings)] == [3]
    assert keys(lake) == topic.expected()[5:]


def test_a_load_can_be_bounded_by_time(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    topic.send(20)
    start, end = str(RECENT_MS + 5_000), str(RECENT_MS + 12_000)
    load(settings_of(topic, lake, startingTimestamp=start, endingTimestamp=end))
    assert [row["offset"] for row in read_table(open_table(lake)).to_pylist()] == list(range(5, 12))


def test_a_load_can_begin_at_given_offsets(make_topic: MakeTopic, lake: str) -> None:
    """They count for the first run; the second goes on behind it."""
    topic = make_topic(2)
    topic.send(10)
    settings = settings_of(topic, lake, startingOffsets=f'{{"{topic.name}":{{"0":7,"1":-2}}}}')
    assert [done.rows for done in load(settings)] == [13]
    topic.send(1)
    assert [done.rows for done in load(settings)] == [2]


def test_a_pattern_finds_topics_that_come_later(make_topic: MakeTopic, lake: str) -> None:
    """What they had before the load saw them is loaded too."""
    first = make_topic(1)
    options = {"kafka.bootstrap.servers": first.bootstrap, "startingOffsets": "latest"}
    settings = LoadSettings({**options, "subscribePattern": f"{first.name}|later-{first.name}"}, lake)
    first.send(3)
    load(settings)
    with Admin(first.bootstrap) as admin:
        make_again(admin, f"later-{first.name}")
    later = Topic(first.bootstrap, f"later-{first.name}", 1)
    later.send(4)
    load(settings)
    assert keys(lake) == later.expected()


def test_partitions_that_come_later_are_loaded_whole(make_topic: MakeTopic, lake: str, node: MoldauNode) -> None:
    topic = make_topic(1)
    settings = settings_of(topic, lake, startingOffsets="latest")
    load(settings)
    with Admin(node.bootstrap) as admin:
        for outcome in admin.create_partitions({topic.name: 2}).values():
            outcome.get()
    topic.sent.append(0)
    topic.send(4)
    load(settings)
    assert keys(lake) == topic.expected()


def test_aborted_transactions_are_not_loaded(make_topic: MakeTopic, lake: str, node: MoldauNode) -> None:
    topic = make_topic(1)
    with Producer(node.bootstrap, transactional_id=f"tx-{topic.name}") as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic.name, b"v", b"k%d" % number).result()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    load(settings_of(topic, lake))
    assert keys(lake) == [(0, b"k0"), (0, b"k2")]
    assert open_table(lake).positions([TopicPartition(topic.name, 0)]).offsets == {TopicPartition(topic.name, 0): 8}


def test_a_round_that_fails_commits_nothing(make_topic: MakeTopic, lake: str) -> None:
    """One task of several fails after others have written their files."""
    topic = make_topic(2)
    topic.send(10)

    def run(tasks: Sequence[LoadTask]) -> list[TaskResult]:
        done = run_here(tasks)
        return [done[0], TaskResult(done[1].range, error="The disk is full.")]

    with pytest.raises(LakeError, match="disk is full"), Load(settings_of(topic, lake), run) as running:
        list(running.run_once())
    assert keys(lake) == []
    load(settings_of(topic, lake))
    assert keys(lake) == topic.expected()


def test_a_full_disk_is_told_in_a_sentence(make_topic: MakeTopic, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.lake import file_writer

    def full(*_: object) -> None:
        raise OSError(28, "Error writing bytes to file.")

    topic = make_topic(1)
    topic.send(10)
    with monkeypatch.context() as patch:
        patch.setattr(file_writer._OpenFile, "write", full)
        with pytest.raises(LakeError, match=r"No space left on device. Nothing was committed; make room"):
            load(settings_of(topic, lake))
    assert [name for name in os.listdir(lake) if name.endswith(".parquet")] == []
    load(settings_of(topic, lake))
    assert keys(lake) == topic.expected()


def test_two_loads_at_once_where_locks_do_not_reach(make_topic: MakeTopic, lake: str) -> None:
    """The slower one loses its round; no record is in the table twice."""
    topic = make_topic(2)
    topic.send(10)
    settings = settings_of(topic, lake)
    load(replace(settings, round_offsets_max=4))

    def overtaken(tasks: Sequence[LoadTask]) -> list[TaskResult]:
        done = run_here(tasks)
        fast = Load(settings, run_here)
        fast._lock.acquire = lambda: None  # type: ignore[method-assign]
        with fast:
            list(fast.run_once())
        return done

    topic.send(3)
    with pytest.raises(LostRaceError), Load(settings, overtaken) as slow:
        list(slow.run_once())
    assert keys(lake) == topic.expected()


def test_the_second_load_of_a_table_is_refused(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    refused = pytest.raises(LakeError, match=f"in use by a load of topics {topic.name}")
    with Load(settings_of(topic, lake), run_here), refused:
        load(settings_of(topic, lake))


def test_a_topic_that_was_deleted_and_created_again_is_refused(
    make_topic: MakeTopic, lake: str, node: MoldauNode
) -> None:
    topic = make_topic(1)
    topic.send(5)
    load(settings_of(topic, lake))
    with Admin(node.bootstrap) as admin:
        for deleted in admin.delete_topics([topic.name]).values():
            deleted.get()
        make_again(admin, topic.name)
    topic.sent = [0]
    topic.send(8)
    with pytest.raises(LakeError, match="was deleted and created again"):
        load(settings_of(topic, lake))
    assert len(keys(lake)) == 5


def make_again(admin: Any, name: str) -> None:
    from moldau.client import NewTopic

    for outcome in admin.create_topics([NewTopic(name, 1, 1)]).values():
        outcome.get()


def test_records_that_were_deleted_before_they_were_loaded(make_topic: MakeTopic, lake: str, node: MoldauNode) -> None:
    topic = make_topic(1)
    topic.send(5)
    load(settings_of(topic, lake))
    topic.send(5)
    with Admin(node.bootstrap) as admin:
        for outcome in admin.delete_records({TopicPartition(topic.name, 0): 8}).values():
            outcome.get()
    with pytest.raises(LakeError, match="from offset 5 to 8 were deleted"):
        load(settings_of(topic, lake))
    load(settings_of(topic, lake, failOnDataLoss="false"))
    found = sorted(row["offset"] for row in read_table(open_table(lake)).to_pylist())
    assert found == [0, 1, 2, 3, 4, 8, 9]


def test_an_unknown_topic_and_other_partitions_are_refused(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    with pytest.raises(ReadError, match="Topic nothing does not exist"):
        load(settings_of(topic, lake, subscribe="nothing"))
    assert detect_format(lake) is None
    topic.send(1)
    load(settings_of(topic, lake))
    with pytest.raises(LakeError, match="partitioned by nothing"):
        load(replace(settings_of(topic, lake), partition_by=("date",)))


def test_the_group_is_told_how_far_the_load_is(make_topic: MakeTopic, lake: str, node: MoldauNode) -> None:
    topic = make_topic(1)
    topic.send(6)
    load(settings_of(topic, lake, commitGroup=f"lake-{topic.name}"))
    with Consumer(node.bootstrap, group_id=f"lake-{topic.name}") as consumer:
        committed = consumer.committed([TopicPartition(topic.name, 0)])[TopicPartition(topic.name, 0)]
    assert committed is not None and committed.offset == 6
