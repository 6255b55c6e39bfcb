"""Scripts that drive the replicas of one partition: a line with `>` is a command, those below it are what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.replay import check_script, scripts_beside
from tests.scripts.replication.world import World

SCRIPTS = scripts_beside(__file__)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_replicas_do_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the trace that is written in it."""
    check_script(path, World().run)
