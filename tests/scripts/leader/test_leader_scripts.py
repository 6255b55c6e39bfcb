"""Scripts that move the replicas of a partition: a line with `>` is a command, the lines below it say what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.leader.world import World
from tests.scripts.replay import check_script, scripts_beside


@pytest.mark.parametrize("path", scripts_beside(__file__), ids=lambda path: path.stem)
def test_replicas_do_what_the_script_shows(path: Path, tmp_path: Path) -> None:
    """Running the commands of a script shows what is written in it."""
    check_script(path, World(tmp_path).run)
