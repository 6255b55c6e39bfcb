"""Bugs that share groups could have, each planted on its own: what the simulator is for is to find them.

Every one is a line or two that somebody might write, or leave out. They replace methods of interpreted classes, so
they cannot be planted into a compiled build.
"""

from __future__ import annotations

from typing import Any

import pytest

from moldau.coordinator.share import machine
from moldau.coordinator.share.machine import ShareMachine
from moldau.node.share import acknowledgement, reads, states, window
from moldau.node.share import partition as share_partition
from moldau.node.share.coordinator import ShareCoordinator
from moldau.node.share.dead_letters import DeadLetters
from moldau.node.share.partition import SharePartition
from moldau.node.share.record_states import ACQUIRED, AVAILABLE, GAP, REJECT, is_final
from moldau.node.share.runs import NO_CHANGE
from moldau.node.share.window import Window
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from tests.sim.worlds import Plant


def told_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    """An acknowledgement is answered as soon as the request to store it is on its way."""
    original = SharePartition._store

    def store(self: SharePartition, change: Any, stored: Any, now_ms: int) -> None:
        original(self, change, share_partition.nobody, now_ms)
        stored(None, now_ms)

    patch.setattr(SharePartition, "_store", store)


def failed_write_is_taken_for_a_good_one(patch: pytest.MonkeyPatch) -> None:
    """What a share coordinator answers is not looked at, and nothing is asked twice."""

    def on_written(self: SharePartition, result: Any, now_ms: int) -> None:
        original(self, None if isinstance(result, KafkaError) else result, now_ms)

    original = SharePartition._on_written
    patch.setattr(SharePartition, "_on_written", on_written)
    patch.setattr(states, "ATTEMPTS_MAX", 1)


def locks_run_out_too_early(patch: pytest.MonkeyPatch) -> None:
    """A lock is given back half a second before its time."""
    original = Window.take_due_locks

    def take_due_locks(self: Window, now_ms: int) -> Any:
        return original(self, now_ms + 500)

    patch.setattr(Window, "take_due_locks", take_due_locks)


def locks_are_short(patch: pytest.MonkeyPatch) -> None:
    """Records are locked for less than was promised."""
    original = Window.lock

    def lock(self: Window, run: Any, until_ms: int) -> None:
        original(self, run, until_ms - 300)

    patch.setattr(Window, "lock", lock)


def whoever_goes_takes_all_locks_along(patch: pytest.MonkeyPatch) -> None:
    """When a session ends, what others have locked is given back too."""
    original = acknowledgement.release

    def release(window: Window, member_id: str, limits: Any) -> Any:
        change = original(window, member_id, limits)
        for batch in window.batches:
            for run in batch.runs:
                if run.state == ACQUIRED and run.change == NO_CHANGE:
                    acknowledgement._propose(change, run, acknowledgement.released_state(run, limits))
        return change

    patch.setattr(share_partition, "release", release)


def anybody_acknowledges(patch: pytest.MonkeyPatch) -> None:
    """Who has locked a record is not compared with who acknowledges it."""
    original = acknowledgement._plan

    def plan(window: Window, member_id: str, entry: Any, limits: Any, planned: Any) -> None:
        owners = [run.owner for batch in window.batches_within(entry.first, entry.last) for run in batch.runs]
        held = [owner for owner in owners if owner]
        original(window, held[0] if held else member_id, entry, limits, planned)

    patch.setattr(acknowledgement, "_plan", plan)


def gaps_are_skipped(patch: pytest.MonkeyPatch) -> None:
    """A new leader takes what the stored state does not mention for done."""
    original = Window.load

    def load(self: Window, batches: Any) -> None:
        original(self, batches)
        self.gaps = []
        self.move_start()

    patch.setattr(Window, "load", load)


def start_passes_what_is_locked(patch: pytest.MonkeyPatch) -> None:
    """A batch of which one record is done with is passed as a whole."""
    original = window._final_prefix_end

    def final_prefix_end(batch: Any) -> int:
        if any(is_final(run.state) and run.change == NO_CHANGE for run in batch.runs):
            return int(batch.last) + 1
        return original(batch)

    patch.setattr(window, "_final_prefix_end", final_prefix_end)


def deliveries_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    """A record that was delivered as often as allowed is available again."""
    patch.setattr(acknowledgement, "released_state", lambda run, limits: AVAILABLE)


def old_leader_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    """The share coordinator takes writes of leaders that were deposed."""
    original = ShareMachine.write

    def write(self: ShareMachine, key: Any, asked: Any, now_ms: int) -> Any:
        asked.leader_epoch = -1
        return original(self, key, asked, now_ms)

    patch.setattr(ShareMachine, "write", write)


def snapshots_are_empty(patch: pytest.MonkeyPatch) -> None:
    """A snapshot forgets what it should keep of records behind the start offset."""
    original = machine.snapshot_record

    def snapshot_record(key: Any, state: Any) -> Any:
        state = state.copy()
        state.batches = []
        return original(key, state)

    patch.setattr(machine, "snapshot_record", snapshot_record)


def updates_are_not_replayed(patch: pytest.MonkeyPatch) -> None:
    """A coordinator that loads its log takes the start offset of an update, and not its records."""
    original = machine.apply_update

    def apply_update(state: Any, data: bytes) -> None:
        before = list(state.batches)
        original(state, data)
        state.batches = [batch for batch in before if batch.last >= state.start_offset]

    patch.setattr(machine, "apply_update", apply_update)


