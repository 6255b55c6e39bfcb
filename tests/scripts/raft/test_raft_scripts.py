"""Scripts that drive a quorum: a line with `>` is a command, the lines below it are what the replicas did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.raft.cluster import Cluster
from tests.scripts.replay import check_script, scripts_beside

SCRIPTS = scripts_beside(__file__)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_replicas_do_what_the_script_shows(path: Path) -> None:
    """Running the commands of a script gives the trace that is written in it."""
    check_script(path, Cluster().run)
