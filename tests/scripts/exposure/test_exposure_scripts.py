"""Scripts of settings: a line with `>` changes or checks them, the lines below `> check` are what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.exposure.world import World
from tests.scripts.replay import check_script, scripts_beside


@pytest.mark.parametrize("path", scripts_beside(__file__), ids=lambda path: path.stem)
def test_settings_leave_open_what_the_script_shows(path: Path) -> None:
    """Checking the settings of a script finds what is written in it."""
    check_script(path, World().run)
