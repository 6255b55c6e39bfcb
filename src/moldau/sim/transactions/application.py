"""Applications of a simulated cluster that write in transactions, die between any two steps, and come back as zombies.

An application is one transactional id. Its instances are processes with Moldau's own producer; most of the time there
is one. Somebody may believe that it is dead and start the next while it lives, or is only stopped: then one of them is
a zombie, and nothing that it does may have an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from moldau.client.errors import ClientError
from moldau.client.produce.transaction_states import State
from moldau.client.produce.transactions import Operation
from moldau.client.results import TopicPartition
from moldau.sim.transactions.ledger import ABORT, COMMIT, Attempt, Place
from moldau.sim.transactions.producer_process import ProducerProcess

if TYPE_CHECKING:
    from moldau.sim.transactions.world import TransactionWorld

STEP_MS = (2, 60)
INSTANCES_MAX = 3
WAIT_MS_MAX = 8000

Script = Generator[None, None, None]
"""Every yield is a step: whatever may happen to a process happens between two of them."""


class GaveUp(Exception):
    """The instance is of no use any more, and ends."""


class Instance:
    """One process of an application."""

    step_ms = STEP_MS

    def __init__(self, application: Application, number: int) -> None:
        setting = application.setting
        self.application = application
        self.setting = setting
        self.world = setting.world
        self.ledger = setting.ledger
        self.name = f"{application.name}.{number}"
        self.process = ProducerProcess(
            setting,
            self.name,
            application.name,
            None if application.is_two_phase else application.timeout_ms,
            application.version_max,
        )
        self.rng = self.process.rng
        self._script = self.run()
        self._incarnation = 0
        self.world.note(f"{self.name} begins")
        self.world.schedule(0, self._tick)

    @property
    def alive(self) -> bool:
        return self.process.alive

    def _tick(self) -> None:
        if not self.alive:
            return
        if self.process.stopped:
            self.world.schedule(50, self._tick)
            return
        self._note_epoch()
        try:
            next(self._script)
        except StopIteration:
            self.die("is done")
        except (ClientError, GaveUp) as problem:
            self.die(f"gives up: {problem}")
        else:
            self.world.schedule(self.rng.randint(*self.step_ms), self._tick)

    def _note_epoch(self) -> None:
        manager = self.process.manager
        if manager.incarnation != self._incarnation:
            self._incarnation = manager.incarnation
            self.ledger.on_epoch(self.name, manager.producer_id, manager.producer_epoch)

    def die(self, why: str) -> None:
        if self.alive:
            self.world.note(f"{self.name} {why}")
            self.process.die()

    # The script

    def run(self) -> Script:
        yield from self._begin()
        while not self.setting.quiet:
            yield from self._transaction(self._fill)

    def _begin(self) -> Script:
        yield from self._wait(self.process.init())
        manager = self.process.manager
        self._note_epoch()
        self.ledger.on_begun(manager.producer_id, manager.producer_epoch)

    def _wait(self, operation: Operation) -> Script:
        """Until the call has ended; raises its error. Nobody waits for ever."""
        deadline_ms = self.world.now_ms + WAIT_MS_MAX
        while not operation.done:
            if self.world.now_ms > deadline_ms:
                raise GaveUp(f"{operation.name}() takes too long")
            yield
        self.process.manager.forget_operation(operation)
        if operation.error is not None:
            raise operation.error

    def _wait_for_silence(self) -> Script:
        """Version 1 knows the requests of a transaction from those of the next by nothing: none may come late."""
        while self.application.is_first_version and not self.setting.is_silent(self.process):
            yield

    def _transaction(self, fill: Callable[[Attempt], Script]) -> Generator[None, None, bool]:
        """One attempt, and the abort where it fails and that is still possible; whether it was committed."""
        yield from self._wait_for_silence()
        process = self.process
        attempt = self.ledger.begin(self.name)
        process.begin()
        try:
            yield from fill(attempt)
            yield from self._end(attempt)
        except ClientError as problem:
            self.world.note(f"{self.name}: {problem} ({process.manager.state.value}), {attempt!r}")
            if process.manager.state is not State.ABORTABLE_ERROR:
                raise
            yield
            yield from self._wait(process.abort())
            self.ledger.on_told(attempt, ABORT)
        self.setting.ended_transactions += 1
        return attempt.told == COMMIT

    def _end(self, attempt: Attempt) -> Script:
        attempt.wanted = self._wish()
        self.world.note(f"{self.name} asks for {attempt!r}")
        process = self.process
        yield from self._wait(process.commit() if attempt.wanted == COMMIT else process.abort())
        self.ledger.on_told(attempt, attempt.wanted)

    def _wish(self) -> str:
        return COMMIT if self.rng.random() < 0.8 else ABORT

    def _fill(self, attempt: Attempt) -> Script:
        """Writes to some partitions, in a few rounds."""
        places = self.rng.sample(self.application.places, self.rng.randint(1, len(self.application.places)))
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            for place in places[: self.rng.randint(1, len(places))]:
                for _ in range(self.rng.choice((1, 1, 2, 9))):
                    self._send(attempt, place, b"x" * self.rng.choice((0, 30)))
            yield
        if self.rng.random() < 0.1:
            yield from self._dawdle()

    def _send(self, attempt: Attempt, place: Place, rest: bytes) -> None:
        self.process.send(TopicPartition(*place), attempt.value(place, rest))

    def _dawdle(self) -> Script:
        """Sometimes longer than the transaction may take."""
        until_ms = self.world.now_ms + self.rng.choice((300, 800, 2000))
        while self.world.now_ms < until_ms:
            yield


class Application:
    """One transactional id, and who runs under it."""

    is_two_phase = False

    def __init__(self, setting: TransactionWorld, name: str, places: list[Place]) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.places = places
        self.rng = setting.world.derived_rng(f"application {name}")
        self.timeout_ms = self.rng.choice((1000, 3000))
        self.version_max = 1 if self.rng.random() < 0.4 and not self.is_two_phase else None
        self.is_first_version = self.version_max is not None or setting.transaction_version < 2
        self.instances: list[Instance] = []
        self.started = 0
        self.world.note(
            f"{name}: transaction version {1 if self.is_first_version else 2}, timeout {self.timeout_ms} ms"
        )
        self.world.schedule(self.rng.randint(0, 300), self.tick)

    def new_instance(self) -> Instance:
        return Instance(self, self.started)

    def tick(self) -> None:
        if self.setting.finished or self.setting.quiet:
            return
        self.world.schedule(self.rng.randint(20, 150), self.tick)
        self.instances = [instance for instance in self.instances if instance.alive]
        if not self.setting.is_begun:
            return
        draw = self.rng.random()
        if not self.instances:
            self.start()
        elif draw < 0.03:
            self.rng.choice(self.instances).die("dies")
        elif draw < 0.05 and len(self.instances) < INSTANCES_MAX:
            self._doubt(self.instances[-1])

    def start(self) -> Instance:
        self.started += 1
        instance = self.new_instance()
        self.instances.append(instance)
        return instance

    def _doubt(self, instance: Instance) -> None:
        """Somebody takes it for dead, and starts the next."""
        if self.rng.random() < 0.6:
            self.world.note(f"{instance.name} is stopped, and taken for dead")
            instance.process.stop()
            self.world.schedule(self.rng.choice((100, 1000, 3000)), instance.process.go_on)
        self.setting.zombies += 1
        self.start()

    def end(self) -> None:
        """No more transactions: what is open is finished, or left as it is."""
        for instance in self.instances:
            if instance.alive and self.rng.random() < 0.5:
                instance.die("dies")
            elif instance.process.stopped:
                instance.process.go_on()


class HastyInstance(Instance):
    """Begins with the next transaction at once, and writes to all partitions in many small requests."""

    step_ms = (1, 4)

    def _fill(self, attempt: Attempt) -> Script:
        for _ in range(self.rng.randint(3, 12)):
            for place in self.application.places:
                self._send(attempt, place, b"")
            yield


class HastyApplication(Application):
    def new_instance(self) -> Instance:
        return HastyInstance(self, self.started)
