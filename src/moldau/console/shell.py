"""The HTML that every address answers with: a frame, and links to the files that fill it.

There is no script and no style in it, and nothing of a cluster either: it is the same for everybody.
"""

from __future__ import annotations

import functools
import hashlib
import html
from pathlib import Path

STATIC = Path(__file__).resolve().parent / "static"


@functools.cache
def version_of_files() -> str:
    """A hash of all files: another release has other addresses, so no browser mixes the two."""
    found = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            found.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@functools.cache
def render_shell() -> str:
    """All modules are named at once, so that a browser fetches them side by side."""
    base = f"/static/{version_of_files()}"
    modules = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))
    preloads = "\n".join(
        f'<link rel="modulepreload" href="{html.escape(f"{base}/{name}")}">' for name in modules if name != "theme.js"
    )
    return PAGE.format(base=base, preloads=preloads)


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Moldau console</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="{base}/icon.svg" type="image/svg+xml">
<script src="{base}/theme.js"></script>
<link rel="stylesheet" href="{base}/console.css">
{preloads}
<script type="module" src="{base}/app.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the page</a>
<div id="frame">
<header id="side"></header>
<main id="main" tabindex="-1"><p class="quiet" id="loading">Loading…</p></main>
</div>
<div id="notices" role="status" aria-live="polite"></div>
<noscript><p>The console needs JavaScript, from this address alone.</p></noscript>
</body>
</html>
"""
