"""Failures that have causes, as Java prints them: which exception of the client hides in which others.

Kafka's tools show an exception as it reached them. Whether that is the client's own, one of a future that failed, or
one around both depends on the call, and people see it; so each call says here how its failure arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from moldau.cli.kafka.admin_tools import ask
from moldau.cli.kafka.options import JavaFailure

T = TypeVar("T")

EXECUTION = "java.util.concurrent.ExecutionException"
RUNTIME = "java.lang.RuntimeException"
KAFKA = "org.apache.kafka.common.KafkaException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
NO_FILE = "java.nio.file.NoSuchFileException"
TIMEOUT = "org.apache.kafka.common.errors.TimeoutException"


def own_line(failure: JavaFailure) -> str:
    """The exception as Java names it, without its causes."""
    return failure.class_name if failure.message is None else f"{failure.class_name}: {failure.message}"


def wrapped(class_name: str, cause: JavaFailure, message: str | None = None) -> JavaFailure:
    """An exception around another one; without a message of its own it says what the other one is."""
    return JavaFailure(class_name, own_line(cause) if message is None else message, cause)


def executed(call: str, work: Callable[[], T]) -> T:
    """Runs a call whose failure arrives as that of a future; call: its name in Java's client."""
    try:
        return ask(call, work)
    except JavaFailure as failure:
        raise wrapped(EXECUTION, failure) from None


def unchecked(call: str, work: Callable[[], T]) -> T:
    """Runs a call whose failure arrives wrapped twice."""
    try:
        return executed(call, work)
    except JavaFailure as failure:
        raise wrapped(RUNTIME, failure) from None


def list_all(work: Callable[[], T]) -> T:
    """A call that asks all brokers for their groups."""
    try:
        return ask("findAllBrokers", work)
    except JavaFailure as failure:
        if failure.class_name != TIMEOUT:
            raise
        raise wrapped(KAFKA, failure, "Failed to find brokers to send ListGroups") from None
