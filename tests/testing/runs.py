"""Runs pytest as a user does: a process of its own, with the plugin, in a folder of its own."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from tests.pace import patience

SECONDS_MAX = patience(300)


def command(*arguments: str) -> list[str]:
    """pytest with the plugin, which an installed Moldau brings by itself."""
    points = importlib.metadata.entry_points(group="pytest11")
    is_installed = any(point.value == "moldau.testing.plugin" for point in points)
    named = [] if is_installed else ["-p", "moldau.testing.plugin"]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *arguments]


def environment() -> dict[str, str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").exists() or (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        command("-q", *arguments),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
