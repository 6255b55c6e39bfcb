"""Runs of a query as Spark makes them, without Spark: batches, tasks, attempts, a checkpoint; steps can be held up.

A run goes on from the checkpoint, writes a batch with a few tasks, commits it, notes that in the checkpoint. It can be
stopped for good at any step of its driver, and several can be at work at once, in an order that a seed decides.
"""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from moldau.client.errors import ClientError
from moldau.spark.decisions import SinkError, Written
from moldau.spark.sink_driver import SinkDriver
from moldau.spark.sink_options import WriteOptions, write_options
from moldau.spark.sink_tasks import Place, write_in_transaction
from tests.pace import moment_ms, patience


class Crash(BaseException):
    """The process is gone: nothing catches this."""


class Steps:
    """Stands in front of an object and tells of each call of a method, before and after it."""

    def __init__(self, target: Any, tell: Callable[[str], None]) -> None:
        self._target = target
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found) or name == "close":
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            self._tell(f"before {name}")
            if name == "end_transactions" and len(arguments[0]) > 1:
                # One after the other, so that a stop can come in between.
                results = {}
                for key, value in arguments[0].items():
                    results.update(found({key: value}, *arguments[1:], **more))
                    self._tell(f"within {name}")
                return results
            result = found(*arguments, **more)
            self._tell(f"after {name}")
            return result

        return call


def options(bootstrap: str, topic: str, client: str, **more: str) -> WriteOptions:
    """client: another one for each process that is played, because a process keeps its producers."""
    given = {
        "kafka.bootstrap.servers": bootstrap,
        "kafka.client.id": client,
        "topic": topic,
        "delivery": "exactly-once",
        "kafka.max.block.ms": str(moment_ms(40_000)),
    }
    return write_options({**given, **{name.replace("_", "."): value for name, value in more.items()}})


def write_tasks(
    write: WriteOptions, query: str, batch: int, parts: Sequence[Sequence[str]], token: str | None = None
) -> list[Written]:
    """All tasks of a batch, one after the other; each has the values of one part."""
    token = token or secrets.token_hex(8)
    return [write_task(write, Place(query, batch, number, token), values) for number, values in enumerate(parts)]


def write_task(write: WriteOptions, place: Place, values: Sequence[str]) -> Written:
    rows = [pa.record_batch({"value": pa.array(values, pa.string())})]
    return write_in_transaction(write, place, rows, only_near=False)


def watched_driver(write: WriteOptions, query: str, tell: Callable[[str], None]) -> SinkDriver:
    driver = SinkDriver(write, query)
    driver._log = Steps(driver._log, tell)  # type: ignore[assignment]
    driver._admin = Steps(driver._admin, tell)  # type: ignore[assignment]
    return driver


def commit(
    write: WriteOptions, query: str, batch: int, written: Sequence[Written], tell: Callable[[str], None]
) -> None:
    with watched_driver(write, query, tell) as driver:
        driver.commit(batch, written)


class Turns:
    """Threads that go on one at a time, in an order that the seed decides."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._condition = threading.Condition()
        self._waiting: set[int] = set()
        self._alive: set[int] = set()
        self._turn: int | None = None

    def wait(self, who: int) -> None:
        with self._condition:
            self._waiting.add(who)
            self._turn = None if self._turn == who else self._turn
            self._give()
            self._condition.wait_for(lambda: self._turn == who)
            self._waiting.discard(who)

    def _give(self) -> None:
        if self._turn is None and self._waiting and self._waiting == self._alive:
            self._turn = self.random.choice(sorted(self._waiting))
            self._condition.notify_all()

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Runs all of them to their end; raises what one of them raised."""
        errors: list[BaseException] = []
        self._alive = set(range(len(works)))

        def body(who: int) -> None:
            try:
                self.wait(who)
                works[who]()
            except BaseException as error:
                errors.append(error)
            finally:
                with self._condition:
                    self._alive.discard(who)
                    self._turn = None if self._turn == who else self._turn
                    self._give()

        threads = [threading.Thread(target=body, args=(who,), daemon=True) for who in range(len(works))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(patience(300))
            assert not thread.is_alive(), "a run does not end"
        if errors:
            raise errors[0]


class Query:
    """A checkpoint and the input of each batch, for runs that share them."""

    def __init__(self, name: str, inputs: Sequence[Sequence[str]], turns: Turns) -> None:
        self.name = name
        self.inputs = inputs
        self.turns = turns
        self.committed = -1
        self.lives = 0
        self.crashes_left = 4

    def run(self, who: int, make_options: Callable[[int], WriteOptions]) -> None:
        """Starts the query again and again until all batches are committed."""
        while self.committed + 1 < len(self.inputs):
            self.lives += 1
            assert self.lives < 200, "the query never ends"
            write = make_options(self.lives)
            # Spark's driver has several processes for commits, and each keeps what it knows.
            drivers = [watched_driver(write, self.name, lambda _: self._step(who)) for _ in range(2)]
            try:
                while self.committed + 1 < len(self.inputs):
                    self._run_batch(who, write, self.committed + 1, self.turns.random.choice(drivers))
            except (Crash, SinkError, ClientError):
                self.turns.wait(who)  # dead; somebody starts it again
            finally:
                for driver in drivers:
                    driver.close()

    def _run_batch(self, who: int, write: WriteOptions, batch: int, driver: SinkDriver) -> None:
        chance = self.turns.random
        values = list(self.inputs[batch])
        chance.shuffle(values)
        cut = chance.randrange(len(values) + 1)
        parts = [values[:cut], values[cut:]]
        token = secrets.token_hex(8)
        written = []
        for number, part in enumerate(parts):
            place = Place(self.name, batch, number, token)
            self._step(who)
            if chance.random() < 0.2:
                write_task(write, place, part)  # an attempt whose report gets lost
                self._step(who)
            written.append(write_task(write, place, part))
        late = chance.random() < 0.2
        driver.commit(batch, written)
        if late:
            write_task(write, Place(self.name, batch, 0, token), parts[0])  # an executor that was given up
        self._step(who)
        if batch != self.committed + 1:
            raise SinkError("Spark: another run has written the commit log.")
        self.committed = batch

    def _step(self, who: int) -> None:
        self.turns.wait(who)
        if self.crashes_left and self.turns.random.random() < 0.04:
            self.crashes_left -= 1
            raise Crash
