"""What the tests of all worlds with members have in common: a world in which nothing happens proves nothing."""

from __future__ import annotations

from moldau.sim.__main__ import DEFAULT_MILLISECONDS
from moldau.sim.groups.classic_world import ClassicGroupWorld
from moldau.sim.groups.consumer_world import ConsumerGroupWorld
from tests.sim.worlds import count_what_happens


def check_that_things_happen(world: type[ClassicGroupWorld] | type[ConsumerGroupWorld]) -> None:
    """Nodes die, partitions are handed out, offsets are committed and checked."""
    names = ("deaths", "assignments", "committed_offsets", "checked_offsets")
    counts = count_what_happens(world, range(1000, 1003), DEFAULT_MILLISECONDS, *names)
    assert counts["deaths"] > 3
    assert min(counts["assignments"], counts["committed_offsets"], counts["checked_offsets"]) > 50
