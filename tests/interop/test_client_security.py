"""Our client through every secured listener of a real Apache Kafka: TLS, certificates of its own, and logins."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import ClientError, ConfigError, NetworkError, TlsError
from tests.interop.secured import ESCAPED_USER, PASSWORD, PLAIN_USER, REAUTH_MS, SCRAM_USER, SecuredKafka, User
from tests.pace import moment_ms, patience, patience_ms

pytestmark = pytest.mark.interop

Settings = dict[str, object]
FAIL_SOON: Settings = {"default.api.timeout.ms": patience_ms(20_000)}


def trust(secured: SecuredKafka) -> Settings:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured.certificates.ca)}


def jaas(user: User, mechanism: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'org.apache.kafka.common.security.{module} required username="{user.name}" password="{user.password}";'


def login(user: User, mechanism: str, protocol: str = "SASL_PLAINTEXT") -> Settings:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(user, mechanism),
    }


def round_trip(bootstrap: str, settings: Settings, topic: str, records: int = 3) -> None:
    """A topic is made, written and read."""
    with Admin(bootstrap, config=settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
    values = [f"{number:04}".encode() * 2_000 for number in range(records)]
    with Producer(bootstrap, config=settings) as producer:
        for value in values:
            producer.send(topic, value)
    assert read(bootstrap, {**settings, "max.partition.fetch.bytes": 4 << 20}, topic, records) == values


def read(bootstrap: str, settings: Settings, topic: str, records: int, group: bool = False) -> list[bytes]:
    more: Settings = {"auto.offset.reset": "earliest", **({"group.id": topic} if group else {})}
    found: list[bytes] = []
    with Consumer(bootstrap, config={**settings, **more}) as consumer:
        if group:
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, 0)])
        deadline = time.monotonic() + patience(60)
        while len(found) < records and time.monotonic() < deadline:
            found += [record.value or b"" for record in consumer.poll(500)]
    return found


def test_tls(secured: SecuredKafka, topic: str) -> None:
    """Also a few megabytes, which come in many records of TLS."""
    round_trip(secured.ssl, {"security.protocol": "SSL", **trust(secured)}, topic, records=600)


def test_tls_with_certificates_as_text(secured: SecuredKafka, topic: str) -> None:
    settings: Settings = {
        "security.protocol": "ssl",
        "ssl.truststore.certificates": secured.certificates.ca.read_text(),
    }
    round_trip(secured.ssl, settings, topic)


@pytest.mark.parametrize("store", ["pem", "encrypted", "texts", "pkcs12"])
def test_tls_with_a_certificate_of_its_own(secured: SecuredKafka, topic: str, store: str) -> None:
    made = secured.certificates
    own: dict[str, Settings] = {
        "pem": {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(made.client_pem)},
        "encrypted": {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(made.client_pem_encrypted),
            "ssl.key.password": PASSWORD,
        },
        "texts": {
            "ssl.keystore.key": made.client_key.read_text(),
            "ssl.keystore.certificate.chain": made.client_certificate.read_text(),
        },
        "pkcs12": {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(made.keystore_p12),
            "ssl.keystore.password": PASSWORD,
        },
    }
    round_trip(secured.mtls, {"security.protocol": "SSL", **trust(secured), **own[store]}, topic)


@pytest.mark.parametrize("kind", ["openssl", "keytool", "jks"])
def test_truststores_of_java(secured: SecuredKafka, topic: str, tmp_path: Path, kind: str) -> None:
    made = secured.certificates
    path = made.truststore_p12
    if kind != "openssl":
        if made.truststore_jks is None or shutil.which("keytool") is None:
            pytest.skip("keytool is missing: it comes with Java")
        path = made.truststore_jks
    if kind == "jks":
        path = tmp_path / "old.jks"
        command = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(made.ca), "-storetype", "JKS"]
        subprocess.run([*command, "-keystore", str(path), "-storepass", PASSWORD], check=True, capture_output=True)
    settings: Settings = {"ssl.truststore.location": str(path), "ssl.truststore.password": PASSWORD}
    round_trip(secured.ssl, {"security.protocol": "SSL", **settings}, topic)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize(
    ("mechanism", "user"),
    [("PLAIN", PLAIN_USER), ("SCRAM-SHA-256", SCRAM_USER), ("SCRAM-SHA-512", ESCAPED_USER)],
)
def test_logins(secured: SecuredKafka, topic: str, protocol: str, mechanism: str, user: User) -> None:
    settings = login(user, mechanism, protocol)
    if protocol == "SASL_SSL":
        settings |= trust(secured)
    round_trip(secured.bootstrap_of(protocol), settings, topic)
    by_name: Settings = {**settings, "sasl.username": user.name, "sasl.password": user.password}
    del by_name["sasl.jaas.config"]
    with Admin(secured.bootstrap_of(protocol), config=by_name) as admin:
        assert topic in {row.name for row in admin.list_topics()}


def test_a_session_is_renewed_while_records_flow(secured: SecuredKafka, topic: str) -> None:
    """The broker ends connections whose login is older than three seconds; none is lost, none is doubled."""
    settings = login(PLAIN_USER, "PLAIN")
    sent = 0
    with Admin(secured.reauth, config=settings) as admin, Producer(secured.reauth, config=settings) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
        until = time.monotonic() + 3 * REAUTH_MS / 1000
        while time.monotonic() < until:
            producer.send(topic, str(sent))
            sent += 1
            time.sleep(0.005)
        producer.flush()
        assert [row.name for row in admin.list_topics() if row.name == topic] == [topic], "after a pause, too"
    found = read(secured.reauth, settings, topic, sent, group=True)
    assert found == [str(number).encode() for number in range(sent)]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_told_at_once(secured: SecuredKafka, topic: str, mechanism: str) -> None:
    right = PLAIN_USER if mechanism == "PLAIN" else SCRAM_USER
    settings = login(right._replace(password="wrong"), mechanism)
    refused = pytest.raises(ClientError, match="Authentication failed")
    begin = time.monotonic()
    with Admin(secured.sasl_plaintext, config={**settings, **FAIL_SOON}) as admin, refused:
        admin.list_topics()
    with (
        Producer(secured.sasl_plaintext, config={**settings, "max.block.ms": patience_ms(20_000)}) as producer,
        refused,
    ):
        producer.send(topic, b"x").result(patience_ms(30_000))
    with Consumer(secured.sasl_plaintext, config={**settings, "group.id": topic}) as consumer, refused:
        consumer.subscribe([topic])
        consumer.poll(patience_ms(10_000))
    assert time.monotonic() - begin < patience(15), "asking again would not help"


def test_a_listener_without_logins(secured: SecuredKafka) -> None:
    settings = {**login(PLAIN_USER, "PLAIN"), **FAIL_SOON}
    with Admin(secured.bootstrap, config=settings) as admin, pytest.raises(ClientError, match="does not take PLAIN"):
        admin.list_topics()


def test_certificates_that_are_not_trusted(secured: SecuredKafka) -> None:
    made = secured.certificates
    unknown: Settings = {"security.protocol": "SSL", "ssl.truststore.location": str(made.other_ca), **FAIL_SOON}
    with Admin(secured.ssl, config=unknown) as admin, pytest.raises(TlsError, match="is not trusted"):
        admin.list_topics()
    without: Settings = {"security.protocol": "SSL", **trust(secured), **FAIL_SOON}
    with Admin(secured.mtls, config=without) as admin, pytest.raises(TlsError, match="ended the TLS connection"):
        admin.list_topics()
    plain = {**without, "default.api.timeout.ms": 3_000}
    with Admin(secured.bootstrap, config=plain) as admin, pytest.raises(ClientError):
        admin.list_topics()


@contextlib.contextmanager
def tls_server(pem: Path, host: str) -> Iterator[str]:
    """Shakes hands, and says nothing more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with socket.create_server((host, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as secured:
                        secured.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"{host}:{server.getsockname()[1]}"


def test_a_certificate_for_another_host(secured: SecuredKafka) -> None:
    """127.0.0.2 is not in the certificate; who switches the check off gets as far as the first question."""
    settings: Settings = {"security.protocol": "SSL", **trust(secured), "default.api.timeout.ms": moment_ms(5_000)}
    with tls_server(secured.certificates.server_pem, "127.0.0.2") as address:
        with Admin(address, config=settings) as admin, pytest.raises(TlsError, match="not trusted"):
            admin.list_topics()
        unchecked: Settings = {**settings, "ssl.endpoint.identification.algorithm": ""}
        with Admin(address, config=unchecked) as admin, pytest.raises(ClientError) as caught:
            admin.list_topics()
        assert not isinstance(caught.value, TlsError)


def test_a_broker_that_goes_away_in_the_handshake_may_come_back(secured: SecuredKafka) -> None:
    """That is no question of trust: it is tried again until the time is over."""
    settings: Settings = {"security.protocol": "SSL", **trust(secured), "default.api.timeout.ms": moment_ms(3_000)}
    met = 0
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            nonlocal met
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    plain.recv(1000)
                    plain.close()
                    met += 1

        threading.Thread(target=serve, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with Admin(address, config=settings) as admin, pytest.raises(NetworkError):
            admin.list_topics()
        server.shutdown(socket.SHUT_RDWR)
    assert met > 1


def test_stores_that_cannot_be_read(tmp_path: Path, secured: SecuredKafka) -> None:
    made = secured.certificates
    nonsense = tmp_path / "nonsense.jks"
    nonsense.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\xff\xff")
    for settings, sentence in [
        ({"ssl.truststore.location": str(made.truststore_p12), "ssl.truststore.password": "wrong"}, "does not fit"),
        ({"ssl.truststore.location": str(tmp_path / "none")}, "cannot be read"),
        ({"ssl.truststore.location": str(nonsense)}, "is a JKS store that is damaged"),
        ({"ssl.truststore.certificates": "nonsense"}, "cannot be read"),
        ({"ssl.keystore.location": str(made.client_pem_encrypted)}, "ssl.key.password"),
        ({"ssl.keystore.location": str(nonsense)}, "is a JKS store that is damaged"),
        ({"ssl.keystore.key": made.client_key.read_text()}, "belong together"),
        ({"ssl.enabled.protocols": "TLSv1"}, "TLSv1.2 and TLSv1.3"),
    ]:
        with pytest.raises(ConfigError, match=sentence):
            Admin("localhost:1", config={"security.protocol": "SSL", **settings})
