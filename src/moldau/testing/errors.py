"""What goes wrong in a test because of the broker, in words that say what to look at."""

from __future__ import annotations


class TestingError(Exception):
    """The base of what this package raises."""

    __test__ = False  # no test class, whatever its name begins with


class BrokerNotStarted(TestingError):
    """A broker did not become ready; the text has its last lines."""


class NotRunning(TestingError):
    """The broker is needed and does not run."""


class WaitTimedOut(TestingError, AssertionError):
    """What was waited for did not come; an AssertionError, so that test runners show it as a failure."""
