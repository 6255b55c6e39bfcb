"""What the tests of all worlds with members have in common: a world in which nothing happens proves nothing."""

from __future__ import annotations

from moldau.sim.__main__ import DEFAULT_MILLISECONDS
from moldau.sim.classic_group_world import ClassicGroupWorld
from moldau.sim.consumer_group_world import ConsumerGroupWorld


def check_that_things_happen(world: type[ClassicGroupWorld] | type[ConsumerGroupWorld]) -> None:
    """Nodes die, partitions are handed out, offsets are committed and checked."""
    deaths = assignments = committed = checked = 0
    for seed in range(1000, 1003):
        setting = world(seed)
        setting.run(DEFAULT_MILLISECONDS)
        deaths += setting.deaths
        assignments += setting.assignments
        committed += setting.committed_offsets
        checked += setting.checked_offsets
    assert deaths > 3
    assert assignments > 50
    assert committed > 50
    assert checked > 50
