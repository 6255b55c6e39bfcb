"""What all tests share: which build they run against, and a guard that a compiled run is really compiled."""

from __future__ import annotations

import os

import pytest

from moldau import build_info


def pytest_report_header() -> str:
    return build_info.describe()


def pytest_sessionstart(session: pytest.Session) -> None:
    """A run that claims to test the compiled build must not quietly test the sources."""
    if os.environ.get("MOLDAU_EXPECT_COMPILED") == "1" and not build_info.is_compiled():
        raise pytest.UsageError("these tests were to run on the compiled build, but moldau is imported interpreted")
