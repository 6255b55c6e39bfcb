"""Faults of real processes and of the network between them, one after the other, each healed before the next.

A way can be cut in one direction only: a node that hears nothing is still heard, and the other way round.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.cluster.cluster_nodes import Cluster, wait_for
from tests.cluster.load import Load
from tests.cluster.stuck_node import StuckNode

KILL, PAUSE, ISOLATE, DEAF, MUTE, APART, STUCK = "kill", "pause", "isolate", "deaf", "mute", "apart", "stuck"
LEADER, FOLLOWER, CONTROLLER, ANY = "leader", "follower", "controller", "any"
HOWS = {
    KILL: "kill -9",
    PAUSE: "SIGSTOP",
    ISOLATE: "neither hears nor is heard by the others",
    DEAF: "hears nothing of the others",
    MUTE: "is not heard by the others",
    APART: "has no way to one of the others",
    STUCK: "its disk does not sync segments",
}
WHOMS = (LEADER, FOLLOWER, CONTROLLER, ANY)
# Long enough for every timeout that has to find out, and for what must then be done.
GAP_S_MAX = 30.0
HELD_S_MAX = 1.5


class Fault(NamedTuple):
    """What was done to whom, and how long a write had to wait after it."""

    how: str
    whom: str
    node_id: int
    gap_s: float


def fault_plan(count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Every kind equally often, in random order."""
    kinds = [(how, whom) for how in HOWS for whom in WHOMS]
    plan = (kinds * (count // len(kinds) + 1))[:count]
    rng.shuffle(plan)
    return plan


class FaultLoop:
    """Does faults to a cluster under load and notes the gap after each."""

    def __init__(self, cluster: Cluster, load: Load, rng: random.Random, show: Callable[[str], None] = print) -> None:
        self._cluster = cluster
        self._load = load
        self._rng = rng
        self._show = show
        self.done: list[Fault] = []

    def run(self, plan: list[tuple[str, str]]) -> None:
        for how, whom in plan:
            node_id = self._choose(whom)
            began = time.monotonic()
            self._do(how, node_id)
            # Sent a moment after it, so that nothing that was answered before counts.
            gap_s = self._await_write(began + 0.005, f"{how} {whom} (node {node_id})")
            self.done.append(Fault(how, whom, node_id, gap_s))
            time.sleep(self._rng.random() * HELD_S_MAX)
            self._heal(how, node_id)
            self._cluster.await_full_isr(self._load.topic)
            took_s = time.monotonic() - began
            self._show(
                f"{len(self.done):4d} {how:8s} {whom:10s} node {node_id}: gap {gap_s:6.3f} s, well in {took_s:5.1f} s"
            )

    def _choose(self, whom: str) -> int:
        leaders = set(self._cluster.leaders(self._load.topic).values())
        if whom == LEADER:
            return self._rng.choice(sorted(leaders))
        if whom == CONTROLLER:
            return self._cluster.active_controller()
        if whom == FOLLOWER:
            # One that leads as little as there is: with few partitions one of them leads nothing.
            counts = list(self._cluster.leaders(self._load.topic).values())
            return min(self._cluster.ids, key=lambda node_id: (counts.count(node_id), self._rng.random()))
        return self._rng.choice(self._cluster.ids)

    def _do(self, how: str, node_id: int) -> None:
        if how == KILL:
            self._cluster.kill(node_id)
        elif how == PAUSE:
            self._cluster.nodes[node_id].pause()
        elif how == STUCK:
            self._stuck_file(node_id).touch()
        else:
            self._cluster.network.block(self._cut(how, node_id))

    def _stuck_file(self, node_id: int) -> Path:
        node = self._cluster.nodes[node_id]
        assert isinstance(node, StuckNode)
        return node.stuck

    def _cut(self, how: str, node_id: int) -> list[tuple[int, int]]:
        """From whom to whom nothing gets."""
        others = [other for other in self._cluster.ids if other != node_id]
        if how == APART:
            others = [self._rng.choice(others)]
        to_it, from_it = [(other, node_id) for other in others], [(node_id, other) for other in others]
        return {DEAF: to_it, MUTE: from_it}.get(how, to_it + from_it)

    def _heal(self, how: str, node_id: int) -> None:
        if how == KILL:
            self._cluster.start(node_id)
        elif how == PAUSE:
            self._cluster.nodes[node_id].go_on()
        elif how == STUCK:
            self._stuck_file(node_id).unlink()
        else:
            self._cluster.network.heal()

    def _await_write(self, moment: float, what: str) -> float:
        gap: float | None = None

        def is_written() -> bool:
            nonlocal gap
            gap = self._load.gap_after(moment)
            return gap is not None

        wait_for(is_written, GAP_S_MAX, f"a write after: {what}", self._cluster.outputs)
        assert gap is not None
        return gap

    def summary(self) -> str:
        """Of every kind of fault: how often, and how long writes had to wait."""
        lines = [f"{'write gap after':60s} faults    p50 s    max s"]
        for how, meaning in HOWS.items():
            lines.append(self._row(f"{how}: {meaning}", [fault.gap_s for fault in self.done if fault.how == how]))
            for whom in WHOMS:
                gaps = [fault.gap_s for fault in self.done if (fault.how, fault.whom) == (how, whom)]
                lines.append(self._row(f"    {whom}", gaps))
        lines.append(self._row("all", [fault.gap_s for fault in self.done]))
        return "\n".join(lines)

    def _row(self, name: str, gaps: list[float]) -> str:
        if not gaps:
            return f"{name:60s}      -        -        -"
        return f"{name:60s} {len(gaps):6d} {statistics.median(gaps):8.3f} {max(gaps):8.3f}"
