"""Leads one member of a streams group from the tasks it has to those it shall have.

    STABLE ──its target changed──> UNREVOKED_TASKS ──it gave them up──> UNRELEASED_TASKS ──they are free──> STABLE
       │                            (it must give up some)               (others must give up some)          ^
       └──────────────── nothing to give up, everything is free ────────────────────────────────────────────┘

A member first gives up what it shall not keep, and stays in its epoch until then; only afterwards it moves to the epoch
of the target and gets what is free. An active task is free when nobody has it active and no member of the same process
keeps its state; a standby or warm-up task when no member of the same process has it at all, for they share a directory.
In Kafka: CurrentAssignmentBuilder of streams groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import STABLE, UNKNOWN, UNRELEASED_TASKS, UNREVOKED_TASKS, StreamsMember
from moldau.coordinator.group.streams.tasks import (
    NO_CURRENT_TASKS,
    ActiveTasks,
    CurrentTasks,
    Task,
    Tasks,
    TasksByRole,
    shares_any,
)
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError

IsHeld = Callable[[Task], bool]


def reconcile(
    group: StreamsGroup,
    member: StreamsMember,
    target_epoch: int,
    target: TasksByRole,
    owned: TasksByRole | None,
) -> StreamsMember:
    """The member after one step, or the same object if it cannot move. `owned` is None if the member did not tell."""
    step = _Step(group, member, target_epoch, target, owned)
    if member.state == STABLE:
        return member if member.member_epoch == target_epoch else step.next_assignment(member.member_epoch)
    if member.state == UNREVOKED_TASKS:
        if step.still_owns(member.pending_revocation):
            return member
        return step.next_assignment(member.member_epoch + 1)
    if member.state == UNKNOWN:
        # Written by a release that knows more states; from nothing it can start again.
        if owned is None or not owned.is_empty:
            raise KafkaError(
                errors.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
            )
        return step.next_assignment(target_epoch)
    return step.next_assignment(member.member_epoch)


class _Step:
    """One call of `reconcile`."""

    def __init__(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        target_epoch: int,
        target: TasksByRole,
        owned: TasksByRole | None,
    ) -> None:
        self._group = group
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._owned = owned
        self._waits = False

    def still_owns(self, given_up: CurrentTasks) -> bool:
        """Does the member still have one of these? If it did not tell, it may."""
        owned = self._owned
        if owned is None:
            return not given_up.is_empty
        return (
            shares_any(owned.active, given_up.active)
            or shares_any(owned.standby, given_up.standby)
            or shares_any(owned.warmup, given_up.warmup)
        )

    def next_assignment(self, member_epoch: int) -> StreamsMember:
        member, target = self._member, self._target
        has = member.assigned
        kept = CurrentTasks(
            _kept_active(has.active, target.active),
            _kept(has.standby, target.standby),
            _kept(has.warmup, target.warmup),
        )
        revoked = CurrentTasks(
            _revoked_active(has.active, target.active),
            _revoked(has.standby, target.standby),
            _revoked(has.warmup, target.warmup),
        )
        if not revoked.is_empty and self.still_owns(revoked):
            return _moved(member, UNREVOKED_TASKS, member_epoch, kept, revoked)
        active = self._free(has.active, target.active, self._is_active_task_held)
        standby = self._free(has.standby, target.standby, self._is_copy_held)
        warmup = self._free(has.warmup, target.warmup, self._is_copy_held)
        assigned = CurrentTasks(
            _with_active(kept.active, active, self._target_epoch),
            _with(kept.standby, standby),
            _with(kept.warmup, warmup),
        )
        state = UNRELEASED_TASKS if self._waits else STABLE
        return _moved(member, state, self._target_epoch, assigned, NO_CURRENT_TASKS)

    def _is_active_task_held(self, task: Task) -> bool:
        return self._group.is_active_somewhere(task) or self._group.is_kept_in(task, self._member.process_id)

    def _is_copy_held(self, task: Task) -> bool:
        process_id = self._member.process_id
        return self._group.is_active_in(task, process_id) or self._group.is_kept_in(task, process_id)

    def _free(self, has: Mapping[str, Iterable[int]], target: Tasks, is_held: IsHeld) -> Tasks:
        """What the member shall have and has not, as far as it is free; for the rest it waits."""
        found: Tasks = {}
        for subtopology, wanted in target.items():
            missing = wanted - frozenset(has.get(subtopology, ()))
            held = {index for index in missing if is_held((subtopology, index))}
            if held:
                self._waits = True
            if missing - held:
                found[subtopology] = missing - held
        return found


def _kept(has: Tasks, target: Tasks) -> Tasks:
    found = {name: indexes & target.get(name, frozenset()) for name, indexes in has.items()}
    return {name: indexes for name, indexes in found.items() if indexes}


def _revoked(has: Tasks, target: Tasks) -> Tasks:
    found = {name: indexes - target.get(name, frozenset()) for name, indexes in has.items()}
    return {name: indexes for name, indexes in found.items() if indexes}


def _kept_active(has: ActiveTasks, target: Tasks) -> ActiveTasks:
    found: ActiveTasks = {}
    for name, epochs in has.items():
        wanted = target.get(name, frozenset())
        kept = {index: epoch for index, epoch in epochs.items() if index in wanted}
        if kept:
            found[name] = kept
    return found


def _revoked_active(has: ActiveTasks, target: Tasks) -> ActiveTasks:
    found: ActiveTasks = {}
    for name, epochs in has.items():
        wanted = target.get(name, frozenset())
        revoked = {index: epoch for index, epoch in epochs.items() if index not in wanted}
        if revoked:
            found[name] = revoked
    return found


def _with(kept: Tasks, new: Tasks) -> Tasks:
    return {**kept, **{name: kept.get(name, frozenset()) | indexes for name, indexes in new.items()}}


def _with_active(kept: ActiveTasks, new: Tasks, epoch: int) -> ActiveTasks:
    added = {name: {**kept.get(name, {}), **dict.fromkeys(indexes, epoch)} for name, indexes in new.items()}
    return {**kept, **added}


def _moved(
    member: StreamsMember, state: int, epoch: int, assigned: CurrentTasks, revoked: CurrentTasks
) -> StreamsMember:
    assert (state == UNREVOKED_TASKS) != revoked.is_empty, f"{member.member_id} in {state} is to give up {revoked}"
    assert epoch >= member.member_epoch, f"the epoch of {member.member_id} falls from {member.member_epoch} to {epoch}"
    moved = member.copy()
    moved.state = state
    moved.previous_member_epoch = member.member_epoch
    moved.member_epoch = epoch
    moved.assigned = assigned
    moved.pending_revocation = revoked
    return moved
