"""Commits of tables of all formats: rows and offsets together, one of two writers, a kill at each step."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from moldau.client.results import TopicPartition
from moldau.lake.data_file import DataFile
from moldau.lake.errors import LakeError, LostRaceError, NoTableError
from moldau.lake.file_writer import FileWriter
from moldau.lake.iceberg_table import open_catalog
from moldau.lake.load import LoadSettings, write_settings
from moldau.lake.lock import WriterLock, is_held
from moldau.lake.open_table import create_table, detect_format, open_or_create, open_table
from moldau.lake.positions import Positions, check_topic_ids
from moldau.lake.reading import read_table
from moldau.lake.table import LakeTable, Note, new_columns
from moldau.spark.planning import OffsetRange
from moldau.spark.rows import arrow_schema

FORMATS = ("delta", "iceberg", "parquet")
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = "8XtTtTDNR2CgsPGrTNVtyg"
DAY_US = 86_400_000_000
NOTE = Note("load", {"rows": 1})


def rows(first: int, behind: int, schema: Any = None, days: int = 1) -> Any:
    """Records of orders-0 with these offsets, spread over so many days."""
    numbers = range(first, behind)
    batch = {
        "key": [b"k%d" % number for number in numbers],
        "value": [b"v%d" % number for number in numbers],
        "topic": ["orders"] * len(numbers),
        "partition": [0] * len(numbers),
        "offset": list(numbers),
        "timestamp": [1_700_000_000_000_000 + number % days * DAY_US for number in numbers],
        "timestampType": [0] * len(numbers),
    }
    return pa.RecordBatch.from_pydict(batch, schema=arrow_schema())


def write(table: LakeTable, batch: Any) -> list[DataFile]:
    writer = FileWriter(write_settings(table, LoadSettings({}, table.path)))
    writer.write(batch)
    return writer.finish()


def load(table: LakeTable, first: int, behind: int, days: int = 1) -> int:
    """What a round does with the table, from its positions to its commit."""
    table.refresh()
    before = table.positions([ORDERS])
    after = before.advanced([OffsetRange("orders", 0, first, behind, TOPIC_ID)])
    return table.append(write(table, rows(first, behind, days=days)), before, after, NOTE)


def offsets(path: str) -> list[int]:
    return sorted(read_table(open_table(path)).column("offset").to_pylist())


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    return create_table(str(tmp_path / "lake"), request.param, arrow_schema(), ())


def test_rows_and_positions_are_committed_together(table: LakeTable) -> None:
    assert table.positions([ORDERS]) == Positions()
    load(table, 0, 10)
    load(table, 10, 25)
    again = open_table(table.path)
    assert again.positions([ORDERS, TopicPartition("orders", 1)]).offsets == {ORDERS: 25}
    assert offsets(table.path) == list(range(25))
    assert sum(file.rows for file in again.files()) == 25


def test_the_slower_of_two_writers_commits_nothing(table: LakeTable) -> None:
    """Both read the same positions; what the second has written stays out of the table."""
    slow, fast = open_table(table.path), open_table(table.path)
    before = slow.positions([ORDERS])
    after = before.advanced([OffsetRange("orders", 0, 0, 7, TOPIC_ID)])
    files = write(slow, rows(0, 7))
    load(fast, 0, 10)
    with pytest.raises(LostRaceError, match="Another load"):
        slow.append(files, before, after, NOTE)
    assert offsets(table.path) == list(range(10))
    assert open_table(table.path).positions([ORDERS]).offsets == {ORDERS: 10}


def test_a_commit_about_something_else_in_between_does_no_harm(table: LakeTable) -> None:
    """Another topic's load, or new columns: the commit is made on top of it."""
    slow, other = open_table(table.path), open_table(table.path)
    before = slow.positions([ORDERS])
    after = before.advanced([OffsetRange("orders", 0, 0, 7, TOPIC_ID)])
    files = write(slow, rows(0, 7))
    clicks = Positions().advanced([OffsetRange("clicks", 3, 5, 8)])
    other.append(write(other, rows(100, 103)), Positions(), clicks, NOTE)
    slow.append(files, before, after, NOTE)
    wanted = {ORDERS: 7, TopicPartition("clicks", 3): 8}
    assert open_table(table.path).positions(wanted).offsets == wanted
    assert offsets(table.path) == [*range(7), 100, 101, 102]


def test_positions_move_without_rows(table: LakeTable) -> None:
    """A range may hold nothing but the markers of transactions."""
    table.append([], Positions(), Positions().advanced([OffsetRange("orders", 0, 0, 3, TOPIC_ID)]), NOTE)
    load(table, 3, 5)
    assert offsets(table.path) == [3, 4]
    assert open_table(table.path).positions([ORDERS]).offsets == {ORDERS: 5}


