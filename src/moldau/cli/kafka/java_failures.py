"""Failures that have causes, as Java prints them: which exception of the client hides in which others.

Kafka's tools show an exception as it reached them. Whether that is the client's own, one of a future that failed, or
one around both depends on the call, and people see it; so each call says here how its failure arrives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.admin_tools import Connect, ask, said
from moldau.cli.kafka.options import JavaFailure

if TYPE_CHECKING:
    from moldau.client.admin import Admin

T = TypeVar("T")

EXECUTION = "java.util.concurrent.ExecutionException"
RUNTIME = "java.lang.RuntimeException"
KAFKA = "org.apache.kafka.common.KafkaException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
NO_FILE = "java.nio.file.NoSuchFileException"
TIMEOUT = "org.apache.kafka.common.errors.TimeoutException"


class WrappedFailure(JavaFailure):
    """An exception around another one: its message is what the other one is."""

    def __init__(self, class_name: str, cause: JavaFailure, message: str | None = None) -> None:
        super().__init__(class_name, said(cause) if message is None else message)
        self.cause = cause


def executed(call: str, work: Callable[[], T]) -> T:
    """Runs a call whose failure arrives as that of a future; call: its name in Java's client."""
    try:
        return ask(call, work)
    except JavaFailure as failure:
        raise WrappedFailure(EXECUTION, failure) from None


def unchecked(call: str, work: Callable[[], T]) -> T:
    """Runs a call whose failure arrives wrapped twice."""
    try:
        return executed(call, work)
    except JavaFailure as failure:
        raise WrappedFailure(RUNTIME, failure) from None


def open_admin(connect: Connect, servers: str | None, config_file: str | None) -> Admin:
    """The admin client; settings that it does not take arrive as the failure to make one."""
    try:
        return ask("", lambda: connect(servers, config_file))
    except JavaFailure as failure:
        if failure.class_name == NO_FILE:
            raise
        message = failure.message or ""
        address = re.fullmatch(r"Invalid address (.*) in bootstrap\.servers: .*", message)
        said_so = f"Invalid url in bootstrap.servers: {address[1]}" if address is not None else message
        cause = JavaFailure(failure.class_name, said_so)
        raise WrappedFailure(KAFKA, cause, "Failed to create new KafkaAdminClient") from None


def list_all(work: Callable[[], T]) -> T:
    """A call that asks all brokers for their groups."""
    try:
        return ask("findAllBrokers", work)
    except JavaFailure as failure:
        if failure.class_name != TIMEOUT:
            raise
        raise WrappedFailure(KAFKA, failure, "Failed to find brokers to send ListGroups") from None


def trace(failure: JavaFailure) -> str:
    """The lines of a stack trace without the stack, which would tell nobody here anything."""
    lines = [said(failure)]
    while isinstance(failure, WrappedFailure):
        failure = failure.cause
        lines.append(f"Caused by: {said(failure)}")
    return "".join(f"{line}\n" for line in lines)
