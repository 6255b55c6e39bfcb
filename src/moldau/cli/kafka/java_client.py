"""What producers and consumers of Kafka's tools need: settings merged as there, and the log lines of Java's client.

Java's client tells on the error output what it waits for; people who run the tools know these lines, and without them
a tool that waits for a broker looks as if it hung.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.cli.kafka.admin_tools import ERRORS_PACKAGE, check_servers, java_failure, log_line, read_config
from moldau.cli.kafka.options import JavaFailure, Options
from moldau.client.cluster import socket_network
from moldau.client.config import INT_MAX, ClientConfig, Setting
from moldau.client.errors import AdvertisedAddressError, ClientError, NetworkError, NoBrokerError
from moldau.client.transport import Address, Network
from moldau.client.wire import Call
from moldau.protocol.errors import INVALID_TOPIC_EXCEPTION, NONE, TOPIC_AUTHORIZATION_FAILED, error_name
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Message

if TYPE_CHECKING:
    from moldau.client.producer import Producer

Answer = TypeVar("Answer", bound=Message)

NETWORK_LOGGER = "org.apache.kafka.clients.NetworkClient"
METADATA_LOGGER = "org.apache.kafka.clients.Metadata"
BOOTSTRAP_ID = -1
# Settings that must not be dropped although this client may not have them: refused, not ignored.
_NEVER_IGNORED = ("ssl.", "sasl.", "security.", "transactional.id")


class JavaNetwork(Network):
    """The network of a client, with one thing added: it tells of trouble in the words of Java's client."""

    def __init__(self, config: ClientConfig, context: str, for_admin: bool = False) -> None:
        """context: what stands in brackets before each line, such as `Producer clientId=console-producer`.

        for_admin: Java's admin client says less than the others.
        """
        self._inner = socket_network(config)
        self._for_admin = for_admin
        self._context = context
        self._node_ids: dict[Address, int] = {}
        # The last error of each address: calls that come before the next try fail with the same one.
        self._told: dict[Address, NetworkError] = {}
        self._closing = False
        # What our client logs in its own words is told here in Java's.
        logging.getLogger("moldau.client").addHandler(logging.NullHandler())

    def now_ms(self) -> int:
        return self._inner.now_ms()

    def submit(self, address: Address, call: Call[Answer]) -> None:
        then = call.when_done

        def on_done(done: Call[Answer]) -> None:
            if isinstance(done.error, NetworkError):
                self._on_trouble(address, done.error)
            elif done.error is None and done.answer_class is MetadataResponse and not self._for_admin:
                self._on_metadata(done)
            if then is not None:
                then(done)

        call.when_done = on_done
        self._inner.submit(address, call)

    def poll(self, timeout_ms: int) -> None:
        self._inner.poll(timeout_ms)

    def in_flight_count(self, address: Address) -> int:
        return self._inner.in_flight_count(address)

    def is_ready(self, address: Address) -> bool:
        return self._inner.is_ready(address)

    def throttled_ms(self, address: Address) -> int:
        return self._inner.throttled_ms(address)

    def throttle_times(self) -> tuple[float, float]:
        return self._inner.throttle_times()

    def wake(self) -> None:
        self._inner.wake()

    def close(self) -> None:
        self._closing = True
        self._inner.close()

    def _on_trouble(self, address: Address, error: NetworkError) -> None:
        if isinstance(error, AdvertisedAddressError):
            error = error.cause
        if self._closing or self._told.get(address) is error:
            return
        self._told[address] = error
        host, port = address
        node_id = self._node_ids.get(address, BOOTSTRAP_ID)
        shown = f"/{host}:{port}" if host.replace(".", "").isdigit() else f"{host}/{_resolved(host)}:{port}"
        if error.message.startswith("No connection to "):
            sentence = f"Connection to node {node_id} ({shown}) could not be established. Node may not be available."
            self.log("WARN", sentence, NETWORK_LOGGER)
        if node_id == BOOTSTRAP_ID and not self._for_admin:
            broker = f"{host}:{port} (id: -1 rack: null isFenced: false)"
            self.log("WARN", f"Bootstrap broker {broker} disconnected", NETWORK_LOGGER)

    def _on_metadata(self, call: Call[Answer]) -> None:
        answer = call.answer()
        assert isinstance(answer, MetadataResponse)
        self._node_ids = {(broker.host, broker.port): broker.node_id for broker in answer.brokers}
        wrong = {topic.name: topic.error_code for topic in answer.topics if topic.error_code != NONE}
        if not wrong:
            return
        shown = ", ".join(f"{name}={error_name(code)}" for name, code in wrong.items())
        self.log(
            "WARN",
            "The metadata response from the cluster reported a recoverable issue with correlation id"
            f" {call.correlation_id} : {{{shown}}}",
            NETWORK_LOGGER,
        )
        invalid = [str(name) for name, code in wrong.items() if code == INVALID_TOPIC_EXCEPTION]
        if invalid:
            self.log("ERROR", f"Metadata response reported invalid topics [{', '.join(invalid)}]", METADATA_LOGGER)
        refused = [str(name) for name, code in wrong.items() if code == TOPIC_AUTHORIZATION_FAILED]
        if refused:
            self.log("ERROR", f"Topic authorization failed for topics [{', '.join(refused)}]", METADATA_LOGGER)

    def log(self, level: str, sentence: str, logger: str) -> None:
        write_log(level, f"[{self._context}] {sentence}", logger)


_log_lock = threading.Lock()


def write_log(level: str, sentence: str, logger: str, failure: JavaFailure | None = None) -> None:
    """A line of the log, and the exception behind it; the sender's thread writes lines too."""
    text = log_line(level, sentence, logger)
    if failure is not None:
        text += failure.said() + "\n"
    with _log_lock:
        sys.stdout.flush()
        sys.stderr.write(text)
        sys.stderr.flush()


def _resolved(host: str) -> str:
    import socket

    try:
        return str(socket.getaddrinfo(host, 0)[0][4][0])
    except OSError:
        return "<unresolved>"


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

    known, checked = checked_settings(PRODUCER, config)
    check_servers(config.get("bootstrap.servers", ""), "bootstrap.servers", "Failed to construct kafka producer")
    network = JavaNetwork(checked, f"Producer clientId={known.get('client.id', 'producer-1')}")
    return Producer(config=known, network=network, **more)  # type: ignore[arg-type]


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
