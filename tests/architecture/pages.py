"""The project's Markdown pages as the architecture tests see them: links, headings, and where a link leads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"(`+).+?\1")
INLINE_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
LINK_DEFINITION = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
# What is none of ours: environments, caches, what a build leaves behind.
NOT_OURS = {"__pycache__", "build", "dist", "moldau-data", "node_modules"}
HIDDEN_AND_OURS = {".github", ".ci"}


@dataclass(frozen=True)
class Link:
    line: int
    target: str


@dataclass(frozen=True)
class Page:
    path: Path
    text: str

    def links(self) -> Iterator[Link]:
        """All links, also those to elsewhere; what stands in code is text."""
        for number, line in self._prose():
            plain = CODE.sub("", line)
            definition = LINK_DEFINITION.match(plain)
            if definition:
                yield Link(number, definition[1])
            for match in INLINE_LINK.finditer(plain):
                yield Link(number, match[1])

    def anchors(self) -> set[str]:
        """What `#…` may name here: each heading as GitHub writes it, the second of two equal ones with a number."""
        found: set[str] = set()
        seen: dict[str, int] = {}
        for _, line in self._prose():
            heading = HEADING.match(line)
            if heading:
                anchor = anchor_of(heading[1])
                times = seen.get(anchor, 0)
                seen[anchor] = times + 1
                found.add(anchor if times == 0 else f"{anchor}-{times}")
        return found

    def names_in_code(self) -> Iterator[tuple[int, str]]:
        """What stands between backticks, line by line."""
        for number, line in self._prose():
            for match in CODE.finditer(line):
                yield number, match[0].strip("`").strip()

    def _prose(self) -> Iterator[tuple[int, str]]:
        fenced = False
        for number, line in enumerate(self.text.splitlines(), 1):
            if FENCE.match(line):
                fenced = not fenced
            elif not fenced:
                yield number, line


def anchor_of(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def pages(root: Path) -> dict[Path, Page]:
    found = {}
    for path in sorted(root.rglob("*.md")):
        folders = path.relative_to(root).parts[:-1]
        hidden = any(part.startswith(".") and part not in HIDDEN_AND_OURS for part in folders)
        if not hidden and not NOT_OURS & set(folders):
            found[path] = Page(path, path.read_text())
    return found


def target_of(page: Page, link: Link) -> tuple[Path, str] | None:
    """The file or folder and the anchor that a link names; None where it leads out of the repository."""
    if ELSEWHERE.match(link.target) or link.target.startswith("//"):
        return None
    path, _, anchor = link.target.partition("#")
    return (page.path.parent / path).resolve() if path else page.path, anchor


def dead_links(root: Path) -> list[str]:
    known = pages(root)
    dead = []
    for page in known.values():
        for link in page.links():
            target = target_of(page, link)
            if target is None:
                continue
            where = f"{page.path.relative_to(root)}:{link.line}: {link.target}"
            path, anchor = target
            if root != path and root not in path.parents:
                dead.append(f"{where} leads out of the repository")
            elif not path.exists():
                dead.append(f"{where} is not there")
            elif anchor and (path not in known or anchor not in known[path].anchors()):
                dead.append(f"{where}: no such heading")
    return dead


def linked_from(page: Page) -> set[Path]:
    targets = (target_of(page, link) for link in page.links())
    paths = {target[0] for target in targets if target is not None}
    return {path / "README.md" if path.is_dir() else path for path in paths}


def orphans(root: Path) -> list[str]:
    """Pages below docs/ that no index (a README.md of their folder or of one above, up to docs/) names, and indexes
    that cannot be reached from the README.md of the project."""
    known = pages(root)
    docs = root / "docs"
    lost = []
    for path in known:
        if docs not in path.parents:
            continue
        above = [folder / "README.md" for folder in path.parents if folder == docs or docs in folder.parents]
        if path.name == "README.md":
            above = [root / "README.md"] if path.parent == docs else above[1:]
        if not any(path in linked_from(known[index]) for index in above if index in known):
            lost.append(str(path.relative_to(root)))
    return lost
