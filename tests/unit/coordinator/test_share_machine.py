"""The share coordinator's verbs: epochs that fence, records that are written, what replay makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.share.machine import ShareMachine
from moldau.coordinator.share.settings import ShareCoordinatorSettings
from moldau.coordinator.share.share_state import decode_share_key
from moldau.coordinator.share.state_batches import StateBatch
from moldau.coordinator.timers import Timers
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import PartitionRegistration, TopicImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import initialize_share_group_state_request as initialize_request
from moldau.protocol.messages import write_share_group_state_request as write_request
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.clocks import WallClock

TOPIC = bytes(range(16))
KEY = ("g", TOPIC, 0)


def image_of_topic() -> MetadataImage:
    """Three partitions of one topic."""
    image = MetadataImage()
    partitions = {index: PartitionRegistration((1,), (bytes(16),), (1,)) for index in range(3)}
    image.topics_by_id[TOPIC] = image.topics_by_name["t"] = TopicImage("t", TOPIC, partitions)
    return image


class Coordinator:
    """A machine whose outcomes are replayed at once, and kept to be replayed by another one."""

    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.timers = Timers()
        config = BrokerConfig({**single_node_values(), "log.dirs": "/data"}, warn=False)
        self.settings = ShareCoordinatorSettings(config)
        self.settings.updates_per_snapshot = updates_per_snapshot
        self.records: list[tuple[bytes, bytes | None]] = []
        self.machine = self.new_machine()

    def new_machine(self) -> ShareMachine:
        machine = ShareMachine(0, self.timers, self.settings, WallClock())
        for offset, (key, value) in enumerate(self.records):
            machine.replay(key, value, offset, -1, -1)
        machine.on_loaded(image_of_topic(), 1000)
        return machine

    def do(self, outcome: Outcome) -> Any:
        for key, value in outcome.records:
            self.machine.replay(key, value, len(self.records), -1, -1)
            self.records.append((key, value))
        return outcome.response

    def initialize(self, state_epoch: int = 1, start_offset: int = -1, now_ms: int = 1000) -> Any:
        asked = initialize_request.PartitionData(0, state_epoch, start_offset)
        return self.do(self.machine.initialize(KEY, asked, now_ms))

    def write(
        self,
        *rows: tuple[int, int, int, int],
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = 0,
        count: int = 0,
    ) -> Any:
        batches = [write_request.StateBatch(*row) for row in rows]
        asked = write_request.PartitionData(0, state_epoch, leader_epoch, start_offset, count, batches)
        return self.do(self.machine.write(KEY, asked, 2000))

    def kinds(self) -> list[int]:
        return [found[0] for found in (decode_share_key(key) for key, _ in self.records) if found is not None]


def code_of(action: Any) -> int:
    with pytest.raises(KafkaError) as caught:
        action()
    return caught.value.code


def test_a_state_is_initialized_written_and_read() -> None:
    coordinator = Coordinator()
    coordinator.initialize()
    coordinator.write((0, 9, 2, 1), (20, 29, 0, 2), start_offset=0, count=10)
    coordinator.write((5, 14, 4, 3), start_offset=3, count=12)
    answer: Any = coordinator.do(coordinator.machine.read(KEY, 0))
    assert (answer.state_epoch, answer.start_offset) == (1, 3)
    rows = [(row.first_offset, row.last_offset, row.delivery_state, row.delivery_count) for row in answer.state_batches]
    assert rows == [(3, 4, 2, 1), (5, 14, 4, 3), (20, 29, 0, 2)]


def test_a_restart_knows_what_was_written() -> None:
    coordinator = Coordinator(updates_per_snapshot=3)
    coordinator.initialize()
    for number in range(20):
        coordinator.write((number * 10, number * 10 + 9, 2, 1), start_offset=number, count=number)
    coordinator.do(coordinator.machine.read(KEY, 7))
    before, after = coordinator.machine.states[KEY], coordinator.new_machine().states[KEY]
    names = [name for name in dir(before) if not name.startswith("_") and not callable(getattr(before, name))]
    assert "leader_epoch_max" in names
    for name in names:
        assert name == "batches" or getattr(after, name) == getattr(before, name), name
    assert after.batches == before.batches == [StateBatch(19, 199, 2, 1)]
    assert coordinator.kinds().count(0) == 6, "a snapshot after every three updates"


def test_a_state_that_is_initialized_again_stays_as_it_is() -> None:
    """A group that heard no answer asks again; the second request may come when records were long accepted."""
    coordinator = Coordinator()
    coordinator.initialize(state_epoch=2)
    coordinator.write((0, 9, 2, 1), state_epoch=2, start_offset=0, count=10)
    for state_epoch in (2, 3):
        assert coordinator.initialize(state_epoch=state_epoch).error_code == 0
    assert code_of(lambda: coordinator.initialize(state_epoch=1)) == errors.FENCED_STATE_EPOCH
    state = coordinator.machine.states[KEY]
    assert (state.state_epoch, state.start_offset, state.batches) == (2, 0, [StateBatch(0, 9, 2, 1)])
    coordinator.initialize(state_epoch=3, start_offset=4)
    assert (coordinator.machine.states[KEY].start_offset, coordinator.machine.states[KEY].batches) == (4, [])


@pytest.mark.parametrize("updates_per_snapshot", [500, 1])
def test_a_late_copy_of_an_alteration_does_not_reset_what_was_done_since(updates_per_snapshot: int) -> None:
    """The first request was not answered in time and sent again; its first copy arrives when records were accepted."""
    coordinator = Coordinator(updates_per_snapshot)
    coordinator.initialize(state_epoch=1)
    coordinator.initialize(state_epoch=4, start_offset=10)
    coordinator.do(coordinator.machine.read(KEY, 3))
    assert coordinator.initialize(state_epoch=4, start_offset=10).error_code == 0, "it begins there already"
    assert coordinator.machine.states[KEY].leader_epoch == 3
    assert coordinator.initialize(state_epoch=4, start_offset=12).error_code == 0, "and nothing is lost by this"
    coordinator.initialize(state_epoch=4, start_offset=10)
    for end in (15, 20, 25):
        coordinator.write((end - 5, end - 1, 2, 1), state_epoch=4, leader_epoch=3, start_offset=end)
    for machine in (coordinator.machine, coordinator.new_machine()):
        coordinator.machine = machine
        refused = code_of(lambda: coordinator.initialize(state_epoch=4, start_offset=10))
        assert (refused, machine.states[KEY].start_offset) == (errors.FENCED_STATE_EPOCH, 25)
    coordinator.initialize(state_epoch=6, start_offset=10)
    assert coordinator.machine.states[KEY].start_offset == 10, "everybody has left: a later epoch begins anew"


def test_epochs_fence() -> None:
    coordinator = Coordinator()
    assert code_of(lambda: coordinator.machine.read(KEY, 0)) == errors.INVALID_REQUEST
    assert code_of(lambda: coordinator.write((0, 0, 2, 1))) == errors.INVALID_REQUEST
    coordinator.initialize(state_epoch=5)
    assert code_of(lambda: coordinator.initialize(state_epoch=4, start_offset=7)) == errors.FENCED_STATE_EPOCH
    assert coordinator.initialize(state_epoch=5, start_offset=0).error_code == 0
    coordinator.do(coordinator.machine.read(KEY, 3))
    assert code_of(lambda: coordinator.machine.read(KEY, 2)) == errors.FENCED_LEADER_EPOCH
    assert code_of(lambda: coordinator.write((0, 0, 2, 1), state_epoch=5, leader_epoch=2)) == errors.FENCED_LEADER_EPOCH
    assert code_of(lambda: coordinator.write((0, 0, 2, 1), state_epoch=4, leader_epoch=3)) == errors.FENCED_STATE_EPOCH
    assert code_of(lambda: coordinator.write((0, 0, 2, 1), state_epoch=9, leader_epoch=3)) == errors.FENCED_STATE_EPOCH
    coordinator.write((0, 0, 2, 1), state_epoch=5, leader_epoch=9)
    state = coordinator.machine.states[KEY]
    assert (state.state_epoch, state.leader_epoch) == (5, 3), "a write raises no epoch"
    assert coordinator.new_machine().states[KEY].leader_epoch == 3


def test_a_reset_does_not_let_a_deposed_leader_back_in() -> None:
    """Also after a restart."""
    coordinator = Coordinator()
    coordinator.initialize(state_epoch=1)
    coordinator.do(coordinator.machine.read(KEY, 3))
    coordinator.initialize(state_epoch=2, start_offset=0)
    for machine in (coordinator.machine, coordinator.new_machine()):
        assert machine.states[KEY].leader_epoch == 0
        assert code_of(lambda machine=machine: machine.read(KEY, 2)) == errors.FENCED_LEADER_EPOCH
    coordinator.do(coordinator.machine.read(KEY, 3))


def test_names_and_topics_are_checked() -> None:
    machine = Coordinator().machine
    negative = ("g", TOPIC, -1)
    assert code_of(lambda: machine.delete(negative)) == errors.INVALID_REQUEST
    assert code_of(lambda: machine.read_summary(negative)) == errors.INVALID_REQUEST
    for key in (("g", ZERO_UUID, 0), ("g", b"x" * 16, 0), ("g", TOPIC, 3)):
        assert code_of(lambda key=key: machine.delete(key)) == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_what_is_not_known_has_an_empty_summary_and_may_be_deleted() -> None:
    coordinator = Coordinator()
    answer: Any = coordinator.do(coordinator.machine.read_summary(KEY))
    assert (answer.start_offset, answer.delivery_complete_count, answer.error_code) == (-1, -1, 0)
    assert coordinator.do(coordinator.machine.delete(KEY)).error_code == 0 and coordinator.records == []
    coordinator.initialize(start_offset=7)
    answer = coordinator.do(coordinator.machine.read_summary(KEY))
    assert (answer.start_offset, answer.delivery_complete_count, answer.state_epoch) == (7, 0, 1)
    coordinator.do(coordinator.machine.delete(KEY))
    assert coordinator.machine.states == {} == coordinator.new_machine().states


def test_a_leader_that_knows_a_deleted_state_does_not_write_into_the_next_one() -> None:
    """A group that is deleted and made anew counts its epochs from the beginning: only reading tells its leaders."""
    coordinator = Coordinator()
    coordinator.initialize()
    coordinator.do(coordinator.machine.read(KEY, 0))
    coordinator.write((0, 9, 2, 1), start_offset=0)
    coordinator.do(coordinator.machine.delete(KEY))
    coordinator.initialize()
    for machine in (coordinator.machine, coordinator.new_machine()):
        coordinator.machine = machine
        assert code_of(lambda: coordinator.write((10, 19, 2, 1), start_offset=10)) == errors.FENCED_STATE_EPOCH
    assert coordinator.do(coordinator.machine.read(KEY, 0)).start_offset == -1
    assert coordinator.write((0, 1, 2, 1), start_offset=0).error_code == 0
    coordinator.machine = coordinator.new_machine()
    assert coordinator.write((2, 3, 2, 1), start_offset=2).error_code == 0


def test_a_write_that_was_overtaken_takes_nothing_back() -> None:
    """A leader that hears no answer writes again over another connection; the first request may come after the next."""
    coordinator = Coordinator()
    coordinator.initialize()
    coordinator.write((0, 4, 2, 1), start_offset=0)
    coordinator.write((7, 7, 2, 1), start_offset=5)
    assert code_of(lambda: coordinator.write((0, 4, 2, 1), start_offset=0)) == errors.FENCED_STATE_EPOCH
    for machine in (coordinator.machine, coordinator.new_machine()):
        state = machine.states[KEY]
        assert (state.start_offset, [batch.values() for batch in state.batches]) == (5, [(7, 7, 2, 1)])
    assert coordinator.write((5, 6, 2, 1), start_offset=-1).error_code == 0


def test_a_reset_forgets_what_was_in_flight() -> None:
    coordinator = Coordinator()
    coordinator.initialize()
    coordinator.write((0, 9, 0, 2))
    coordinator.initialize(state_epoch=2, start_offset=100)
    state = coordinator.machine.states[KEY]
    assert (state.start_offset, state.batches, state.snapshot_epoch, state.leader_epoch) == (100, [], 1, 0)
    assert code_of(lambda: coordinator.write((0, 9, 2, 2))) == errors.FENCED_STATE_EPOCH


def test_cold_states_get_a_snapshot_once() -> None:
    """So that what lies before it can be pruned."""
    coordinator = Coordinator()
    coordinator.initialize()
    coordinator.write((0, 9, 2, 1))
    interval = coordinator.settings.cold_interval_ms
    timer = coordinator.timers.take_due(1000 + interval)
    assert timer is not None
    outcome = timer.action(1000 + interval)
    assert outcome is not None
    coordinator.do(outcome)
    state = coordinator.machine.states[KEY]
    assert (state.snapshot_epoch, state.created_ms, state.written_ms) == (1, 1000, 1000 + interval)
    assert coordinator.machine.first_needed_offset() == 2
    timer = coordinator.timers.take_due(1000 + 3 * interval)
    assert timer is not None and timer.action(1000 + 3 * interval) is None
