"""Bugs that streams groups could have, each planted on its own: what the simulator is for is to find them.

Every one is a line or two that somebody might write, or leave out. They replace methods of interpreted classes, so
they cannot be planted into a compiled build.
"""

from __future__ import annotations

from typing import Any

import pytest

from moldau.coordinator.group.streams import reconciliation, step
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import StreamsMember
from moldau.coordinator.group.streams.protocol import StreamsProtocol
from moldau.coordinator.group.streams.tasks import NO_CURRENT_TASKS, TasksByRole
from tests.sim.worlds import Plant


def tasks_are_given_before_they_are_free(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks who has a task active."""
    patch.setattr(StreamsGroup, "is_active_somewhere", lambda self, task: False)


def threads_of_a_process_share_a_task(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks what other threads of the process have."""
    patch.setattr(StreamsGroup, "is_active_in", lambda self, task, process_id: False)
    patch.setattr(StreamsGroup, "is_kept_in", lambda self, task, process_id: False)


def nobody_waits_for_what_is_given_up(patch: pytest.MonkeyPatch) -> None:
    """Tasks are taken away without hearing that they were given up."""
    patch.setattr(reconciliation._Step, "still_owns", lambda self, given_up: False)


def tasks_of_the_lost_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A member that goes does not raise the epoch."""
    original = StreamsProtocol._fence

    def fence(self: StreamsProtocol, group: StreamsGroup, member: StreamsMember, response: Any) -> Any:
        outcome = original(self, group, member, response)
        del outcome.records[-1]
        return outcome

    patch.setattr(StreamsProtocol, "_fence", fence)


def topics_that_come_later_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """Changes of topics are left to the next failover."""
    patch.setattr(step.StreamsSteps, "on_metadata", lambda self, delta: None)


def a_failover_forgets_who_gives_up(patch: pytest.MonkeyPatch) -> None:
    """What a member is asked to give up is not read back."""
    original = StreamsMember.with_assignment

    def with_assignment(self: StreamsMember, value: Any) -> StreamsMember:
        member = original(self, value)
        member.pending_revocation = NO_CURRENT_TASKS
        return member

    patch.setattr(StreamsMember, "with_assignment", with_assignment)


def a_task_is_left_out(patch: pytest.MonkeyPatch) -> None:
    """The assignor counts one task too few when there are two members or more."""
    original = step.assign_tasks

    def assign_tasks(members: Any, sources: Any, standby_replicas: int) -> dict[str, TasksByRole]:
        if len(members) > 1:
            sources = [one._replace(task_count=one.task_count - 1) for one in sources]
        return original(members, sources, standby_replicas)

    patch.setattr(step, "assign_tasks", assign_tasks)


PLANTED: list[Plant] = [
    tasks_are_given_before_they_are_free,
    threads_of_a_process_share_a_task,
    nobody_waits_for_what_is_given_up,
    tasks_of_the_lost_are_forgotten,
    topics_that_come_later_are_not_seen,
    a_failover_forgets_who_gives_up,
    a_task_is_left_out,
]
