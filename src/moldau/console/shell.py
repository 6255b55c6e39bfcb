"""The HTML that every address responds with: a frame, and links to the files that fill it.

There is no script and no style in it, and nothing of a cluster either: it is the same for everybody.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import html
from pathlib import Path
from typing import NamedTuple

STATIC = Path(__file__).resolve().parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@functools.cache
def version_of_files() -> str:
    """A hash of all files: another release has other addresses, so no browser mixes the two."""
    found = hashlib.sha256()
    for path in sorted(STATIC.rglob("*")):
        if path.is_file():
            found.update(path.relative_to(STATIC).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


# What every page needs, and what the pages need besides by the first part of their address.
CORE = ("app.js", "api.js", "dialogs.js", "dom.js", "format.js", "plots.js", "widgets.js")
PAGE_FILES = {
    "": ("pages/overview.js",),
    "topics": ("pages/topics.js",),
    "topics/": ("pages/topic.js", "pages/configs.js", "pages/messages.js", "pages/schemas.js"),
    "groups": ("pages/groups.js",),
    "groups/": ("pages/group.js", "pages/configs.js", "suggest.js"),
}


@functools.lru_cache(64)
def _shell_with(names: tuple[str, ...]) -> str:
    base = f"/static/{version_of_files()}"
    preloads = "\n".join(f'<link rel="modulepreload" href="{html.escape(f"{base}/{name}")}">' for name in names)
    return PAGE.format(base=base, preloads=preloads)


def render_shell(path: str = "/") -> str:
    """The modules that an address needs are named at once, so that a browser fetches them side by side."""
    first, slash, rest = path.strip("/").partition("/")
    return _shell_with((*CORE, *PAGE_FILES.get(f"{first}{slash}" if rest else first, ())))


class StaticFile(NamedTuple):
    """A file of the pages as it is sent, small and as it is."""

    plain: bytes
    compressed: bytes


@functools.cache
def static_file(name: str) -> StaticFile | None:
    """Read once: there are few, and they do not change while the process lives. None where there is no such file."""
    path = (STATIC / name).resolve()
    if not path.is_relative_to(STATIC) or path.suffix not in TYPES or not path.is_file():
        return None
    data = path.read_bytes()
    return StaticFile(data, gzip.compress(data, 9, mtime=0))


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
<link rel="preload" as="fetch" href="/api/session" crossorigin="anonymous">
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
