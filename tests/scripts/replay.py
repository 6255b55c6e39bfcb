"""How scripts are held against the code: commands are run again, and what they show must be what is written there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

REWRITE = os.environ.get("MOLDAU_REWRITE_SCRIPTS") == "1"


def scripts_beside(test_file: str) -> list[Path]:
    return sorted(Path(test_file).parent.glob("*.txt"))


def check_script(path: Path, run: Callable[[str], list[str]]) -> None:
    """A line with `>` is a command, the lines below it are what it shows; MOLDAU_REWRITE_SCRIPTS=1 writes them anew."""
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line:
            lines.append(line)
        elif line.startswith("> "):
            lines.append(line)
            lines += run(line[2:])
    text = "\n".join(lines) + "\n"
    if REWRITE:
        path.write_text(text)
    assert text == path.read_text()
