"""Every way in which a disk, a clock or a refusal once stopped a node or harmed its users is found when it comes back.

Each bug has a seed that is known to show it, and is looked for in others where that one does not any more. They run
interpreted in every `make test`: whoever makes a world blind finds out at once.
"""

from __future__ import annotations

import pytest

from moldau.sim.cluster.clock_world import ClockWorld, SlowSegmentsWorld
from moldau.sim.cluster.world import ClusterWorld, OuterListenersWorld
from moldau.sim.groups.world import GroupWorld
from moldau.sim.node.large_world import LargeNodeWorld
from moldau.sim.node.world import NodeWorld
from tests.sim import planted_time_bugs as bugs
from tests.sim.planted_bugs import believe_any_refusal, trust_a_shorter_log
from tests.sim.seeds import SEEDS
from tests.sim.test_clock_world import never_doubt_the_wall_clock
from tests.sim.test_cluster_world import TrustWorld
from tests.sim.worlds import Plant, check_that_it_is_found, planted

LENGTHS_MS: dict[type[NodeWorld] | type[ClusterWorld], int] = {
    ClockWorld: 20_000,
    SlowSegmentsWorld: 20_000,
    ClusterWorld: 4_000,
    OuterListenersWorld: 4_000,
    TrustWorld: 4_000,
    NodeWorld: 10_000,
    GroupWorld: 10_000,
    LargeNodeWorld: 4_000,
}

FINDINGS: list[tuple[str, Plant, type[NodeWorld] | type[ClusterWorld], int]] = [
    ("time", never_doubt_the_wall_clock, ClockWorld, 0),
    ("durability threads", bugs.one_pool_for_everything, SlowSegmentsWorld, 2),
    ("durability threads", bugs.brokers_wait_for_their_sync, ClockWorld, 9),
    ("trust after a kill", trust_a_shorter_log, TrustWorld, 0),
    ("indexes", bugs.load_whole_indexes, LargeNodeWorld, 0),
    ("indexes", bugs.look_at_all_logs_in_one_turn, LargeNodeWorld, 0),
    ("cold reads", bugs.load_coordinators_on_the_loop, GroupWorld, 1),
    ("truncation", bugs.finish_truncations_at_once, ClusterWorld, 2),
    ("syncs on the loop", bugs.sync_directories_at_once, NodeWorld, 0),
    ("deletions on the loop", bugs.remove_deleted_logs_at_once, NodeWorld, 0),
    ("long turns", bugs.encode_snapshots_in_one_turn, LargeNodeWorld, 0),
    ("fencing a living broker", believe_any_refusal, OuterListenersWorld, 0),
    ("maps that grow", bugs.remember_topics_for_ever, NodeWorld, 0),
]


@planted
@pytest.mark.parametrize(
    ("plant", "world", "likely_seed"),
    [finding[1:] for finding in FINDINGS],
    ids=[f"{finding[0]}: {finding[1].__name__}".replace(" ", "-") for finding in FINDINGS],
)
def test_it_is_found_when_it_comes_back(
    plant: Plant,
    world: type[NodeWorld] | type[ClusterWorld],
    likely_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    check_that_it_is_found(world, LENGTHS_MS[world], likely_seed)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_what_a_large_node_does_in_one_turn_is_bounded(seed: int) -> None:
    setting = LargeNodeWorld(seed)
    setting.run(LENGTHS_MS[LargeNodeWorld])
    assert setting.records_max > 100, "no snapshot was too large for one turn"
    assert setting.host.disk.watch.reads_max > 20, "retention had little to look at"


@pytest.mark.parametrize("seed", SEEDS)
def test_slow_segments_end_no_session_and_elect_no_controller(seed: int) -> None:
    """Replay with: python -m moldau.sim --segments --seed SEED -v"""
    SlowSegmentsWorld(seed).run(LENGTHS_MS[SlowSegmentsWorld])
