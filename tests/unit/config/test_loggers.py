"""Levels of the node's own loggers, described and changed over the wire."""

import logging

import pytest

from moldau.config.loggers import DELETE, SET, change_logger, check_logger_change, logger_levels
from moldau.protocol.errors import INVALID_CONFIG, INVALID_REQUEST, KafkaError

REFUSED = (
    "Cannot set the log level of root to debug as it is not a supported log level. "
    "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
)
NAME = "moldau.test.loggers"


def test_levels_are_given_in_kafkas_names_and_inherited() -> None:
    """A logger without a level of its own works at its parent's."""
    logging.getLogger(NAME)
    logging.getLogger("someone.elses")
    assert logger_levels()[NAME] in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
    assert "root" in logger_levels()
    assert "someone.elses" not in logger_levels()


def test_a_level_is_set_and_taken_away_again() -> None:
    """Without its own level the logger follows its parent again."""
    before = logging.getLogger(NAME).getEffectiveLevel()
    for level in ("TRACE", "FATAL"):
        check_logger_change(NAME, SET, level)
        change_logger(NAME, SET, level)
        assert logger_levels()[NAME] == level
    change_logger(NAME, DELETE, None)
    assert logging.getLogger(NAME).getEffectiveLevel() == before


@pytest.mark.parametrize(
    ("name", "operation", "level", "code", "message"),
    [
        ("root", SET, "debug", INVALID_CONFIG, REFUSED),
        ("no.such.logger", SET, "INFO", INVALID_CONFIG, "Logger no.such.logger does not exist!"),
        ("root", DELETE, None, INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
        ("root", 2, "DEBUG", INVALID_REQUEST, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
    ],
)
def test_changes_that_make_no_sense_are_refused(
    name: str, operation: int, level: str | None, code: int, message: str
) -> None:
    """In the words of the real broker."""
    with pytest.raises(KafkaError) as caught:
        check_logger_change(name, operation, level)
    assert (caught.value.code, caught.value.message) == (code, message)
