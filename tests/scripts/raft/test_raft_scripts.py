"""Scripts that drive a quorum: a line with `>` is a command, the lines below it are what the replicas did."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scripts.raft.cluster import Cluster

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))
REWRITE = os.environ.get("MOLDAU_REWRITE_SCRIPTS") == "1"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_replicas_do_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the trace that is written in it."""
    cluster = Cluster()
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line:
            lines.append(line)
        elif line.startswith("> "):
            lines.append(line)
            lines += cluster.run(line[2:])
    text = "\n".join(lines) + "\n"
    if REWRITE:
        path.write_text(text)
    assert text == path.read_text()
