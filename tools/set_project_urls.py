"""Writes the project's URLs into pyproject.toml: set_project_urls.py URL, where URL is the repository's own page.

They are not in the file, because whoever publishes knows the address: a fork's packages point to the fork.
"""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
PAGES = {
    "Homepage": "",
    "Documentation": "/blob/HEAD/docs/README.md",
    "Changelog": "/blob/HEAD/CHANGELOG.md",
    "Source": "",
    "Issues": "/issues",
}
BEFORE = "[project.optional-dependencies]\n"


def with_urls(text: str, url: str) -> str:
    if "[project.urls]" in text:
        raise SystemExit("pyproject.toml has URLs already: start from the file as it was committed")
    if not url.startswith("https://") or any(character in url for character in '"\\ \n'):
        raise SystemExit(f"{url!r} is not the https address of a repository")
    rows = [f'{name} = "{url.rstrip("/")}{page}"\n' for name, page in PAGES.items()]
    return text.replace(BEFORE, f"[project.urls]\n{''.join(rows)}\n{BEFORE}", 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    PROJECT.write_text(with_urls(PROJECT.read_text(), sys.argv[1]))
