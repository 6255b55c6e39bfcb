"""Lines for what collects logs: each an object, whatever the text has in it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from moldau.server.log_lines import JsonLines, set_up_logging


def line_of(message: str, *arguments: object, failed: bool = False) -> dict[str, str]:
    trouble = None
    if failed:
        try:
            raise OSError("no space")
        except OSError:
            trouble = sys.exc_info()
    record = logging.LogRecord("moldau.node", logging.WARNING, "", 1, message, arguments, trouble)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    text = JsonLines().format(record)
    assert "\n" not in text
    found: dict[str, str] = json.loads(text)
    return found


def test_a_line_is_an_object() -> None:
    assert line_of('broker %d said "%s"\nand left', 3, "no\x00") == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARNING",
        "logger": "moldau.node",
        "message": 'broker 3 said "no\x00"\nand left',
    }


def test_a_traceback_is_part_of_its_line() -> None:
    assert line_of("failed", failed=True)["exception"].endswith("OSError: no space")


def test_processes_that_a_node_starts_write_as_it_does() -> None:
    """As those do that recover logs."""
    child = "from moldau.server.log_lines import *; set_up_logging('WARNING'); logging.warning('ends early')"
    parent = f"""
from moldau.server.log_lines import *
import subprocess
set_up_logging('INFO', 'json')
subprocess.run([sys.executable, '-c', {child!r}], check=True)
"""
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr)["message"] == "ends early"


def test_what_there_is_not() -> None:
    for level, form in (("WARNING", "xml"), ("LOUD", "json")):
        with pytest.raises(ValueError):
            set_up_logging(level, form)
