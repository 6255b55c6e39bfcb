"""Looking after tables: small files are joined, unused ones removed, old rows deleted, and positions stay."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from moldau.lake.errors import LakeError
from moldau.lake.lock import WriterLock
from moldau.lake.maintenance import describe, expire_rows, forget_topic, optimize, parse_age, vacuum
from moldau.lake.open_table import create_table, open_table
from moldau.lake.positions import Positions
from moldau.lake.table import LakeTable
from moldau.spark.planning import OffsetRange
from moldau.spark.rows import arrow_schema
from tests.lake.test_commits import FORMATS, NOTE, ORDERS, load, offsets, rows, write


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    """Six commits of three rows, each of two days: offsets are even on the first and odd on the second."""
    made = create_table(str(tmp_path / "lake"), request.param, arrow_schema(), ["date"])
    for number in range(6):
        load(made, number * 3, number * 3 + 3, days=2)
    return made


def data_files(path: str) -> int:
    """Parquet files on disk, wherever they are."""
    return sum(1 for _ in Path(path).rglob("*.parquet"))


def test_small_files_are_joined_and_nothing_else_changes(table: LakeTable) -> None:
    before = table.known_positions()
    assert len(table.files()) == 12
    done = optimize(table)
    assert (done.removed, done.added) == (12, 2)
    again = open_table(table.path)
    assert len(again.files()) == 2 and offsets(table.path) == list(range(18))
    assert again.positions([ORDERS]).offsets == before.offsets == {ORDERS: 18}
    assert optimize(again).added == 0
    load(again, 18, 20)
    assert offsets(table.path) == list(range(20))


def test_a_load_and_an_optimize_at_the_same_time(table: LakeTable) -> None:
    """The load's commit falls between the plan and the commit of the other, and the other way round."""
    loading, joining = open_table(table.path), open_table(table.path)
    before = loading.positions([ORDERS])
    files = write(loading, rows(18, 21))
    optimize(joining)
    loading.append(files, before, before.advanced([OffsetRange("orders", 0, 18, 21)]), NOTE)
    optimize(joining)
    assert offsets(table.path) == list(range(21))
    assert open_table(table.path).positions([ORDERS]).offsets == {ORDERS: 21}


def test_vacuum_removes_orphans_and_replaced_files(table: LakeTable) -> None:
    orphans = write(table, rows(100, 104, days=2))
    optimize(table)
    assert data_files(table.path) == 16
    listed = vacuum(table, 0, dry_run=True)
    assert len(listed) == 14 and data_files(table.path) == 16
    removed = vacuum(table, 0)
    assert sorted(removed) == sorted(listed) and data_files(table.path) == 2
    assert not any(os.path.exists(table._written_place(file)) for file in orphans)
    assert offsets(table.path) == list(range(18)) and open_table(table.path).positions([ORDERS]).offsets == {ORDERS: 18}


def test_vacuum_keeps_what_is_young(table: LakeTable) -> None:
    write(table, rows(100, 104))
    optimize(table)
    before = data_files(table.path)
    assert vacuum(table) == [] and data_files(table.path) == before


def test_vacuum_without_retention_waits_for_no_load(table: LakeTable) -> None:
    """Files of a load that runs are not in any commit yet."""
    with WriterLock(table.path, "a load of orders"):
        with pytest.raises(LakeError, match="in use by a load of orders"):
            vacuum(table, 1)
        assert vacuum(table, 48) == []


def test_old_rows_are_deleted_and_not_loaded_again(table: LakeTable) -> None:
    expire_rows(table, datetime(2023, 11, 15, tzinfo=UTC))
    kept = [number for number in range(18) if number % 2]
    assert offsets(table.path) == kept
    assert open_table(table.path).positions([ORDERS]).offsets == {ORDERS: 18}
    load(open_table(table.path), 18, 19)
    assert offsets(table.path) == [*kept, 18]


def test_a_description_tells_files_rows_offsets_and_commits(table: LakeTable) -> None:
    told = describe(open_table(table.path))
    assert (told.files, told.rows, told.small_files) == (12, 18, 12)
    assert told.bytes > 0 and told.partition_by == ("date",)
    assert told.positions.offsets == {ORDERS: 18}
    assert told.commits[0]["operation"] == "load" and told.commits[0]["details"] == {"rows": 1}
    assert told.schema.field("offset").type == "int64"


def test_a_topic_is_forgotten_and_begins_anew(table: LakeTable) -> None:
    forget_topic(table, "orders")
    again = open_table(table.path)
    assert again.known_positions() == again.positions([ORDERS]) == Positions()
    load(again, 0, 2)
    assert offsets(table.path) == sorted([*range(18), 0, 1])
    with pytest.raises(LakeError, match="never loaded from topic clicks"):
        forget_topic(again, "clicks")


def test_ages_are_read_and_nonsense_is_refused() -> None:
    assert [parse_age(text).total_seconds() for text in ("2d", "12h", "30m")] == [172800, 43200, 1800]
    for text in ("", "d", "10", "-1d", "1w"):
        with pytest.raises(LakeError, match="no time"):
            parse_age(text)
