"""Scripts about transactions: a line with `>` is what a client does, the lines below it what it is told and sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.replay import check_script, scripts_beside
from tests.scripts.transactions.player import Player
from tests.unit.api.transaction_client import transactional_world

SCRIPTS = scripts_beside(__file__)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_coordinator_does_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the trace that is written in it."""
    world = transactional_world()
    check_script(path, Player(world.ask, lambda: world.run(20), lambda: world.now_ms, 3).play)