def test_a_topic_that_was_made_again_is_noticed(table: LakeTable) -> None:
    load(table, 0, 5)
    positions = open_table(table.path).positions([ORDERS])
    check_topic_ids(positions, {"orders": TOPIC_ID}, table.path)
    with pytest.raises(LakeError, match="deleted and created again"):
        check_topic_ids(positions, {"orders": "AAAAAAAAAAAAAAAAAAAAAQ"[::-1].replace("Q", "B")}, table.path)


def test_a_file_that_vanished_is_not_committed(table: LakeTable) -> None:
    files = write(table, rows(0, 5))
    os.unlink(table._written_place(files[0]))
    with pytest.raises(LakeError, match="missing"):
        table.append(files, Positions(), Positions({ORDERS: 5}), NOTE)
    assert open_table(table.path).positions([ORDERS]) == Positions()


def test_new_columns_are_added_and_old_rows_have_nulls_there(table: LakeTable) -> None:
    load(table, 0, 3)
    wider = arrow_schema().append(pa.field("country", pa.string()))
    table.add_columns(new_columns(table.schema(), wider, table.path))
    batch = rows(3, 5)
    wide = pa.RecordBatch.from_arrays([*batch.columns, pa.array(["AT", "CZ"])], schema=wider)
    before = table.positions([ORDERS])
    after = before.advanced([OffsetRange("orders", 0, 3, 5, TOPIC_ID)])
    table.append(write(table, wide), before, after, NOTE)
    found = read_table(open_table(table.path)).select(["offset", "country"]).to_pylist()
    assert sorted((row["offset"], row["country"]) for row in found) == [
        (0, None), (1, None), (2, None), (3, "AT"), (4, "CZ"),
    ]  # fmt: skip
    with pytest.raises(LakeError, match="Types of columns do not change"):
        new_columns(table.schema(), pa.schema([pa.field("country", pa.int64())]), table.path)


@pytest.mark.parametrize("format_name", FORMATS)
def test_files_are_divided_by_date(format_name: str, tmp_path: Path) -> None:
    """Each file holds one day, and no row is lost on the way; the day is that of UTC."""
    table = create_table(str(tmp_path / "lake"), format_name, arrow_schema(), ["date"])
    load(table, 0, 9, days=3)
    assert len(table.files()) == 3
    assert offsets(table.path) == list(range(9))
    if format_name != "iceberg":
        found = read_table(open_table(table.path)).select(["offset", "date"]).to_pylist()
        assert {str(row["date"]) for row in found if row["offset"] % 3 == 1} == {"2023-11-15"}
        assert open_table(table.path).partitioning.columns == ("date",)


@pytest.mark.parametrize("format_name", FORMATS)
def test_files_are_divided_by_a_column_whatever_is_in_it(format_name: str, tmp_path: Path) -> None:
    schema = arrow_schema().append(pa.field("name", pa.string()))
    names = ["a", "ä/ö", None, "x=y%20 z", "a"]
    table = create_table(str(tmp_path / "lake"), format_name, schema, ["name"])
    batch = pa.RecordBatch.from_arrays([*rows(0, 5).columns, pa.array(names)], schema=schema)
    table.append(write(table, batch), Positions(), Positions({ORDERS: 5}), NOTE)
    found = read_table(open_table(table.path)).select(["offset", "name"]).to_pylist()
    assert [row["name"] for row in sorted(found, key=lambda row: row["offset"])] == names
    assert len(table.files()) == 4


def test_offsets_outlive_the_history_of_a_delta_table(tmp_path: Path) -> None:
    """Delta removes old commits once they are in a checkpoint; what is only in their metadata goes with them."""
    table = create_table(str(tmp_path / "lake"), "delta", arrow_schema(), ())
    load(table, 0, 5)
    load(table, 5, 9)
    table.delta.create_checkpoint()  # type: ignore[attr-defined]
    for place in (tmp_path / "lake" / "_delta_log").glob("*[01].json"):
        place.unlink()
    again = open_table(table.path)
    assert again.positions([ORDERS]).offsets == {ORDERS: 9}
    check_topic_ids(again.positions([ORDERS]), {"orders": TOPIC_ID}, table.path)
    load(again, 9, 10)
    assert offsets(table.path) == list(range(10))


