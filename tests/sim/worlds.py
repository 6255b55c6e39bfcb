"""What the tests of all simulated worlds share: what happened in a few seeds together, and the trace of one process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import pytest

from moldau.replication import leader
from moldau.sim.cluster.world import ClusterWorld
from moldau.sim.node.world import NodeWorld
from moldau.storage.log_manager import CannotStart

IS_COMPILED = not str(leader.__file__).endswith(".py")
PLANTED_SEEDS_MAX = 100

T = TypeVar("T")


def planted(test: T) -> T:
    """A test that plants a bug: `pytest -m planted` runs all of them, on an interpreted build."""
    reason = "compiled classes cannot be changed, so no bug can be planted into them"
    return pytest.mark.planted(pytest.mark.skipif(IS_COMPILED, reason=reason)(test))


Plant = Callable[[pytest.MonkeyPatch], None]
"""Puts a bug into the code under test."""


def count_what_happens(
    world: type[NodeWorld] | type[ClusterWorld], seeds: Iterable[int], milliseconds: int, *names: str
) -> Counter[str]:
    """Runs these seeds and adds up their counters of these names: a world in which nothing happens proves nothing."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        setting = world(seed)
        setting.run(milliseconds)
        for name in names:
            value = getattr(setting, name)
            value = getattr(value, "counts", value)
            counts.update(value if isinstance(value, dict) else {name: value})
    return counts


class MaybeSlow(Protocol):
    """A world that has been given slow disks after seeds of it were kept."""

    def leave_out_slowness(self) -> None: ...

    def run(self, length: int, /) -> None: ...


def run_both_ways(world: Callable[[int], MaybeSlow], seed: int, length: int) -> None:
    """A kept seed as it was when it failed, and with the slow disks that there are by now."""
    as_it_was = world(seed)
    as_it_was.leave_out_slowness()
    as_it_was.run(length)
    world(seed).run(length)


def check_that_it_is_found(
    world: type[NodeWorld] | type[ClusterWorld], milliseconds: int, likely_seed: int = 0
) -> None:
    """Some seed of a normal run shows the bug that was planted; where one is known that did, it goes first."""
    with pytest.raises((AssertionError, CannotStart)) as found:
        for seed in (likely_seed, *range(PLANTED_SEEDS_MAX)):
            world(seed).run(milliseconds)
    for mistake in ("TypeError", "AttributeError", "NameError"):
        assert mistake not in str(found.value), "the bug was planted badly"


def trace_digest(hash_seed: str, *arguments: str) -> str:
    """Of a process of its own: not even the order of sets, which differs between processes, may show."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "moldau.sim", *arguments, "-v"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    return hashlib.sha256(done.stdout).hexdigest()
