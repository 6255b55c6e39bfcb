"""Assigns the tasks of a streams group: as they were before, as far as everybody gets a fair share (`sticky`).

Active tasks come first: to who had them as active, then to who had them as standby, then to the least loaded process.
Standby tasks, of subtopologies with state only, go to who had them, else to the least loaded process that does not have
the task. No process has two copies of a task; a copy for which there is no process is left out. With the same members,
tasks and targets before, the result is the same. In Kafka: StickyTaskAssignor.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from moldau.coordinator.group.streams.tasks import Task, Tasks, TasksByRole, each_task, make_tasks

NAME: Final = "sticky"


class TaskMember(NamedTuple):
    """A member, the process it is a thread of, and what it was to have before."""

    process_id: str
    target: TasksByRole


class TaskSource(NamedTuple):
    """One subtopology."""

    subtopology_id: str
    task_count: int
    is_stateful: bool


class _Quota:
    """How many tasks a member may have. Whoever is full leaves the calculation with its tasks; the rest is shared."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.limit = _share(tasks, members)

    def on_assigned(self, count: int) -> None:
        """A member has this many tasks now."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self.limit = _share(self._tasks, self._members)


def _share(tasks: int, members: int) -> int:
    return -(-tasks // members) if members > 0 else 0


class _Member:
    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.count = 0
        self.active: list[Task] = []
        self.standby: list[Task] = []


class _Process:
    """The threads of one application instance, which share its state."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.members: list[_Member] = []
        self.tasks: set[Task] = set()
        self.count = 0

    @property
    def load(self) -> float:
        return self.count / len(self.members)

    def least_loaded(self) -> _Member:
        return min(self.members, key=_count_of)


def _count_of(member: _Member) -> int:
    return member.count


_Heap = list[tuple[float, int, _Process]]


class _Assignment:
    """One run of the assignor."""

    def __init__(self, members: Mapping[str, TaskMember], sources: Sequence[TaskSource], standby_replicas: int) -> None:
        self._processes: dict[str, _Process] = {}
        self._members: dict[str, _Member] = {}
        self._had_active: dict[Task, _Member] = {}
        self._had_standby: dict[Task, list[_Member]] = {}
        for member_id in sorted(members):
            self._add_member(member_id, members[member_id])
        self._replicas = standby_replicas
        self._tasks: list[Task] = [(one.subtopology_id, n) for one in sources for n in range(one.task_count)]
        stateful = {one.subtopology_id for one in sources if one.is_stateful}
        self._stateful = [task for task in self._tasks if task[0] in stateful] if standby_replicas > 0 else []
        self._active_quota = _Quota(len(self._tasks), len(members))
        self._quota = _Quota(len(self._tasks) + len(self._stateful) * standby_replicas, len(members))

    def _add_member(self, member_id: str, spec: TaskMember) -> None:
        process = self._processes.get(spec.process_id)
        if process is None:
            process = self._processes[spec.process_id] = _Process(len(self._processes))
        member = self._members[member_id] = _Member(member_id, process)
        process.members.append(member)
        for task in each_task(spec.target.active):
            self._had_active[task] = member
        for task in each_task(spec.target.standby):
            self._had_standby.setdefault(task, []).append(member)

    def run(self) -> dict[str, TasksByRole]:
        self._assign_active()
        self._assign_standby()
        return {
            member.member_id: TasksByRole(_by_subtopology(member.active), _by_subtopology(member.standby), {})
            for member in self._members.values()
        }

    # Active tasks

    def _assign_active(self) -> None:
        left: list[Task] = []
        for task in sorted(self._tasks, key=_by_partition):
            member = self._had_active.get(task)
            if member is not None and member.count < self._active_quota.limit:
                self._give_active(member, task)
            else:
                left.append(task)
        rest: list[Task] = []
        for task in left:
            member = _less_loaded(self._had_standby.get(task, []))
            if member is not None and member.count < self._active_quota.limit:
                self._give_active(member, task)
            else:
                rest.append(task)
        heap = self._heap()
        for task in sorted(rest):
            process = heapq.heappop(heap)[2]
            self._give_active(process.least_loaded(), task)
            heapq.heappush(heap, (process.load, process.order, process))

    def _give_active(self, member: _Member, task: Task) -> None:
        member.active.append(task)
        self._count(member, task)
        self._active_quota.on_assigned(member.count)

    # Standby tasks

    def _assign_standby(self) -> None:
        left: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=_by_partition, reverse=True):
            for number in range(self._replicas):
                member = self._member_that_had(task)
                if member is None:
                    left.append((task, self._replicas - number))
                    break
                self._give_standby(member, task)
        heap = self._heap()
        for task, copies in sorted(left, reverse=True):
            for _ in range(copies):
                if not self._give_to_least_loaded(heap, task):
                    break

    def _member_that_had(self, task: Task) -> _Member | None:
        """The one that worked on it or kept its state, if it may have another task and its process not this one yet."""
        member = self._had_active.get(task)
        if member is not None and task not in member.process.tasks and member.count < self._quota.limit:
            return member
        known = [one for one in self._had_standby.get(task, []) if task not in one.process.tasks]
        member = _less_loaded(known)
        return member if member is not None and member.count < self._quota.limit else None

    def _give_to_least_loaded(self, heap: _Heap, task: Task) -> bool:
        """False if every process has the task."""
        passed: _Heap = []
        found = False
        while heap and not found:
            entry = heapq.heappop(heap)
            process = entry[2]
            if task in process.tasks:
                passed.append(entry)
                continue
            self._give_standby(process.least_loaded(), task)
            passed.append((process.load, process.order, process))
            found = True
        for entry in passed:
            heapq.heappush(heap, entry)
        return found

    def _give_standby(self, member: _Member, task: Task) -> None:
        member.standby.append(task)
        self._count(member, task)

    def _count(self, member: _Member, task: Task) -> None:
        assert task not in member.process.tasks, f"{task} is twice in the process of {member.member_id}"
        member.process.tasks.add(task)
        member.process.count += 1
        member.count += 1
        self._quota.on_assigned(member.count)

    def _heap(self) -> _Heap:
        heap = [(process.load, process.order, process) for process in self._processes.values()]
        heapq.heapify(heap)
        return heap


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def _less_loaded(members: Sequence[_Member]) -> _Member | None:
    """The first, unless another has both fewer tasks and a less loaded process."""
    found: _Member | None = None
    for member in members:
        if found is None or (member.process.load < found.process.load and member.count < found.count):
            found = member
    return found


def _by_subtopology(tasks: list[Task]) -> Tasks:
    return make_tasks((subtopology, (partition,)) for subtopology, partition in sorted(tasks))


def assign_tasks(
    members: Mapping[str, TaskMember], sources: Sequence[TaskSource], standby_replicas: int
) -> dict[str, TasksByRole]:
    """By member id; everybody who was asked about is in the result."""
    if not members:
        return {}
    return _Assignment(members, sources, standby_replicas).run()
