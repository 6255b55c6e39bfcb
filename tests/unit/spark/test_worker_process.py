"""Worker processes of Spark keep what they have loaded out of the garbage collection after each task; others do not."""

from __future__ import annotations

import gc
import importlib.machinery
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from moldau.spark.worker_process import settle


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    settle.cache_clear()
    yield
    settle.cache_clear()
    gc.unfreeze()


def run_as(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    main.__spec__ = importlib.machinery.ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)


def test_a_worker_settles_once_for_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as("pyspark.daemon", monkeypatch)
    settle("read")
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    loaded = [[] for _ in range(5000)]  # type: ignore[var-annotated]
    settle("read")
    assert gc.get_freeze_count() <= frozen, "tasks leave garbage behind that must be found"
    settle("write")
    assert gc.get_freeze_count() > frozen + len(loaded) // 2, "what the first task of another kind has loaded stays too"


def test_other_programs_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_freeze_count()
    settle("read")
    run_as("notebook", monkeypatch)
    settle("write")
    assert gc.get_freeze_count() == before
