"""What the tools on the admin client share: how they connect, and how they show errors as Java's client would."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.options import JavaFailure

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.results import Outcome

T = TypeVar("T")
K = TypeVar("K")

ERRORS_PACKAGE = "org.apache.kafka.common.errors."
# Settings that must not be ignored although this client may not have them: refused, not dropped.
_NEVER_IGNORED = ("ssl.", "sasl.", "security.")
# What Java's client says where the broker sends a code alone.
_JAVA_TEXTS = {
    "OFFSET_OUT_OF_RANGE": "The requested offset is not within the range of offsets maintained by the server.",
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
}

Connect = Callable[..., "Admin"]


def connect(
    servers: str | None, config_file: str | None = None, controllers: str | None = None, **more: object
) -> Admin:
    """An admin client with the settings of the file, which Kafka's tools take with --command-config."""
    from moldau.client.admin import Admin

    config = _known(read_config(config_file)) if config_file is not None else {}
    config.pop("bootstrap.servers", None)
    where = {"bootstrap.controllers": controllers} if controllers is not None else {"bootstrap.servers": servers}
    return Admin(config={**config, **where, **more})


def read_config(path: str) -> dict[str, str]:
    """The settings of a properties file."""
    from moldau.config.properties import parse_properties

    try:
        with open(path, encoding="iso-8859-1") as file:
            return parse_properties(file.read())
    except FileNotFoundError:
        raise JavaFailure("java.nio.file.NoSuchFileException", path) from None


def _known(config: dict[str, str]) -> dict[str, object]:
    """Java's clients ignore settings that they do not know, and people's files have settings for other clients."""
    from moldau.client.config import ADMIN

    return {name: value for name, value in config.items() if name in ADMIN or name.startswith(_NEVER_IGNORED)}


def ask(call: str, work: Callable[[], T]) -> T:
    """Runs one call of the admin client (`call`: its name in Java's); its errors become those of Java's client."""
    from moldau.client.errors import ClientError

    try:
        return work()
    except ClientError as error:
        raise java_failure(error, call) from None
    except ValueError as error:
        # What the client refuses to send: it makes no sense.
        raise JavaFailure("java.lang.IllegalArgumentException", str(error)) from None


def get_all(call: str, work: Callable[[], Mapping[K, Outcome[T]]]) -> dict[K, T]:
    """The values of all items, or the first error."""
    return ask(call, lambda: {item: outcome.get() for item, outcome in work().items()})


def java_failure(error: Exception, call: str = "") -> JavaFailure:
    """The exception that Java's client throws where ours raises this one."""
    from moldau.client.errors import (
        ClientError,
        ConfigError,
        NoBrokerError,
        RequestTimeoutError,
        UnsupportedVersionError,
    )
    from moldau.protocol.errors import default_text, error_row

    assert isinstance(error, ClientError)
    if isinstance(error, NoBrokerError):
        return JavaFailure(
            ERRORS_PACKAGE + "TimeoutException", f"Timed out waiting for a node assignment. Call: {call}"
        )
    if isinstance(error, ConfigError):
        return JavaFailure("org.apache.kafka.common.config.ConfigException", error.message)
    if isinstance(error, RequestTimeoutError):
        return JavaFailure(ERRORS_PACKAGE + "TimeoutException", error.message)
    message = error.message
    if isinstance(error, UnsupportedVersionError):
        # The api in the spelling of Java's client.
        missing = re.search(r"does not offer (\w+)\.$", message)
        if missing is not None:
            message = "The node does not support " + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", missing[1]).upper()
    if error.name in _JAVA_TEXTS and message == default_text(error.code):
        message = _JAVA_TEXTS[error.name]
    return JavaFailure(ERRORS_PACKAGE + error_row(error.code).exception, message)


def log_line(level: str, text: str, logger: str) -> str:
    """A line of the log that the tools write to the error output."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    return f"[{stamp},{int(now * 1000) % 1000:03d}] {level} {text} ({logger})\n"


def said(failure: JavaFailure) -> str:
    """The exception as Java prints it; there is no stack here that would tell anybody something."""
    return failure.class_name if failure.message is None else f"{failure.class_name}: {failure.message}"
