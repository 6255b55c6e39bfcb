"""Strangers with certificates that the broker trusts, who claim to be somebody else: by the name in the certificate, or
in an envelope that only brokers may send. Over real sockets, with TLS and an authorizer on every listener."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.node.context import ClientContext
from moldau.node.envelope import pack_request
from moldau.protocol import errors
from moldau.protocol.api_keys import response_header_version
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.headers import ResponseHeader
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import Reader
from tests.certificates import Authority, Signed
from tests.interop.conftest import stop_cleanly
from tests.interop.nodes import HOST, MoldauNode
from tests.interop.wire import CLOSED, Wire

pytestmark = pytest.mark.interop

VERSION = 7
ADMIN = "CN=admin,O=Org"
# As openssl writes subjects: a slash between the parts, a plus between the attributes of one part. The first attribute
# of a certificate is the last one of its name in Kafka.
SUBJECTS = {
    "a comma inside": "/CN=admin,O=Org",
    "a comma that is escaped already": "/CN=admin\\\\,O=Org",
    "a part more in front": "/O=Org/CN=admin/CN=admin",
    "a part more behind": "/C=DE/O=Org/CN=admin",
    "the parts the other way round": "/CN=admin/O=Org",
    "one part of two attributes": "/O=Org+CN=admin",
    "another attribute with the whole name": "/O=Org/OU=CN=admin",
    "a principal of its own kind": "/O=Org/CN=User:CN=admin",
    "capital letters": "/O=Org/CN=Admin",
    "a space behind": "/O=Org/CN=admin ",
    "two principals, as super.users has them": "/O=Org/CN=anna;User:CN=admin,O=Org",
    "a line end behind": "/O=Org/CN=admin\n",
}


class Guarded(MoldauNode):
    """Everybody shows a certificate, brokers too; one client and the broker itself may do everything."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "authority")
        self.server = self.authority.sign("server", "/O=Org/CN=broker")
        super().__init__(folder)

    def write_properties(self, overrides: dict[str, str]) -> None:
        settings = {
            "listeners": f"SSL://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"SSL://{HOST}:{self.port}",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "SSL",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:CN=broker,O=Org;User:{ADMIN}",
        }
        super().write_properties(settings | overrides)

    def connect(self, own: Signed, to_controller: bool = False) -> Wire:
        wire = Wire(HOST, self.controller_port if to_controller else self.port)
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(own.pem)
        wire.socket = context.wrap_socket(wire.socket, server_hostname=HOST)
        return wire

    def topics(self) -> set[str]:
        with self.connect(self.authority.sign("looks", "/O=Org/CN=admin")) as wire:
            return {topic.name for topic in wire.ask(MetadataRequest(topics=None), 12).topics}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    started = Guarded(tmp_path_factory.mktemp("guarded"))
    started.format()
    started.start()
    yield started
    stop_cleanly(started)


def creation(topic: str) -> CreateTopicsRequest:
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[new], timeout_ms=30_000)


def created(node: Guarded, own: Signed, topic: str) -> int:
    """The error that somebody with this certificate gets for a new topic."""
    with node.connect(own) as wire:
        return int(wire.ask(creation(topic), VERSION).topics[0].error_code)


def test_the_name_itself_is_the_one_that_may(node: Guarded) -> None:
    assert created(node, node.authority.sign("admin", "/O=Org/CN=admin"), "by-admin") == errors.NONE
    assert "by-admin" in node.topics()


@pytest.mark.parametrize("trick", list(SUBJECTS))
def test_a_name_that_only_looks_like_it_is_somebody_else(node: Guarded, trick: str) -> None:
    number = list(SUBJECTS).index(trick)
    own = node.authority.sign(f"stranger-{number}", SUBJECTS[trick])
    assert created(node, own, f"evil-{number}") == errors.TOPIC_AUTHORIZATION_FAILED
    assert f"evil-{number}" not in node.topics()


def in_envelope(topic: str) -> Any:
    """A new topic, as if the one who may do everything had asked a broker for it."""
    client = ClientContext("SSL", f"{HOST}:1")
    client.principal = f"User:{ADMIN}"
    return pack_request(client, creation(topic), VERSION, 7, "client")


def test_an_envelope_is_opened_for_brokers_only(node: Guarded) -> None:
    anna = node.authority.sign("anna", "/O=Org/CN=anna")
    with node.connect(anna, to_controller=True) as wire:
        refused = wire.ask(in_envelope("enveloped"), 0)
    assert (refused.error_code, refused.response_data) == (errors.CLUSTER_AUTHORIZATION_FAILED, None)
    assert "enveloped" not in node.topics()
    with node.connect(node.server, to_controller=True) as wire:
        opened = wire.ask(in_envelope("enveloped"), 0)
    assert opened.error_code == errors.NONE
    reader = Reader(opened.response_data)
    ResponseHeader.decode(reader, response_header_version(CreateTopicsRequest.API_KEY, VERSION))
    assert CreateTopicsResponse.decode(reader, VERSION).topics[0].error_code == errors.NONE


@pytest.mark.parametrize("subject", ["/O=Org/CN=anna", "/O=Org/CN=admin", "/O=Org/CN=broker"])
def test_no_client_listener_takes_envelopes(node: Guarded, subject: str) -> None:
    own = node.authority.sign("sender", subject)
    with node.connect(own) as wire:
        assert wire.ask(in_envelope("enveloped-for-a-client"), 0) == CLOSED
    assert "enveloped-for-a-client" not in node.topics()
