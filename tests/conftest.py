"""What all tests share: which build they run against, and a guard that a compiled run is really compiled."""

from __future__ import annotations

import os
import resource
import signal

import pytest
from hypothesis import settings

from moldau import build_info

# A shell starts what runs in the background with SIGINT ignored; tests of Ctrl-C, and processes they start, need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes says how busy the machine is.
settings.register_profile("moldau", deadline=None)
settings.load_profile("moldau")

# Thousands of tests of one process leave some files to its end.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, _hard) if _hard != resource.RLIM_INFINITY else 65536, _hard))


def pytest_report_header() -> str:
    return build_info.describe()


def pytest_sessionstart(session: pytest.Session) -> None:
    """A run that claims to test the compiled build must not quietly test the sources."""
    if os.environ.get("MOLDAU_EXPECT_COMPILED") == "1" and not build_info.is_compiled():
        raise pytest.UsageError("these tests were to run on the compiled build, but moldau is imported interpreted")
