"""A page of a long list: searched, sorted and cut where the list is, so that whoever asked is spared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

PAGE_ROWS = 50
PAGE_ROWS_MAX = 500


class Page(NamedTuple):
    """The rows of one page; total: how many all pages have, of all: how many there are without the search."""

    rows: Sequence[Any]
    page: int
    pages: int
    total: int
    of_all: int

    def around(self, rows: object) -> dict[str, object]:
        """As the API shows it."""
        return {"rows": rows, "page": self.page, "pages": self.pages, "total": self.total, "of_all": self.of_all}


def matches(name: str, search: str) -> bool:
    """Whether all words of the search are somewhere in the name, in any case."""
    lowered = name.lower()
    return all(word in lowered for word in search.lower().split())


def page_of(
    rows: Iterable[T],
    *,
    name: Callable[[T], str],
    search: str = "",
    key: Callable[[T], Any] | None = None,
    descending: bool = False,
    page: int = 0,
    size: int = PAGE_ROWS,
    skip: int | None = None,
) -> Page:
    """Sorted by key and then by name; without a key by name alone. A page behind the last is the last.

    skip: begins behind so many rows, wherever pages begin.
    """
    every = list(rows)
    found = [row for row in every if matches(name(row), search)] if search.strip() else list(every)
    found.sort(key=name, reverse=descending and key is None)
    if key is not None:
        # Names stay in order among equals, whichever way the keys go.
        found.sort(key=key, reverse=descending)
    pages = max(1, -(-len(found) // size))
    chosen = min(max(page if skip is None else skip // size, 0), pages - 1)
    first = chosen * size if skip is None else skip
    return Page(found[first : first + size], chosen, pages, len(found), len(every))
