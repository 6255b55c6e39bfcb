"""Loads that are killed at random moments leave every record in the table once.

MOLDAU_LAKE_KILLS says how often each of them is killed (default: 2); MOLDAU_LAKE_SEED repeats the choices of a run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from moldau.lake.maintenance import vacuum
from moldau.lake.open_table import open_table
from tests.interop.nodes import MoldauNode
from tests.lake.conftest import MakeTopic
from tests.lake.kill_runs import (
    Writer,
    check_every_record_once,
    check_newest_values,
    finish,
    inline_load,
    kill_again_and_again,
)

KILLS = int(os.environ.get("MOLDAU_LAKE_KILLS", "2"))
SEED = int(os.environ.get("MOLDAU_LAKE_SEED", str(random.SystemRandom().randrange(1 << 30))))
PARTITIONS = 3


@pytest.mark.parametrize("format_name", ["delta", "iceberg", "parquet"])
def test_a_load_that_is_killed_loads_every_record_once(
    node: MoldauNode, make_topic: MakeTopic, lake: str, tmp_path: Path, format_name: str
) -> None:
    """The process is killed; what it left behind is harmless, and vacuum removes it."""
    print(f"MOLDAU_LAKE_SEED={SEED}")
    topic = make_topic(PARTITIONS)
    make = inline_load(node.bootstrap, topic.name, lake, tmp_path / "load.log", format=format_name)
    writer = Writer(node.bootstrap, topic.name, PARTITIONS, SEED)
    writer.start()
    kill_again_and_again(make, lake, KILLS, random.Random(SEED))
    writer.end()
    finish(make)
    count = check_every_record_once(lake, node.bootstrap, topic.name, PARTITIONS)
    assert count == writer.sent
    vacuum(open_table(lake), 0)
    assert check_every_record_once(lake, node.bootstrap, topic.name, PARTITIONS) == count


def test_a_changelog_load_that_is_killed_keeps_the_newest_values(
    node: MoldauNode, make_topic: MakeTopic, lake: str, tmp_path: Path
) -> None:
    topic = make_topic(PARTITIONS)
    make = inline_load(node.bootstrap, topic.name, lake, tmp_path / "load.log", upsert=True, partition_by=[])
    writer = Writer(node.bootstrap, topic.name, PARTITIONS, SEED, keys=150)
    writer.start()
    kill_again_and_again(make, lake, KILLS, random.Random(SEED))
    writer.end()
    finish(make)
    assert check_newest_values(lake, node.bootstrap, topic.name, PARTITIONS) > 10
