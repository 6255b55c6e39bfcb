"""Scripts about a consumer group: a line with `>` is what happens, the lines below it what members and the log see."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scripts.consumer_groups.player import Player

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
REWRITE = os.environ.get("MOLDAU_REWRITE_SCRIPTS") == "1"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_group_does_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the trace that is written in it."""
    player = Player()
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line:
            lines.append(line)
        elif line.startswith("> "):
            lines.append(line)
            lines += player.play(line[2:])
    text = "\n".join(lines) + "\n"
    if REWRITE:
        path.write_text(text)
    assert text == path.read_text()
