"""An application of a simulated cluster that writes in transactions, and aborts many of them: for readers to ignore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.client.errors import ClientError
from moldau.client.produce.transaction_states import State
from moldau.client.produce.transactions import Operation
from moldau.client.results import TopicPartition
from moldau.sim.transactions.application import GaveUp, Script
from moldau.sim.transactions.producer_process import ProducerProcess

if TYPE_CHECKING:
    from moldau.sim.share.world import ShareWorld

WAIT_MS_MAX = 8000
TIMEOUT_MS = 1500
STEP_MS = (5, 80)


class ShareWriter:
    """One transactional id; when its process fails, another one begins."""

    def __init__(self, setting: ShareWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.rng = setting.world.derived_rng(f"writer {name}")
        self.lives = 0
        self.number = 0
        self.ended = 0
        self.process: ProducerProcess | None = None
        self._script: Script | None = None
        self.world.schedule(self.rng.randint(0, 300), self.tick)

    @property
    def is_done(self) -> bool:
        return self.process is None

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(*STEP_MS), self.tick)
        if self._script is None:
            if self.setting.quiet or not self.setting.is_begun:
                return
            self.lives += 1
            self.process = ProducerProcess(self.setting, f"{self.name}.{self.lives}", self.name, TIMEOUT_MS, None)
            self.setting.add_machine(self.process.machine)
            self._script = self._run(self.process)
        try:
            next(self._script)
        except (StopIteration, ClientError, GaveUp) as problem:
            self.world.note(f"{self.name}.{self.lives} ends: {problem!r}")
            if self.process is not None:
                self.process.die()
            self.process = self._script = None

    def _run(self, process: ProducerProcess) -> Script:
        yield from self._wait(process.init())
        while not self.setting.quiet:
            yield from self._transaction(process)

    def _transaction(self, process: ProducerProcess) -> Script:
        process.begin()
        try:
            for _ in range(self.rng.choice((1, 2, 4))):
                topic = self.rng.choice(self.setting.model.present())
                place = TopicPartition(topic.name, self.rng.randrange(len(topic.partitions)))
                for _ in range(self.rng.choice((1, 3))):
                    self.number += 1
                    process.send(place, b"%s/%d" % (self.name.encode(), self.number))
                yield
            if self.rng.random() < 0.05:
                raise GaveUp("dies in a transaction")
            yield from self._wait(process.commit() if self.rng.random() < 0.5 else process.abort())
            self.ended += 1
        except ClientError:
            if process.manager.state is not State.ABORTABLE_ERROR:
                raise
            yield
            yield from self._wait(process.abort())

    def _wait(self, operation: Operation) -> Script:
        deadline_ms = self.world.now_ms + WAIT_MS_MAX
        while not operation.done:
            if self.world.now_ms > deadline_ms and self.process is not None:
                raise GaveUp(f"{operation.name}() takes too long")
            yield
        assert self.process is not None
        self.process.manager.forget_operation(operation)
        if operation.error is not None:
            raise operation.error
