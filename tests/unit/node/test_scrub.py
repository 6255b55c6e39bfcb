"""A node that runs for an hour finds a flipped bit in an old segment by itself."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from tests.unit.node.world import NodeWorld


@pytest.mark.parametrize(("rate", "found"), [("", 1), ("0", 0)])
def test_a_flipped_bit_is_found(rate: str, found: int) -> None:
    world = NodeWorld(**({"moldau_log_scrub_bytes_per_second": rate} if rate else {})).start()
    assert world.create("t", internal_segment_bytes="400") == errors.NONE
    for _ in range(20):
        world.produce("t")
    world.run(1000)
    log = world.node.logs.get("t", 0)
    assert log is not None and len(log.segments) > 3
    path = log.segments[1].path(".log")
    world.disk.flip_bit(path, 75, 3)
    world.run(62_000)
    assert world.node.scrub.damaged_total == found
    assert [where[0] for where in world.node.scrub.findings] == [path] * found
    assert world.produce("t").error_code == errors.NONE
