"""What is done to all logs from time to time is done to a bounded number of them in a turn, and to all in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moldau.records.clocks import NEVER_MS
from moldau.storage import log_rounds
from moldau.storage.log_manager import LogManager
from moldau.storage.log_rounds import COLLECTED_PER_TURN, KEPT_PER_TURN, PRODUCERS_PER_TURN, Lines, LogRounds
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, FaultyDisk, append, config


class StubProducers:
    def __init__(self, count: int) -> None:
        self.entries = dict.fromkeys(range(count), 0)
        self.guards: dict[int, int] = {}
        self.expired_with: list[int] = []

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        self.expired_with.append(expiration_ms)
        return 0


class StubRetired:
    def __init__(self, is_empty: bool) -> None:
        self.is_empty = is_empty


class StubDirectory:
    path = "/data"


class StubLog:
    """As much of a log as rounds ask for; counts what is done to it."""

    def __init__(self, number: int, unflushed: bool = False, retired: bool = False, producers: int = 0) -> None:
        self.topic, self.partition = "topic", number
        self.unflushed_since_ms = 1 if unflushed else -1
        self.retired = StubRetired(not retired)
        self.producers = StubProducers(producers)
        self.log_directory = StubDirectory()
        self.kept = 0

    def housekeeping(self, now_ms: int) -> None:
        self.kept += 1


class World:
    def __init__(self, logs: list[StubLog]) -> None:
        self.logs: Any = logs
        self.gone: set[int] = set()
        self.written: list[Lines] = []
        self.rounds = LogRounds(lambda log: log.partition not in self.gone, self.written.append)
        self.now_ms = 1000

    def run(self, measure: Any) -> list[int]:
        """Polls until the round is over; what `measure` grew by in each turn."""
        grown: list[int] = []
        while True:
            before = measure()
            deadline_ms = self.rounds.poll(self.now_ms)
            grown.append(measure() - before)
            if deadline_ms == NEVER_MS:
                return grown
            assert deadline_ms > self.now_ms
            self.now_ms = deadline_ms


def test_only_logs_that_need_something_are_touched_and_not_too_many_in_a_turn() -> None:
    logs = [StubLog(n, unflushed=n % 3 == 0, retired=n % 3 == 1) for n in range(3000)]
    world = World(logs)
    world.rounds.begin_housekeeping(world.logs)
    turns = world.run(lambda: sum(log.kept for log in logs))
    assert max(turns) <= KEPT_PER_TURN
    assert [log.kept for log in logs] == [1 if n % 3 < 2 else 0 for n in range(3000)]


def test_a_round_that_is_not_over_is_not_begun_again() -> None:
    logs = [StubLog(n, unflushed=True) for n in range(3 * KEPT_PER_TURN)]
    world = World(logs)
    world.rounds.begin_housekeeping(world.logs)
    world.rounds.poll(world.now_ms)
    world.rounds.begin_housekeeping(world.logs)
    world.run(lambda: 0)
    assert {log.kept for log in logs} == {1}
    world.rounds.begin_housekeeping(world.logs)
    world.run(lambda: 0)
    assert {log.kept for log in logs} == {2}


def test_a_log_that_went_meanwhile_is_left_alone() -> None:
    logs = [StubLog(n, unflushed=True) for n in range(2 * KEPT_PER_TURN)]
    world = World(logs)
    world.rounds.begin_housekeeping(world.logs)
    world.rounds.begin_high_watermarks(world.logs, lambda log: 5)
    world.gone = {0, 2 * KEPT_PER_TURN - 1}
    world.run(lambda: 0)
    assert [log.partition for log in logs if not log.kept] == sorted(world.gone)
    assert len(world.written[0]["/data"]) == len(logs) - 2


def test_producers_expire_some_logs_at_a_time() -> None:
    logs = [StubLog(n, producers=1000) for n in range(50)] + [StubLog(n) for n in range(50, 100)]
    world = World(logs)
    world.rounds.begin_expiration(world.logs, 77)
    turns = world.run(lambda: sum(1000 * len(log.producers.expired_with) for log in logs))
    assert max(turns) <= PRODUCERS_PER_TURN
    assert [log.producers.expired_with for log in logs] == [[77]] * 50 + [[]] * 50


def test_high_watermarks_are_collected_in_turns_and_written_once_if_they_changed() -> None:
    logs = [StubLog(n) for n in range(3 * COLLECTED_PER_TURN + 1)]
    world = World(logs)
    asked: list[int] = []

    def high_watermark_of(log: Any) -> int:
        asked.append(log.partition)
        return 10 * int(log.partition)

    for _ in range(2):
        world.rounds.begin_high_watermarks(world.logs, high_watermark_of)
        assert max(world.run(lambda: len(asked))) == COLLECTED_PER_TURN
    assert len(asked) == 2 * len(logs)
    assert world.written == [{"/data": [f"topic {n} {10 * n}" for n in range(len(logs))]}]
    world.rounds.begin_high_watermarks(world.logs[:5], high_watermark_of)
    world.run(lambda: 0)
    assert world.written[1:] == [{"/data": [f"topic {n} {10 * n}" for n in range(5)]}]


def test_a_log_manager_works_its_rounds_off(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(log_rounds, "KEPT_PER_TURN", 2)
    logs = LogManager(FaultyDisk(), [str(tmp_path)], lambda topic: config(flush_ms=1000))
    logs.load(NOW_MS)
    for index in range(5):
        append(logs.create("t", index, TOPIC_ID, NOW_MS), b"value")
    flushed = [log.flushing.total for log in logs.logs.values()]
    now_ms = NOW_MS + 2000
    logs.housekeeping(now_ms)
    assert sum(log.flushing.total for log in logs.logs.values()) == sum(flushed) + 2
    while (deadline_ms := logs.rounds.poll(now_ms)) != NEVER_MS:
        now_ms = deadline_ms
    assert [log.recovery_point for log in logs.logs.values()] == [1] * 5
