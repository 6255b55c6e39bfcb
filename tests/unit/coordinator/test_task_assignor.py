"""The assignor of streams groups: fair shares, what stays where it was, and copies in other processes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from moldau.coordinator.group.streams.sticky_assignor import TaskMember, TaskSource, assign_tasks
from moldau.coordinator.group.streams.tasks import NO_TASKS, Task, TasksByRole, each_task

STATELESS = [TaskSource("0", 4, False)]
STATEFUL = [TaskSource("0", 4, True)]

Targets = Mapping[str, TasksByRole]


def members(*specs: str, before: Targets | None = None) -> dict[str, TaskMember]:
    """`a@p` is member a of process p."""
    found = [spec.split("@") for spec in specs]
    return {name: TaskMember(process, (before or {}).get(name, NO_TASKS)) for name, process in found}


def active(targets: Targets) -> dict[str, list[Task]]:
    return {name: sorted(each_task(target.active)) for name, target in targets.items()}


def standby(targets: Targets) -> dict[str, list[Task]]:
    return {name: sorted(each_task(target.standby)) for name, target in targets.items()}


def test_nobody_gets_nothing() -> None:
    assert assign_tasks({}, STATELESS, 0) == {}


def test_one_member_gets_everything() -> None:
    assert active(assign_tasks(members("a@p"), STATELESS, 1)) == {"a": [("0", 0), ("0", 1), ("0", 2), ("0", 3)]}


def test_members_get_equal_shares() -> None:
    targets = assign_tasks(members("a@p", "b@q", "c@r"), [TaskSource("0", 4, False), TaskSource("1", 3, False)], 0)
    assert sorted(len(tasks) for tasks in active(targets).values()) == [2, 2, 3]


def test_processes_are_loaded_by_their_threads() -> None:
    targets = assign_tasks(members("a@p", "b@p", "c@p", "d@q"), [TaskSource("0", 8, False)], 0)
    assert {name: len(tasks) for name, tasks in active(targets).items()} == {"a": 2, "b": 2, "c": 2, "d": 2}


def test_tasks_stay_where_they_were_as_far_as_that_is_fair() -> None:
    before = assign_tasks(members("a@p", "b@q"), STATELESS, 0)
    targets = assign_tasks(members("a@p", "b@q", "c@r", before=before), STATELESS, 0)
    for name in ("a", "b"):
        assert set(active(targets)[name]) <= set(active(before)[name])
    assert sorted(len(tasks) for tasks in active(targets).values()) == [1, 1, 2]


def test_a_task_goes_to_who_kept_its_state() -> None:
    sources = [TaskSource("0", 3, True)]
    before = assign_tasks(members("a@p", "b@q", "c@r"), sources, 1)
    lost = set(active(before)["a"])
    targets = assign_tasks(members("b@q", "c@r", before=before), sources, 1)
    assert lost & {*standby(before)["b"], *standby(before)["c"]}
    for name in ("b", "c"):
        kept = set(standby(before)[name]) & lost
        assert kept <= set(active(targets)[name])


def test_copies_are_in_other_processes_and_of_tasks_with_state_only() -> None:
    sources = [TaskSource("0", 3, False), TaskSource("1", 3, True)]
    targets = assign_tasks(members("a@p", "b@q", "c@r"), sources, 2)
    copies = Counter(task for tasks in standby(targets).values() for task in tasks)
    assert copies == {("1", index): 2 for index in range(3)}
    for name in targets:
        assert not set(active(targets)[name]) & set(standby(targets)[name])


def test_a_copy_without_a_process_is_left_out() -> None:
    targets = assign_tasks(members("a@p", "b@p"), STATEFUL, 2)
    assert standby(targets) == {"a": [], "b": []}


def test_a_task_that_is_gone_is_not_kept() -> None:
    before = assign_tasks(members("a@p"), STATELESS, 0)
    assert active(assign_tasks(members("a@p", before=before), [TaskSource("1", 1, False)], 0)) == {"a": [("1", 0)]}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_group_every_task_is_active_once(seed: int) -> None:
    """And fair, sticky, without two copies in a process, and the same for the same question."""
    dice = random.Random(seed)
    sources = [TaskSource(str(n), dice.randint(0, 6), dice.random() < 0.6) for n in range(dice.randint(1, 4))]
    replicas = dice.randint(0, 2)
    before: Targets = {}
    names = [f"m{number}" for number in range(8)]
    for _ in range(12):
        specs = [f"{name}@p{hash_of(name) % 4}" for name in dice.sample(names, dice.randint(1, 8))]
        asked = members(*specs, before=before)
        targets = assign_tasks(asked, sources, replicas)
        check(asked, sources, replicas, targets)
        second = assign_tasks(members(*specs, before=targets), sources, replicas)
        third = assign_tasks(members(*specs, before=second), sources, replicas)
        assert third == second, "with the same members nothing moves for long"
        assert assign_tasks(dict(reversed(asked.items())), sources, replicas) == targets
        before = {**before, **targets}


def hash_of(name: str) -> int:
    return sum(name.encode())


def check(asked: dict[str, TaskMember], sources: list[TaskSource], replicas: int, targets: Targets) -> None:
    assert set(targets) == set(asked)
    expected = sorted((one.subtopology_id, index) for one in sources for index in range(one.task_count))
    assert sorted(task for tasks in active(targets).values() for task in tasks) == expected
    counts = [len(tasks) for tasks in active(targets).values()]
    assert max(counts) <= -(-len(expected) // len(asked)) or len({spec.process_id for spec in asked.values()}) > 1
    processes = {spec.process_id for spec in asked.values()}
    stateful = {one.subtopology_id for one in sources if one.is_stateful}
    wanted = {task: min(replicas, len(processes) - 1) for task in expected if task[0] in stateful}
    copies = Counter(task for tasks in standby(targets).values() for task in tasks)
    assert copies == Counter({task: count for task, count in wanted.items() if count})
    for process in processes:
        has = [
            task
            for name, spec in asked.items()
            if spec.process_id == process
            for task in (*active(targets)[name], *standby(targets)[name])
        ]
        assert len(has) == len(set(has)), f"a task is twice in {process}"
