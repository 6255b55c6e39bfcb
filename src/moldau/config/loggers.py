"""Levels of the node's own loggers, in Kafka's names, for DescribeConfigs and IncrementalAlterConfigs."""

import logging
from typing import Final

from moldau.protocol.errors import INVALID_CONFIG, INVALID_REQUEST, KafkaError

ROOT: Final = "root"
AUDIT: Final = "kafka.authorizer.logger"

SET: Final = 0
DELETE: Final = 1
_OPERATIONS: Final = {2: "APPEND", 3: "SUBTRACT"}

LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def logger_levels() -> dict[str, str]:
    """The level each of the node's loggers works at, its own or its parent's."""
    names = [name for name in logging.root.manager.loggerDict if f"{name}.".startswith("moldau.") or name == AUDIT]
    levels = {name: _level_name(logging.getLogger(name).getEffectiveLevel()) for name in sorted(names)}
    levels[ROOT] = _level_name(logging.root.level)
    return levels


def check_logger_change(name: str, operation: int, level: str | None) -> None:
    """Raises KafkaError unless the logger exists and may get this level (or lose its own)."""
    if operation in _OPERATIONS:
        raise KafkaError(
            INVALID_REQUEST, f"{_OPERATIONS[operation]} operation is not allowed for the BROKER_LOGGER resource"
        )
    if operation not in (SET, DELETE):
        raise KafkaError(INVALID_REQUEST, f"Unknown operation type {operation}")
    if name not in logger_levels():
        raise KafkaError(INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE:
        if name == ROOT:
            raise KafkaError(INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    elif level not in LEVELS:
        raise KafkaError(
            INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def change_logger(name: str, operation: int, level: str | None) -> None:
    """Applies a change that `check_logger_change` has let pass."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if operation == DELETE or level is None else LEVELS[level])


def _level_name(level: int) -> str:
    """The next name at or below a level, so that a level between two names reads as the more talkative one."""
    name = "TRACE"
    for candidate, number in LEVELS.items():
        if number <= level:
            name = candidate
    return name
