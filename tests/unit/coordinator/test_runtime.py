"""The runtime of the coordinators: who is answered when, what a failure leaves behind, loading, timers, leadership."""

from __future__ import annotations

from collections.abc import Callable

from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import ACTIVE, FAILED
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.primitives import Message
from tests.unit.coordinator.memory_log import MemoryLog

INDEX = 3
EPOCH = 5
LOAD_BYTES = 200


class Words(CoordinatorMachine):
    """Remembers words by key; `poison` cannot be replayed."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.words: dict[bytes, bytes] = {}
        self.pending: list[tuple[int, bytes, bytes]] = []
        self.unloaded = False
        self.seen_by_callback: list[dict[bytes, bytes]] = []

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int, producer_epoch: int) -> None:
        if value == b"poison":
            raise ValueError("poison")
        if value is None:
            self.words.pop(key, None)
        elif producer_id >= 0:
            self.pending.append((producer_id, key, value))
        else:
            self.words[key] = value

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        for one, key, value in self.pending:
            if one == producer_id and committed:
                self.words[key] = value
        self.pending = [entry for entry in self.pending if entry[0] != producer_id]

    def on_loaded(self, image: MetadataImage, now_ms: int) -> list[Outcome]:
        return []

    def on_unloaded(self, now_ms: int) -> None:
        self.unloaded = True

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> list[Outcome]:
        return [Outcome([(b"metadata", b"seen")])]

    def put(self, key: bytes, value: bytes | None, **fields: object) -> Outcome:
        return Outcome([(key, value)], HeartbeatResponse(), **fields)  # type: ignore[arg-type]

    def look(self) -> Outcome:
        return Outcome(response=HeartbeatResponse(throttle_time_ms=len(self.words)))


class World:
    """One runtime with one shard; `answers` has what callers got, in order."""

    def __init__(self, commits_at_once: bool = True, lead: bool = True) -> None:
        self.now_ms = 1000
        self.machines: list[Words] = []
        self.log = MemoryLog(commits_at_once)
        self.runtime = CoordinatorRuntime("__words", self._make, LOAD_BYTES, 0)
        self.deadlines: list[int] = []
        self.runtime.on_new_deadline = self.deadlines.append
        self.answers: list[Message | KafkaError] = []
        if lead:
            self.lead()

    def _make(self, index: int, timers: Timers) -> Words:
        assert index == INDEX
        self.machines.append(Words(timers))
        return self.machines[-1]

    def lead(self, epoch: int = EPOCH) -> None:
        self.runtime.lead(INDEX, epoch, self.log, MetadataImage(), self.now_ms)

    @property
    def machine(self) -> Words:
        return self.machines[-1]

    @property
    def codes(self) -> list[int]:
        """0 for every answer that is none of the errors."""
        return [answer.code if isinstance(answer, KafkaError) else 0 for answer in self.answers]

    def run(self, verb: Callable[[Words], Outcome]) -> None:
        def typed(machine: CoordinatorMachine) -> Outcome:
            assert isinstance(machine, Words)
            return verb(machine)

        self.runtime.run(INDEX, typed, self.answers.append, self.now_ms)

    def put(self, key: bytes, value: bytes | None) -> None:
        self.run(lambda machine: machine.put(key, value))

    def poll(self, ms: int = 0) -> int:
        self.now_ms += ms
        return self.runtime.poll(self.now_ms)


def test_an_answer_waits_until_its_records_are_committed() -> None:
    world = World(commits_at_once=False)
    world.put(b"a", b"1")
    assert world.answers == [] and world.machine.words == {b"a": b"1"}
    world.log.commit(world.now_ms)
    assert world.codes == [0]


def test_an_answer_that_only_read_waits_for_what_it_has_seen() -> None:
    """Otherwise a failover could take back what a client has been told."""
    world = World(commits_at_once=False)
    world.put(b"a", b"1")
    world.run(lambda machine: machine.look())
    assert world.answers == []
    world.log.commit(world.now_ms)
    assert world.codes == [0, 0]
    world.run(lambda machine: machine.look())
    assert len(world.answers) == 3, "nothing is uncommitted any more"


def test_answers_keep_the_order_of_their_records() -> None:
    world = World(commits_at_once=False)
    for key in (b"a", b"b", b"c"):
        world.put(key, b"1")
    world.log.commit(world.now_ms, 2)
    assert len(world.answers) == 2
    world.log.commit(world.now_ms, 3)
    assert len(world.answers) == 3


def test_an_append_that_fails_changes_nothing() -> None:
    world = World()
    world.log.failure = KafkaError(errors.NOT_ENOUGH_REPLICAS)
    world.put(b"a", b"1")
    assert world.codes == [errors.NOT_ENOUGH_REPLICAS] and world.machine.words == {}
    world.log.failure = None
    world.put(b"a", b"2")
    assert world.codes[-1] == 0 and world.machine.words == {b"a": b"2"}


def test_a_verb_that_refuses_writes_nothing() -> None:
    world = World()

    def refuse(machine: Words) -> Outcome:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID)

    world.run(refuse)
    assert world.codes == [errors.UNKNOWN_MEMBER_ID] and world.log.end == 0


def test_who_waits_too_long_is_told_so_and_what_was_written_stays() -> None:
    world = World(commits_at_once=False)
    world.put(b"a", b"1")
    assert world.deadlines[-1] == world.now_ms + 5000
    world.poll(4999)
    assert world.answers == []
    world.poll(1)
    assert world.codes == [errors.REQUEST_TIMED_OUT] and world.machine.words == {b"a": b"1"}
    world.log.commit(world.now_ms)
    assert len(world.answers) == 1, "nobody is answered twice"


def test_nothing_is_released_between_a_decision_and_its_replay() -> None:
    """The append of one verb commits the records of an earlier one: its callback must not see half a state."""
    world = World(commits_at_once=False)
    seen: list[dict[bytes, bytes]] = []

    def first(machine: Words) -> Outcome:
        return machine.put(b"a", b"1", on_written=lambda error, now_ms: seen.append(dict(machine.words)))

    world.run(first)
    world.log.commits_at_once = True
    world.put(b"b", b"2")
    assert seen == [{b"a": b"1", b"b": b"2"}] and world.codes == [0, 0]


def test_a_callback_that_fails_harms_nobody_else() -> None:
    world = World(commits_at_once=False)

    def fail(error: KafkaError | None, now_ms: int) -> None:
        raise ValueError("a bug")

    world.run(lambda machine: machine.put(b"a", b"1", on_written=fail))
    world.put(b"b", b"2")
    world.log.commit(world.now_ms)
    assert world.codes == [0]


def test_who_waits_when_leadership_goes_must_look_elsewhere() -> None:
    world = World(commits_at_once=False)
    world.put(b"a", b"1")
    world.runtime.resign(INDEX, world.now_ms)
    assert world.codes == [errors.NOT_COORDINATOR] and world.machine.unloaded
    world.log.commit(world.now_ms)
    assert len(world.answers) == 1
    world.put(b"b", b"2")
    assert world.codes == [errors.NOT_COORDINATOR, errors.NOT_COORDINATOR]


def test_the_next_leader_has_replayed_everything() -> None:
    """In steps, and nobody is served before the last of them."""
    world = World()
    for number in range(20):
        world.put(b"%d" % number, b"x" * 20)
    world.put(b"3", None)
    before = world.machine.words
    world.runtime.resign(INDEX, world.now_ms)
    world.lead(EPOCH + 2)
    assert world.machine.words == {}
    world.put(b"a", b"1")
    assert world.codes[-1] == errors.COORDINATOR_LOAD_IN_PROGRESS
    reads = world.log.reads
    assert world.poll() == world.now_ms, "there is more to load"
    assert world.log.reads == reads + 1, "one step a turn"
    while world.poll() == world.now_ms:
        pass
    assert world.machine.words == before and b"3" not in before
    world.put(b"a", b"1")
    assert world.codes[-1] == 0


def test_what_was_loaded_is_shown_once_it_is_committed() -> None:
    """A new leader has records that may not be on all replicas yet."""
    world = World(commits_at_once=False)
    world.put(b"a", b"1")
    world.runtime.resign(INDEX, world.now_ms)
    world.lead(EPOCH + 2)
    world.poll()
    world.poll()
    world.answers.clear()
    world.run(lambda machine: machine.look())
    assert world.answers == []
    world.log.commit(world.now_ms)
    assert world.codes == [0]


def test_the_next_epoch_of_the_same_leader_keeps_the_state() -> None:
    world = World(commits_at_once=False)
    world.put(b"a", b"1")
    world.lead(EPOCH + 1)
    assert len(world.machines) == 1 and world.answers == []
    world.log.commit(world.now_ms)
    assert world.codes == [0]
    world.lead(EPOCH + 3)
    assert len(world.machines) == 2, "somebody else may have led in between"
    world.lead(EPOCH + 2)
    assert len(world.machines) == 2, "that is old news"


def test_transactions_count_from_their_marker_on() -> None:
    world = World()
    world.run(lambda machine: machine.put(b"a", b"1", producer_id=7, producer_epoch=0))
    world.run(lambda machine: machine.put(b"b", b"1", producer_id=8, producer_epoch=0))
    world.log.add_marker(7, 0, commit=True)
    world.log.add_marker(8, 0, commit=False)
    world.runtime.resign(INDEX, world.now_ms)
    world.lead(EPOCH + 2)
    while world.poll() == world.now_ms:
        pass
    assert world.machine.words == {b"a": b"1"} and world.machine.pending == []


def test_a_log_that_cannot_be_replayed_has_no_coordinator() -> None:
    world = World(lead=False)
    other = World()
    other.put(b"a", b"1")
    other.run(lambda machine: machine.put(b"b", b"poison", replay=False))
    world.log = other.log
    world.lead()
    world.poll()
    assert world.runtime.shards[INDEX].state == FAILED
    world.put(b"c", b"1")
    assert world.codes == [errors.NOT_COORDINATOR]
    world.poll(60_000)


def test_what_was_written_but_not_replayed_is_loaded_anew() -> None:
    """Memory may differ from the log then; only the log counts. It fails again here, so nobody is served."""
    world = World()
    world.put(b"a", b"1")
    world.put(b"b", b"poison")
    assert world.codes == [0, errors.NOT_COORDINATOR] and world.machines[0].unloaded
    assert len(world.machines) == 2
    while world.poll() == world.now_ms:
        pass
    assert world.runtime.shards[INDEX].state == FAILED


def test_records_that_need_not_be_together_may_be_several_batches() -> None:
    world = World()
    world.log.batch_max = 400
    records = [(b"%d" % number, b"x" * 50) for number in range(20)]
    world.run(lambda machine: Outcome(list(records), HeartbeatResponse(), atomic=False))
    assert len(world.log.batches) > 4 and world.codes == [0]
    assert all(len(batch) <= 400 for batch in world.log.batches)
    assert world.machine.words == dict(records)


def test_a_timer_whose_records_cannot_be_written_is_due_again() -> None:
    world = World()
    world.machine.timers.schedule("t", world.now_ms + 100, lambda now_ms: Outcome([(b"timer", b"1")]))
    assert world.deadlines[-1] == world.now_ms + 100
    world.log.failure = KafkaError(errors.KAFKA_STORAGE_ERROR)
    world.poll(100)
    assert world.machine.words == {}
    world.log.failure = None
    world.poll(499)
    assert world.machine.words == {}
    world.poll(1)
    assert world.machine.words == {b"timer": b"1"}


def test_a_timer_that_fails_does_not_stop_the_others() -> None:
    world = World()

    def fail(now_ms: int) -> Outcome | None:
        raise ValueError("a bug")

    world.machine.timers.schedule("bad", world.now_ms + 10, fail)
    world.machine.timers.schedule("good", world.now_ms + 10, lambda now_ms: Outcome([(b"timer", b"1")]))
    world.poll(10)
    assert world.machine.words == {b"timer": b"1"}
    assert world.runtime.shards[INDEX].state == ACTIVE


def test_timers_end_with_the_shard() -> None:
    world = World()
    fired: list[int] = []

    def fire(now_ms: int) -> Outcome | None:
        fired.append(now_ms)
        return None

    world.machine.timers.schedule("t", world.now_ms + 10, fire)
    world.runtime.resign(INDEX, world.now_ms)
    world.poll(1000)
    assert fired == []


def test_a_change_of_the_metadata_may_be_written_down() -> None:
    world = World()
    world.runtime.on_metadata(MetadataDelta(MetadataImage()), MetadataImage(), world.now_ms)
    assert world.machine.words == {b"metadata": b"seen"}


def test_an_idle_runtime_has_nothing_to_do() -> None:
    world = World()
    assert world.poll() > world.now_ms + 1_000_000_000
