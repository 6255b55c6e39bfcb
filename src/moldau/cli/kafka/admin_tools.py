"""What the tools on the admin client share: how they connect, and how they show errors as Java's client would."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.java_log import log_line
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
    "CLUSTER_AUTHORIZATION_FAILED": "Cluster authorization failed.",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": "Delegation Token authorization failed.",
    "DELEGATION_TOKEN_AUTH_DISABLED": "Delegation Token feature is not enabled.",
    "DELEGATION_TOKEN_EXPIRED": "Delegation Token is expired.",
    "DELEGATION_TOKEN_NOT_FOUND": "Delegation Token is not found on server.",
    "DELEGATION_TOKEN_OWNER_MISMATCH": "Specified Principal is not valid Owner/Renewer.",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token"
        " authenticated channels."
    ),
    "GROUP_AUTHORIZATION_FAILED": "Group authorization failed.",
    "LOG_DIR_NOT_FOUND": "The user-specified log directory is not found in the broker config.",
    "OFFSET_OUT_OF_RANGE": "The requested offset is not within the range of offsets maintained by the server.",
    "TOPIC_AUTHORIZATION_FAILED": "Topic authorization failed.",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Transactional Id authorization failed.",
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
}

Connect = Callable[..., "Admin"]


def connect(
    servers: str | None, config_file: str | None = None, controllers: str | None = None, **more: object
) -> Admin:
    """An admin client with the settings of the file, which Kafka's tools take with --command-config."""
    from moldau.cli.kafka.java_network import JavaNetwork
    from moldau.client.admin import Admin
    from moldau.client.config import ADMIN, ClientConfig
    from moldau.client.wiring import wired

    config = known_settings(read_config(config_file)) if config_file is not None else {}
    config.pop("bootstrap.servers", None)
    setting = "bootstrap.servers" if controllers is None else "bootstrap.controllers"
    address = servers if controllers is None else controllers
    # Java's client names this setting, whichever of the two was given.
    check_servers(address or "", "bootstrap.servers", "Failed to create new KafkaAdminClient")
    settings: dict[str, object] = {"enable.metrics.push": False, **config, **more}
    context = f"AdminClient clientId={config.get('client.id', 'adminclient-1')}"
    network = JavaNetwork(ClientConfig(ADMIN, settings), context, for_admin=True)
    return Admin(config=wired({**settings, setting: address}, network=network))


def check_servers(servers: str, setting: str, failed: str) -> None:
    """Java's clients end at once where none of the servers can be found; `failed`: what could not be made."""
    import socket

    reason = None
    found = 0
    for server in filter(None, (part.strip() for part in servers.split(","))):
        address = re.fullmatch(r"(?:.*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:(\d+)", server)
        if address is None:
            reason = f"Invalid url in {setting}: {server}"
            break
        if not 0 < int(address[2]) < 65536:
            reason = f"Invalid port in {setting}: {server}"
            break
        try:
            socket.getaddrinfo(address[1], int(address[2]), type=socket.SOCK_STREAM)
            found += 1
        except OSError:
            sentence = f"Couldn't resolve server {server} from {setting} as DNS resolution failed for {address[1]}"
            sys.stderr.write(log_line("WARN", sentence, "org.apache.kafka.clients.ClientUtils"))
    if reason is None and not found:
        reason = f"No resolvable bootstrap urls given in {setting}"
    if reason is not None:
        cause = JavaFailure("org.apache.kafka.common.config.ConfigException", reason)
        raise JavaFailure("org.apache.kafka.common.KafkaException", failed, cause)


def read_config(path: str) -> dict[str, str]:
    """The settings of a properties file."""
    from moldau.config.properties import parse_properties

    try:
        with open(path, encoding="iso-8859-1") as file:
            return parse_properties(file.read())
    except FileNotFoundError:
        raise JavaFailure("java.nio.file.NoSuchFileException", path) from None


def read_text(path: str) -> str:
    """The content of a file that an option names."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        cause = JavaFailure("java.nio.file.NoSuchFileException", path)
        raise JavaFailure("java.io.IOException", f"Unable to read file {path}", cause) from None


def known_settings(config: dict[str, str]) -> dict[str, object]:
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


def java_text(failure: JavaFailure) -> str:
    return failure.java_text()
