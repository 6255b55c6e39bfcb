"""Long lists: searched, sorted and cut."""

from __future__ import annotations

from moldau.actions.paging import page_of

NAMES = [f"orders-{number:03d}" for number in range(120)] + ["Billing.eu", "billing.us"]


def test_pages_have_all_rows_once() -> None:
    pages = [page_of(NAMES, name=str, page=number, size=50) for number in range(3)]
    assert [name for page in pages for name in page.rows] == sorted(NAMES)
    assert pages[0].pages == 3 and pages[0].total == 122


def test_a_page_behind_the_last_is_the_last() -> None:
    assert page_of(NAMES, name=str, page=99, size=50).page == 2
    assert page_of([], name=str, page=5).rows == []


def test_all_words_of_a_search_count_in_any_case() -> None:
    assert page_of(NAMES, name=str, search="BILL us").rows == ["billing.us"]
    found = page_of(NAMES, name=str, search="nothing")
    assert (found.total, found.of_all, found.pages) == (0, 122, 1)


def test_equal_keys_keep_names_in_order() -> None:
    rows = [("b", 1), ("a", 1), ("c", 2)]
    found = page_of(rows, name=lambda row: row[0], key=lambda row: row[1], descending=True)
    assert [row[0] for row in found.rows] == ["c", "a", "b"]
    assert [row[0] for row in page_of(rows, name=lambda row: row[0], descending=True).rows] == ["c", "b", "a"]


def test_rows_can_be_passed_over_wherever_pages_begin() -> None:
    rows = [f"t{number:02}" for number in range(25)]
    page = page_of(rows, name=lambda row: row, size=10, skip=7)
    assert list(page.rows) == rows[7:17] and (page.total, page.of_all) == (25, 25)
    assert list(page_of(rows, name=lambda row: row, size=10, skip=22).rows) == rows[22:]
    assert list(page_of(rows, name=lambda row: row, size=10, skip=99).rows) == []
