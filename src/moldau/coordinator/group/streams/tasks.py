"""Tasks of a streams group by role: what a member shall have, says it has, and has since which epoch.

A task is a subtopology and a partition. A member works on *active* tasks; of *standby* and *warm-up* tasks it only
keeps the state up to date. Everything here is never changed: whoever wants another one makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

Task = tuple[str, int]
"""Subtopology and partition."""

Tasks = dict[str, frozenset[int]]
"""Partitions by subtopology; subtopologies without tasks are left out."""

ActiveTasks = dict[str, dict[int, int]]
"""By subtopology, each partition with the epoch in which it was assigned."""


class TasksByRole(NamedTuple):
    """A target, or what a member says it has."""

    active: Tasks
    standby: Tasks
    warmup: Tasks

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class CurrentTasks(NamedTuple):
    """What a member has; of active tasks it is known since when, for its commits."""

    active: ActiveTasks
    standby: Tasks
    warmup: Tasks

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def without_epochs(self) -> TasksByRole:
        active = {subtopology: frozenset(epochs) for subtopology, epochs in self.active.items()}
        return TasksByRole(active, self.standby, self.warmup)


NO_TASKS: Final = TasksByRole({}, {}, {})
NO_CURRENT_TASKS: Final = CurrentTasks({}, {}, {})


def make_tasks(rows: Iterable[tuple[str, Iterable[int]]]) -> Tasks:
    """From rows of a message or a record; a subtopology that comes twice has the tasks of both."""
    found: dict[str, set[int]] = {}
    for subtopology, partitions in rows:
        found.setdefault(subtopology, set()).update(partitions)
    return {subtopology: frozenset(partitions) for subtopology, partitions in found.items() if partitions}


def each_task(tasks: Mapping[str, Iterable[int]]) -> Iterator[Task]:
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield subtopology, partition


def shares_any(some: Mapping[str, Iterable[int]], others: Mapping[str, Iterable[int]]) -> bool:
    """Is there a task in both?"""
    for subtopology, partitions in some.items():
        known = others.get(subtopology)
        if known is not None and not frozenset(known).isdisjoint(partitions):
            return True
    return False


def is_part_of(some: Mapping[str, Iterable[int]], others: Mapping[str, Iterable[int]]) -> bool:
    """Are all of these tasks among the others?"""
    return all(frozenset(partitions) <= frozenset(others.get(name, ())) for name, partitions in some.items())
