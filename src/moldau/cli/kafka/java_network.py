"""The network of a client, which tells of trouble in the words of Java's client.

Java's client tells on the error output what it waits for; people who run the tools know these lines, and without them
a tool that waits for a broker looks as if it hung.
"""

from __future__ import annotations

import logging
from typing import TypeVar

from moldau.cli.kafka.java_log import write_log
from moldau.cli.kafka.options import JavaFailure
from moldau.client.config import ClientConfig
from moldau.client.connection.cluster import socket_network
from moldau.client.connection.transport import Address, Network
from moldau.client.connection.wire import Call
from moldau.client.errors import AdvertisedAddressError, ClientError, NetworkError
from moldau.client.metrics.meters import NetworkMeter
from moldau.protocol.errors import (
    ILLEGAL_SASL_STATE,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    SASL_AUTHENTICATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    error_name,
    error_row,
)
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Message

Response = TypeVar("Response", bound=Message)

NETWORK_LOGGER = "org.apache.kafka.clients.NetworkClient"
METADATA_LOGGER = "org.apache.kafka.clients.Metadata"
ADMIN_METADATA_LOGGER = "org.apache.kafka.clients.admin.internals.AdminMetadataManager"
LOGIN_ERRORS = frozenset({ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM})
BOOTSTRAP_ID = -1


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
        self._logged_errors: dict[Address, NetworkError] = {}
        self._failed_logins: set[Address] = set()
        self._closing = False
        # What our client logs in its own words is told here in Java's.
        logging.getLogger("moldau.client").addHandler(logging.NullHandler())

    def now_ms(self) -> int:
        return self._inner.now_ms()

    def submit(self, address: Address, call: Call[Response]) -> None:
        then = call.when_done

        def on_done(done: Call[Response]) -> None:
            if isinstance(done.error, NetworkError):
                self._on_trouble(address, done.error)
            elif isinstance(done.error, ClientError) and done.error.code in LOGIN_ERRORS and self._for_admin:
                self._on_failed_login(address, done.error)
            elif done.error is None and done.response_class is MetadataResponse and not self._for_admin:
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

    def meter(self) -> NetworkMeter | None:
        return self._inner.meter()

    def wake(self) -> None:
        self._inner.wake()

    def close(self) -> None:
        self._closing = True
        self._inner.close()

    def _on_trouble(self, address: Address, error: NetworkError) -> None:
        if isinstance(error, AdvertisedAddressError):
            error = error.cause
        if self._closing or self._logged_errors.get(address) is error:
            return
        self._logged_errors[address] = error
        host, port = address
        node_id = self._node_ids.get(address, BOOTSTRAP_ID)
        shown = f"/{host}:{port}" if host.replace(".", "").isdigit() else f"{host}/{_resolved(host)}:{port}"
        if error.message.startswith("No connection to "):
            sentence = f"Connection to node {node_id} ({shown}) could not be established. Node may not be available."
            self.log("WARN", sentence, NETWORK_LOGGER)
        if node_id == BOOTSTRAP_ID and not self._for_admin:
            broker = f"{host}:{port} (id: -1 rack: null isFenced: false)"
            self.log("WARN", f"Bootstrap broker {broker} disconnected", NETWORK_LOGGER)

    def _on_failed_login(self, address: Address, error: ClientError) -> None:
        if self._closing or address in self._failed_logins:
            return
        self._failed_logins.add(address)
        host, port = address
        node_id = self._node_ids.get(address, BOOTSTRAP_ID)
        node = f"node {node_id} ({_named(host)}/{_resolved(host)}:{port})"
        sentence = f"Connection to {node} failed authentication due to: {error.message}"
        self.log("ERROR", sentence, NETWORK_LOGGER)
        failure = JavaFailure(f"org.apache.kafka.common.errors.{error_row(error.code).exception}", error.message)
        self.log("WARN", "Fatal error during metadata update", ADMIN_METADATA_LOGGER, failure)

    def _on_metadata(self, call: Call[Response]) -> None:
        response = call.response()
        assert isinstance(response, MetadataResponse)
        self._node_ids = {(broker.host, broker.port): broker.node_id for broker in response.brokers}
        wrong = {topic.name: topic.error_code for topic in response.topics if topic.error_code != NONE}
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

    def log(self, level: str, sentence: str, logger: str, failure: JavaFailure | None = None) -> None:
        write_log(level, f"[{self._context}] {sentence}", logger, failure)


def _resolved(host: str) -> str:
    import socket

    try:
        return str(socket.getaddrinfo(host, 0)[0][4][0])
    except OSError:
        return "<unresolved>"


def _named(host: str) -> str:
    """Whoever logs in looks up the name of an address."""
    import socket

    try:
        return socket.gethostbyaddr(host)[0]
    except OSError:
        return host
