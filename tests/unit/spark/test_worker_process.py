"""Worker processes of Spark keep what they have loaded out of the garbage collection after each task; others do not."""

from __future__ import annotations

import gc
import importlib.machinery
import pickle
import socket
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from moldau.spark import worker_process
from moldau.spark.worker_process import AcknowledgesAtOnce, settle


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_process, "_modules_settled", 0)
    yield
    gc.unfreeze()


def run_as(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    main.__spec__ = importlib.machinery.ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)


def test_a_worker_settles_when_a_task_has_loaded_something(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as("pyspark.daemon", monkeypatch)
    settle()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    loaded = [[] for _ in range(5000)]  # type: ignore[var-annotated]
    settle()
    assert gc.get_freeze_count() <= frozen, "tasks leave garbage behind that must be found"
    monkeypatch.setitem(sys.modules, "loaded_by_a_later_task", ModuleType("loaded_by_a_later_task"))
    settle()
    assert gc.get_freeze_count() > frozen + len(loaded) // 2, "what a later task has loaded stays too"


def test_other_programs_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_freeze_count()
    settle()
    run_as("notebook", monkeypatch)
    settle()
    assert gc.get_freeze_count() == before


class Task(AcknowledgesAtOnce):
    def __init__(self, number: int) -> None:
        self.number = number


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux alone lets acknowledgements leave at once")
def test_a_task_that_is_unpacked_lets_acknowledgements_leave_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pickle.dumps(Task(7))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        assert pickle.loads(packed).number == 7
        assert not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK), "not one of Spark's processes"
        run_as("pyspark.daemon", monkeypatch)
        assert pickle.loads(packed).number == 7
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
        accepted, _ = server.accept()
        connection.close()
        assert accepted.recv(1) == b"", "nothing but its owner keeps a connection open"
        accepted.close()