def too_much_is_pruned(patch: pytest.MonkeyPatch) -> None:
    """Records are deleted up to the newest snapshot of any share partition."""

    def first_needed_offset(self: ShareMachine) -> int:
        return max((state.snapshot_offset for state in self.states.values()), default=-1)

    patch.setattr(ShareMachine, "first_needed_offset", first_needed_offset)


def snapshots_count_before_they_are_committed(patch: pytest.MonkeyPatch) -> None:
    """Records are deleted for a snapshot that the other replicas do not have."""

    def unneeded_before(self: ShareCoordinator, index: int, machine: Any, high_watermark: int, end: int) -> int:
        return min(int(machine.first_needed_offset()), high_watermark)

    patch.setattr(ShareCoordinator, "_unneeded_before", unneeded_before)


def state_is_initialized_again(patch: pytest.MonkeyPatch) -> None:
    """A request to initialize that comes twice undoes what became of the first."""
    original = ShareMachine.initialize

    def initialize(self: ShareMachine, key: Any, asked: Any, now_ms: int) -> Any:
        known = self.states.pop(key, None)
        try:
            return original(self, key, asked, now_ms)
        finally:
            if known is not None:
                self.states[key] = known

    patch.setattr(ShareMachine, "initialize", initialize)


def late_copy_resets_a_state(patch: pytest.MonkeyPatch) -> None:
    """A request to begin at an offset is carried out whenever it comes, as long as its epoch is not an older one."""
    original = ShareMachine.initialize

    def initialize(self: ShareMachine, key: Any, asked: Any, now_ms: int) -> Any:
        if key in self.states:
            self.states[key].is_written = False
        return original(self, key, asked, now_ms)

    patch.setattr(ShareMachine, "initialize", initialize)


def aborted_records_are_delivered(patch: pytest.MonkeyPatch) -> None:
    """Records of aborted transactions are delivered to groups that want committed ones."""
    patch.setattr(reads, "find_aborted", lambda read: [])


def unstored_release_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """A record that is being released is available at once; when that cannot be stored it is locked again."""
    original = acknowledgement._propose

    def propose(change: Any, run: Any, target: int) -> None:
        original(change, run, target)
        run.change = NO_CHANGE

    patch.setattr(acknowledgement, "_propose", propose)


def archived_before_the_letter_is_written(patch: pytest.MonkeyPatch) -> None:
    """A record is given up as soon as its dead letter is on its way."""
    original = DeadLetters._send

    def send(self: DeadLetters, sending: Any, box: Any, batch: Any, now_ms: int) -> None:
        original(self, sending, box, batch, now_ms)
        sending.one.archive_letters(batch.letters, now_ms)

    patch.setattr(DeadLetters, "_send", send)


def letters_that_fail_are_taken_for_written(patch: pytest.MonkeyPatch) -> None:
    """What the leader of the dead letter topic answers is not looked at."""
    original = DeadLetters._on_response

    def on_response(self: DeadLetters, sending: Any, code: int, now_ms: int) -> None:
        original(self, sending, errors.NONE, now_ms)

    patch.setattr(DeadLetters, "_on_response", on_response)


def letters_of_an_old_leader_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new leader takes what its predecessor was about to give up for given up."""
    original = Window.load

    def load(self: Window, batches: Any) -> None:
        original(self, batches)
        if self.archiving:
            acknowledgement.archive_dead_letters(self, self.start_offset, self.end_offset)

    patch.setattr(Window, "load", load)


def gaps_get_letters(patch: pytest.MonkeyPatch) -> None:
    """Offsets without a record are rejected like records."""
    original = acknowledgement._plan

    def plan(window: Window, member_id: str, entry: Any, limits: Any, planned: Any) -> None:
        original(window, member_id, entry, limits, planned)
        for item in planned:
            if item.kind == GAP:
                item.kind = REJECT

    patch.setattr(acknowledgement, "_plan", plan)


PLANTED: list[tuple[Plant, int]] = [
    (told_before_it_is_stored, 0),
    (failed_write_is_taken_for_a_good_one, 2),
    (locks_run_out_too_early, 1),
    (locks_are_short, 0),
    (whoever_goes_takes_all_locks_along, 1),
    (anybody_acknowledges, 2),
    (gaps_are_skipped, 1),
    (start_passes_what_is_locked, 0),
    (deliveries_are_not_limited, 0),
    (old_leader_is_not_fenced, 13),
    (snapshots_are_empty, 1),
    (updates_are_not_replayed, 0),
    (too_much_is_pruned, 1),
    (state_is_initialized_again, 2),
    (late_copy_resets_a_state, 17),
    (aborted_records_are_delivered, 0),
    (unstored_release_is_delivered, 0),
    (archived_before_the_letter_is_written, 0),
    (letters_that_fail_are_taken_for_written, 9),
    (letters_of_an_old_leader_are_forgotten, 8),
    (gaps_get_letters, 0),
]
"""Each with a seed that shows it; where somebody changes what seeds mean, another one does."""

RARE: list[tuple[Plant, int]] = [
    (snapshots_count_before_they_are_committed, 483),
]
"""These need a coordinator that fails at just the right moment: they are looked for in long runs only."""
