"""What is too long is cut, says so, and says how to get on; nothing is left out without a word."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.mcp.bounds import NOTES, Limits, Part, bounded, json_size, limits_of, shrunk, tidy

SMALL = Limits(10, 4_000, 100)


def read_all(rows: list[Any], limits: Limits) -> list[Any]:
    """Asks again and again, as an answer says."""
    found: list[Any] = []
    for _ in range(1_000):
        rest = rows[len(found) :]
        answer = bounded({"rows": rest}, [Part("rows", "skip", len(found), len(rows))], limits)
        assert json_size(answer) <= limits.bytes
        found += answer["rows"]
        if NOTES not in answer:
            return found
        assert answer[NOTES][0].endswith(f"skip={len(found)}.")
    raise AssertionError("it never ends")


@pytest.mark.parametrize("size", [1, 50, 390])
@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 95])
def test_who_does_as_told_gets_every_row_once(size: int, count: int) -> None:
    rows = [{"number": number, "text": "x" * min(size, 100), "more": ["y"] * (size // 4)} for number in range(count)]
    assert read_all(rows, SMALL) == rows


def test_a_list_that_is_whole_has_no_note() -> None:
    assert bounded({"rows": [1, 2]}, [Part("rows", "skip", 0, 2)], SMALL) == {"rows": [1, 2]}


def test_the_first_list_has_what_the_others_leave() -> None:
    rows, side = [{"text": "r" * 90}] * 10, [{"text": "s" * 90}] * 100
    parts = [Part("rows", "skip", 0, 10), Part("side", "skip_side", 0, 100)]
    found = bounded({"rows": rows, "side": side}, parts, Limits(50, 4_000, 100))
    assert len(found["rows"]) == 10 and 0 < len(found["side"]) <= 10
    assert [note.split(":")[0] for note in found[NOTES]] == ["side"] and "skip_side=" in found[NOTES][0]


def test_a_row_that_is_too_large_by_itself_keeps_what_is_short() -> None:
    row = {"id": 7, "assignment": {f"topic-{number}": [1, 2, 3] for number in range(500)}}
    answer = bounded({"rows": [row, row]}, [Part("rows", "skip", 0, 2)], SMALL)
    assert answer["rows"] == [{"id": 7, "left_out": ["assignment"]}] and "skip=1" in answer[NOTES][0]
    assert shrunk(["x" * 9_000]) == {"left_out": "it is too large"}


def test_texts_are_cut_and_nothing_in_them_is_hidden() -> None:
    found = tidy({"a": ["x" * 101, "fine"], "b\x1b": "\u202eturned\x00"}, 100)
    assert found["a"] == ["x" * 100 + "… (cut: 101 characters in all)", "fine"]
    assert found["b\\x1b"] == "\\u202eturned\\x00"


def test_one_text_is_a_small_part_of_an_answer() -> None:
    assert limits_of(10, 64 * 1024).chars == 2_000
    assert limits_of(10, 4_096).chars == 256
