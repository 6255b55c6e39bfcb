"""Scripts about a streams group: a line with `>` is what happens, the lines below it what members and the log see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.replay import check_script, scripts_beside
from tests.scripts.streams_groups.player import Player

SCRIPTS = scripts_beside(__file__)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_group_does_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the trace that is written in it."""
    check_script(path, Player().play)
