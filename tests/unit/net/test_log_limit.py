"""However often a client makes the broker complain, the log stays short and says what it leaves out."""

from __future__ import annotations

import logging

from moldau.net.log_limit import INTERVAL_S, LINES_MAX, LogLimit


def lines_of(times: list[tuple[float, str]]) -> list[str]:
    limit, lines = LogLimit(), []
    for created, message in times:
        record = logging.LogRecord("moldau.net", logging.WARNING, "", 0, message, ("1.2.3.4",), None)
        record.created = created
        if limit.filter(record):
            lines.append(record.getMessage())
    return lines


def test_a_flood_becomes_a_few_lines_and_a_number() -> None:
    flood = [(100.0 + number / 1000, "closing %s") for number in range(1000)]
    lines = lines_of([*flood, (100.0 + INTERVAL_S, "closing %s")])
    assert lines[:-1] == ["closing 1.2.3.4"] * LINES_MAX
    assert lines[-1] == f"closing 1.2.3.4 ({1000 - LINES_MAX} more lines like this were left out)"


def test_other_lines_are_not_lost_in_the_flood() -> None:
    flood = [(100.0, "closing %s")] * 1000
    assert "refusing 1.2.3.4" in lines_of([*flood, (100.0, "refusing %s")])


def test_a_clock_that_is_set_back_does_not_silence_it() -> None:
    flood = [(100.0, "closing %s")] * 1000
    assert len(lines_of([*flood, (50.0, "closing %s")])) == LINES_MAX + 1
