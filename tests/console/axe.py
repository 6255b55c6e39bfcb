"""axe-core in a page: what it finds against it."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = "4.10.3"
AXE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"axe-core-{VERSION}" / "axe.min.js"


@cache
def source() -> str | None:
    if not AXE.exists():
        subprocess.run([str(ROOT / "tools" / "fetch_axe.sh")], check=False)
    return AXE.read_text() if AXE.exists() else None


def violations(page: Any) -> list[str]:
    """What is moderate or worse, with the element that it is about."""
    script = source()
    if script is None:
        pytest.skip("axe-core is missing: run tools/fetch_axe.sh")
    page.evaluate(script + "\n;null")
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{item['impact']}: {item['help']}: {node['html'][:160]}"
        for item in found["violations"]
        if item["impact"] in ("serious", "critical", "moderate")
        for node in item["nodes"]
    ]


def violations_in_both_colours(page: Any) -> list[str]:
    """The same in light and in dark."""
    found = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        found += [f"{scheme}: {text}" for text in violations(page)]
    return found


def overflow(page: Any, width: int = 380) -> int:
    """How many pixels the page is wider than a narrow screen; its size is what it was afterwards."""
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": 800})
    wide = int(page.evaluate("document.documentElement.scrollWidth"))
    page.set_viewport_size(before)
    return max(0, wide - width)