def test_new_columns_do_not_hide_another_writer(table: LakeTable) -> None:
    """A load that adds columns and one that does not, both from the same positions: one of them loses."""
    slow, fast = open_table(table.path), open_table(table.path)
    wider = arrow_schema().append(pa.field("country", pa.string()))
    slow.evolve(wider)
    before = slow.positions([ORDERS])
    files = write(slow, rows(0, 3))
    load(fast, 0, 2)
    with pytest.raises(LostRaceError):
        slow.append(files, before, before.advanced([OffsetRange("orders", 0, 0, 3, TOPIC_ID)]), NOTE)
    fast.evolve(wider)
    assert "country" in fast.schema().names and offsets(table.path) == [0, 1]


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_table_whose_creation_was_killed_is_made_again(format_name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    if format_name == "iceberg":
        (tmp_path / "lake" / "_moldau").mkdir(parents=True)
        open_catalog(path).create_namespace("lake")
    else:
        (tmp_path / "lake" / {"delta": "_delta_log", "parquet": "_moldau/commits"}[format_name]).mkdir(parents=True)
    with pytest.raises(NoTableError):
        open_table(path)
    table = open_or_create(path, format_name, arrow_schema(), ())
    load(table, 0, 3)
    assert offsets(path) == [0, 1, 2]
    with pytest.raises(LakeError, match="partitioned by nothing"):
        open_or_create(path, None, arrow_schema(), ["date"])


def test_a_table_of_another_format_or_a_full_folder_is_refused(tmp_path: Path) -> None:
    create_table(str(tmp_path / "lake"), "parquet", arrow_schema(), ())
    with pytest.raises(LakeError, match="is parquet, not delta"):
        open_table(str(tmp_path / "lake"), "delta")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(LakeError, match="not empty"):
        create_table(str(tmp_path / "full"), "delta", arrow_schema(), ())
    with pytest.raises(LakeError, match="There is no table"):
        open_table(str(tmp_path / "nowhere"))
    with pytest.raises(LakeError, match="no column colour"):
        create_table(str(tmp_path / "new"), "delta", arrow_schema(), ["colour"])
    with pytest.raises(LakeError, match="partitions need text"):
        create_table(str(tmp_path / "new"), "delta", arrow_schema(), ["value"])


def test_gaps_and_overlaps_are_refused_before_anything_is_written() -> None:
    here = Positions({ORDERS: 10})
    for start in (9, 11):
        with pytest.raises(LakeError, match="gap or write rows twice"):
            here.advanced([OffsetRange("orders", 0, start, 20)])


def test_the_second_run_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    with WriterLock(str(tmp_path), "a load of orders") as lock:
        assert is_held(lock.path)
        with pytest.raises(LakeError, match=f"a load of orders \\(process {os.getpid()}"):
            WriterLock(str(tmp_path), "another").acquire()
    assert not is_held(lock.path)
    with WriterLock(str(tmp_path), "another"):
        pass


class Killed(BaseException):
    """The process ends here, without any clean-up that a program could do."""


STEPS = ("link", "rename", "unlink", "makedirs", "fsync")


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The n-th call that changes the file system does not happen, nor does anything behind it."""
    calls: list[str] = []

    def guarded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if calls and calls[-1] == "killed":
                raise Killed
            calls.append(name)
            if len(calls) > step:
                calls.append("killed")
                raise Killed
            return original(*arguments, **more)

        return call

    for name in STEPS:
        monkeypatch.setattr(os, name, guarded(name, getattr(os, name)))
    monkeypatch.setattr(builtins, "open", guarded("open", builtins.open))
    return calls


def test_a_kill_at_each_step_of_a_parquet_commit_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run finds either the rows and their offsets or neither, and readers of the folder never see more."""
    outcomes = set()
    for step in range(40):
        path = str(tmp_path / f"lake{step}")
        table = create_table(path, "parquet", arrow_schema(), ["date"])
        load(table, 0, 4, days=2)
        files = write(table, rows(4, 10, days=2))
        before = table.positions([ORDERS])
        after = before.advanced([OffsetRange("orders", 0, 4, 10, TOPIC_ID)])
        with monkeypatch.context() as patch:
            calls = kill_at(step, patch)
            try:
                table.append(files, before, after, NOTE)
            except Killed:
                pass
        visible = set(visible_offsets(path))
        found = open_table(path)
        position = found.positions([ORDERS]).offsets[ORDERS]
        assert position in (4, 10)
        assert offsets(path) == list(range(position)) == sorted(visible_offsets(path))
        assert visible <= set(range(position))
        if position == 4:
            load(found, 4, 10)
        assert offsets(path) == list(range(10))
        outcomes.add((position, len(visible)))
        if "killed" not in calls:
            break
    else:
        raise AssertionError("the commit never came to its end")
    # Before the commit, with none, some and all of its files in their places.
    assert outcomes == {(4, 4), (10, 4), (10, 7), (10, 10)}


def visible_offsets(path: str) -> list[int]:
    """What a reader sees that lists the folder and skips names with an underscore, as Spark and Arrow do."""
    import pyarrow.parquet as parquet

    found: list[int] = []
    for place in Path(path).rglob("*.parquet"):
        if not any(part.startswith("_") for part in place.relative_to(path).parts):
            found += parquet.ParquetFile(place).read().column("offset").to_pylist()
    return found


def test_snapshots_shorten_the_history_of_a_parquet_table(tmp_path: Path) -> None:
    """Forty commits later the table still opens, with the same rows and positions."""
    table = create_table(str(tmp_path / "lake"), "parquet", arrow_schema(), ())
    for number in range(45):
        load(table, number, number + 1)
    assert len(os.listdir(tmp_path / "lake" / "_moldau" / "snapshots")) == 2
    assert offsets(table.path) == list(range(45))
    assert detect_format(table.path) == "parquet"
