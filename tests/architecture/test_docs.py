"""Whoever opens README.md finds every page, no link leads nowhere, and the map knows every package."""

from __future__ import annotations

import re
from pathlib import Path

from moldau import __version__
from tests.architecture.pages import dead_links, orphans, pages
from tests.architecture.source_tree import PACKAGE, ROOT

MAP = ROOT / "docs" / "MAP.md"
# The changelog speaks of the past; the map names files from their package on, and `make` checks that it is new.
NAMES_ARE_NOT_CHECKED = {"CHANGELOG.md", "MAP.md"}
# A file of the project, as pages name it: `storage/log.py`, `tests/sim/README.md`, `bench/compare.py`.
FILE_NAME = re.compile(r"^(?!.*NNN)(?:[\w.-]+/)+[\w-]+\.(?:py|md|toml|txt|sh|yml)$")
METHOD_IN_FILE = re.compile(r"`(_?[A-Z]\w+)\.(\w+)`\s+\(`([\w/]+\.py)`")
# Folders that such a name may begin in.
BASES = (ROOT, ROOT / "src", PACKAGE, ROOT / "docs")

CATEGORIES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Performance", "Security")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# The project


def test_every_page_is_named_by_an_index() -> None:
    lost = orphans(ROOT)
    assert not lost, f"link them from docs/README.md (or the README.md of their folder): {lost}"


def test_the_pages_at_the_root_are_named_by_the_index() -> None:
    text = (ROOT / "docs" / "README.md").read_text()
    missing = [path.name for path in sorted(ROOT.glob("*.md")) if f"](../{path.name})" not in text]
    assert not missing, f"link them from docs/README.md: {missing}"


def test_no_link_is_dead() -> None:
    dead = dead_links(ROOT)
    assert not dead, "\n".join(dead)


def test_files_that_pages_name_are_there() -> None:
    """A page that sends its reader to a file that was renamed misleads."""
    wrong = []
    for path, page in pages(ROOT).items():
        if path.name in NAMES_ARE_NOT_CHECKED:
            continue
        folder = path.parent
        for line, name in page.names_in_code():
            if FILE_NAME.match(name) and not any((base / name).exists() for base in (*BASES, folder)):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert not wrong, "\n".join(wrong)


def test_methods_that_pages_name_with_their_file_are_there() -> None:
    """`Partition.maybe_shrink_in_sync_replicas` (`replication/partition.py`): both halves are true."""
    wrong, found = [], 0
    for path in pages(ROOT):
        for owner, method, name in METHOD_IN_FILE.findall(path.read_text()):
            files = [base / name for base in BASES if (base / name).is_file()]
            found += 1
            text = files[0].read_text() if files else ""
            if f"class {owner}" not in text or f"def {method}(" not in text:
                wrong.append(f"{path.relative_to(ROOT)}: {owner}.{method} is not in {name}")
    assert not wrong, "\n".join(wrong)
    assert found >= 5


def test_the_map_lists_every_package() -> None:
    listed = set(re.findall(r"^## `([\w.]+)/`", MAP.read_text(), re.MULTILINE))
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    packages |= {path.parent.name for path in PACKAGE.glob("*/*.py")}
    missing = sorted(packages - listed)
    assert not missing, f"add to DIRECTORIES in tools/generate_docs.py, then `make docs`: {missing}"
    gone = sorted(listed - packages - {path.name for path in ROOT.iterdir()})
    assert not gone, f"remove from DIRECTORIES in tools/generate_docs.py, then `make docs`: {gone}"


def test_the_map_has_a_line_for_every_folder_inside_a_package() -> None:
    listed = set()
    for section in re.split(r"^## ", MAP.read_text(), flags=re.MULTILINE)[1:]:
        package = section.partition("`")[2].partition("/`")[0]
        listed |= {f"{package}/{name}" for name in re.findall(r"^- `([\w/]+)/`: \S", section, re.MULTILINE)}
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/*/**/*.py")}
    assert listed == folders, f"say in __init__.py what the folder is for, then `make docs`: {sorted(listed ^ folders)}"


def test_the_changelog_has_this_version_in_categories() -> None:
    headings = re.findall(r"^(##+) (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [text.split()[0] for level, text in headings if level == "##"]
    assert versions[:2] == ["Unreleased", __version__]
    unknown = [text for level, text in headings if level == "###" and text.split(":")[0] not in CATEGORIES]
    assert not unknown, (
        f"a category is one of {', '.join(CATEGORIES)}, perhaps with a part of the project behind a colon"
    )


# What finds them


def test_an_orphan_is_found(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "[docs](docs/README.md)")
    write(tmp_path / "docs" / "README.md", "[one](one.md), [decisions](adr/README.md)")
    write(tmp_path / "docs" / "one.md", "[two](two.md)")
    write(tmp_path / "docs" / "two.md", "named by a page, but by no index")
    write(tmp_path / "docs" / "adr" / "README.md", "[first](0001.md)")
    write(tmp_path / "docs" / "adr" / "0001.md", "")
    write(tmp_path / "docs" / "adr" / "0002.md", "")
    assert orphans(tmp_path) == ["docs/adr/0002.md", "docs/two.md"]


def test_an_index_that_nobody_names_is_an_orphan(tmp_path: Path) -> None:
    write(tmp_path / "README.md", "no link")
    write(tmp_path / "docs" / "README.md", "no link")
    write(tmp_path / "docs" / "adr" / "README.md", "")
    assert orphans(tmp_path) == ["docs/README.md", "docs/adr/README.md"]


def test_dead_links_are_found(tmp_path: Path) -> None:
    write(
        tmp_path / "README.md",
        "# A page, of `mine`\n\n# Twice\n\n# Twice\n\n[1](#a-page-of-mine) [2](#twice-1) [3](#no)\n",
    )
    write(
        tmp_path / "docs" / "a.md",
        "[up](../README.md#twice) [gone](gone.md) [bad](../README.md#never) [out](../../x.md)\n"
        "`[in code](nothing.md)` [elsewhere](https://example.org/x.md) [folder](../docs)\n"
        "```\n[in a fence](nothing.md)\n```\n[defined]: missing.md\n",
    )
    assert dead_links(tmp_path) == [
        "README.md:7: #no: no such heading",
        "docs/a.md:1: gone.md is not there",
        "docs/a.md:1: ../README.md#never: no such heading",
        "docs/a.md:1: ../../x.md leads out of the repository",
        "docs/a.md:6: missing.md is not there",
    ]
