"""Compaction on the simulated disk: random records, transactions, tombstones, crashes at every step of the swap.

MOLDAU_COMPACTION_RECORDS is how many records the large logs get together, MOLDAU_COMPACTION_STEPS how many seeds are
crashed at each step.
"""

from __future__ import annotations

import itertools
import os
import random

import pytest

from moldau.records.walk import Record
from moldau.sim.kernel.world import Violation
from moldau.sim.logs.compaction_model import Appended, CompactionModel, LogContent
from moldau.sim.logs.compaction_world import LARGE, TOPIC, CompactionWorld
from tests.sim.seeds import SEEDS

LARGE_RECORDS = int(os.environ.get("MOLDAU_COMPACTION_RECORDS", "60000"))
STEP_SEEDS_COUNT = int(os.environ.get("MOLDAU_COMPACTION_STEPS", "1"))
FIRST_STEP_SEED = 550  # one of few steps
POWER_LOSSES = 1 if STEP_SEEDS_COUNT == 1 else 3  # what survives one is a matter of chance


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_last_stays_and_nothing_comes_back(seed: int) -> None:
    world = CompactionWorld(seed)
    world.run(25)
    assert world.runs + world.crashes == 25


def test_large_logs() -> None:
    """Segments of thousands of records, maps that are too small for all keys, many rounds."""
    records = compactions = 0
    for seed in itertools.count(1000):
        world = CompactionWorld(seed, LARGE)
        while records + world.model.appended_total < LARGE_RECORDS and world.runs < 30:
            world.run(1)
        records += world.model.appended_total
        compactions += world.compactions
        if records >= LARGE_RECORDS:
            break
    assert compactions > 0


def prepared(seed: int) -> CompactionWorld:
    """A log with several compactions behind it, and something to compact."""
    world = CompactionWorld(seed, crashes=False)
    world.run(3)
    while world.log.active.base_offset <= world.logs.checkpoints.cleaned_to.get((TOPIC, 0), 0):
        world.fill()
    world.settle()
    return world


def steps_of(seed: int) -> int:
    world = prepared(seed)
    world.compact()
    world.check()
    return world.swap_steps


@pytest.mark.parametrize("seed", range(FIRST_STEP_SEED, FIRST_STEP_SEED + STEP_SEEDS_COUNT))
def test_a_crash_at_any_step_of_the_swap(seed: int) -> None:
    """Each change of the disk from the first rename to the checkpoint: the old state or the new one, and it goes on."""
    steps = steps_of(seed)
    assert steps >= 10, "two renames for each of three files, their folder, the checkpoint"
    for step in range(1, steps + 1):
        for chance in range(POWER_LOSSES):
            world = prepared(seed)
            world.rng = random.Random(step * 100 + chance)
            world.leave_something_behind()
            world.compact(crash_in_swap=step)
            assert world.crashes == 1, f"seed {seed}: nothing happens in step {step} of {steps}"
            world.check()
            world.run(1)
            world.restart()
            world.check()


# The model itself must be able to fail


def model_with(*records: tuple[int, bytes, bytes | None]) -> tuple[CompactionModel, list[Appended]]:
    model = CompactionModel(1000)
    appended = [Appended(offset, key, value, 7) for offset, key, value in records]
    model.append(appended, -1, False)
    return model, appended


def content(*records: tuple[int, bytes, bytes | None]) -> LogContent:
    found = LogContent([])
    for offset, key, value in records:
        found.records[offset] = Record(offset, 7, key, value, [])
    return found


ROWS = [(0, b"a", b"1"), (1, b"b", b"1"), (2, b"a", b"2"), (3, b"b", None)]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([ROWS[0], ROWS[1], ROWS[3]], "the last value of b'a' at 2 is there"),
        ([ROWS[2]], "the tombstone of b'b' at 3 stays for its time"),
        ([ROWS[0], ROWS[1], (2, b"a", b"3"), ROWS[3]], "the record at 2 is what was appended there"),
        ([*ROWS, (4, b"c", b"1")], "what was removed does not come back"),
    ],
)
def test_the_model_notices(rows: list[tuple[int, bytes, bytes | None]], sentence: str) -> None:
    model, _ = model_with(*ROWS)
    model.compacted(4, 100)
    with pytest.raises(Violation, match=sentence):
        model.check(content(*rows), 4, 1000)


def test_the_model_notices_what_comes_back() -> None:
    model, _ = model_with(*ROWS)
    model.compacted(4, 100)
    model.check(content(*ROWS[2:]), 4, 200)
    with pytest.raises(Violation, match="what was removed does not come back"):
        model.check(content(ROWS[0], *ROWS[2:]), 4, 200)
    model, _ = model_with(*ROWS)
    model.compacted(4, 100)
    with pytest.raises(Violation, match="no older value of b'b' comes back"):
        model.check(content(ROWS[1], ROWS[2]), 4, 1100)


def test_the_model_notices_what_readers_of_committed_records_would_see() -> None:
    model, _ = model_with(*ROWS)
    model.append([Appended(4, b"c", b"1", 7)], 1, True)
    with pytest.raises(Violation, match="nothing of an open transaction goes"):
        model.check(content(*ROWS), 0, 0)
    model.end_transaction(1, False)
    with pytest.raises(Violation, match="sees no aborted one"):
        model.check(content(*ROWS, (4, b"c", b"1")), 0, 0)
    found = content(*ROWS, (4, b"c", b"1"))
    found.aborted = {3, 4}
    with pytest.raises(Violation, match="sees every committed one"):
        model.check(found, 0, 0)
