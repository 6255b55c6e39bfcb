"""What producers and consumers of Kafka's tools need: settings merged as there, errors as in Java's client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, check_servers, java_failure, read_config
from moldau.cli.kafka.java_network import JavaNetwork
from moldau.cli.kafka.options import JavaFailure, Options
from moldau.client.config import ClientConfig, Setting
from moldau.client.errors import ClientError, NoBrokerError
from moldau.protocol.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED
from moldau.protocol.integers import INT_MAX

if TYPE_CHECKING:
    from moldau.client.producer import Producer

# Settings that must not be dropped although this client may not have them: refused, not ignored.
_NEVER_IGNORED = ("ssl.", "sasl.", "security.", "transactional.id")


# Settings


def read_pairs(texts: list[str]) -> dict[str, str]:
    """`name=value` each; the value may be empty."""
    pairs = (text.partition("=") for text in texts if text)
    return {name: value for name, _, value in pairs}


def merge(config: dict[str, str], name: str, options: Options, option: str) -> None:
    """An option that was given overrides a property; its default fills a property that was not."""
    if not options.has(option) and name in config:
        return
    kind = options.parser.options[option].type_name
    value = (
        options.text(option)
        if kind == "String"
        else options.long(option)
        if kind == "Long"
        else options.integer(option)
    )
    if value is not None:
        config[name] = str(value)


def file_settings(options: Options, *names: str) -> dict[str, str]:
    """The settings of the file that one of these options names."""
    for name in names:
        path = options.text(name)
        if path is not None:
            return read_config(path)
    return {}


def new_producer(config: Mapping[str, str], **more: object) -> Producer:
    """A producer with these settings; those that only Java's client has are ignored, as it ignores ours."""
    from moldau.client.config import PRODUCER
    from moldau.client.producer import Producer
    from moldau.client.wiring import wired

    known, checked = checked_settings(PRODUCER, config)
    check_servers(config.get("bootstrap.servers", ""), "bootstrap.servers", "Failed to construct kafka producer")
    network = JavaNetwork(checked, f"Producer clientId={known.get('client.id', 'producer-1')}")
    return Producer(config=wired(known, network=network), **more)  # type: ignore[arg-type]


def checked_settings(settings: Mapping[str, Setting], config: Mapping[str, str]) -> tuple[dict[str, str], ClientConfig]:
    """The settings that our client knows, as given and as read."""
    known = _known(config, settings)
    try:
        return known, ClientConfig(settings, known)
    except ClientError as error:
        sentence = java_config_text(error.message, settings)
        raise JavaFailure("org.apache.kafka.common.config.ConfigException", sentence) from None


def java_config_text(message: str, settings: Mapping[str, Setting]) -> str:
    """What Java's client says about a value that makes no sense for a setting."""
    found = re.fullmatch(r"Invalid value (.*) for ([\w.]+): it must be (.*)\.", message, re.DOTALL)
    if found is None or found[2] not in settings:
        return message
    value, name, wanted = found.groups()
    row = settings[name]
    reason = "Expected value to be either true or false"
    if row.choices:
        reason = f"String must be one of: {wanted.removeprefix('one of ')}"
    elif wanted == "a whole number":
        reason = f"Not a number of type {'LONG' if (row.highest or 0) > INT_MAX else 'INT'}"
    elif row.lowest is not None and row.highest is not None and wanted.startswith("from "):
        reason = (
            f"Value must be at least {row.lowest}"
            if int(value) < row.lowest
            else f"Value must be no more than {row.highest}"
        )
    return f"Invalid value {value} for configuration {name}: {reason}"


def _known(config: Mapping[str, str], settings: Mapping[str, Setting]) -> dict[str, str]:
    return {name: value for name, value in config.items() if name in settings or name.startswith(_NEVER_IGNORED)}


def client_failure(error: ClientError, topic: str = "", waited_ms: int = 0) -> JavaFailure:
    """The exception that Java's client has for this error of ours."""
    if isinstance(error, NoBrokerError) and topic:
        sentence = f"Topic {topic} not present in metadata after {waited_ms} ms."
        return JavaFailure(ERRORS_PACKAGE + "TimeoutException", sentence)
    if error.code == INVALID_TOPIC_EXCEPTION and topic:
        return JavaFailure(ERRORS_PACKAGE + "InvalidTopicException", f"Invalid topics: [{topic}]")
    if error.code == TOPIC_AUTHORIZATION_FAILED and topic:
        sentence = f"Not authorized to access topics: [{topic}]"
        return JavaFailure(ERRORS_PACKAGE + "TopicAuthorizationException", sentence)
    return java_failure(error)
