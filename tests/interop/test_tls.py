"""Real clients and Kafka's tools over SSL and mutual TLS; what happens to those who come wrongly, and to attackers.

MOLDAU_THOROUGH=1 sends 100,000 mutated handshakes instead of 3,000.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import ClientError
from tests.certificates import PASSWORD, Authority, Signed, make_jks, make_jks_trust, make_p12
from tests.interop.conftest import AGAINST_KAFKA, stop_cleanly
from tests.interop.kafka_oracle import run_tool
from tests.interop.nodes import HOST, MoldauNode, free_ports
from tests.pace import patience, patience_ms, wait_until
from tests.tls_attacker import Attacker

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(AGAINST_KAFKA, reason="looks at Moldau's own log and certificates"),
]

SECONDS = patience(40)
LISTENERS = ("SSL", "MTLS", "P12", "JKS")
MUTATIONS = 100_000 if os.environ.get("MOLDAU_THOROUGH") == "1" else 3_000
SLOW_CONNECTIONS = 2_000
VALUES = [f"{number:05}".encode() * 40 for number in range(500)]


class Secured(MoldauNode):
    """A node with a listener for each kind of store; MTLS asks for certificates, and PLAINTEXT stays as it is."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "authority")
        self.server = self.authority.sign("server", "/O=Org/CN=server")
        self.client = self.authority.sign("client", "/O=Org/OU=Clients/CN=anna")
        self.store = folder / "server.pem"
        shutil.copy(self.server.pem, self.store)
        super().__init__(folder)

    def write_properties(self, overrides: dict[str, str]) -> None:
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        own = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        plain = f"PLAINTEXT://{HOST}:{self.port}"
        folder = self.authority.folder
        settings = {
            "listeners": f"{own},{plain},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"{own},{plain}",
            "listener.security.protocol.map": ",".join(f"{name}:SSL" for name in LISTENERS)
            + ",PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.mtls.ssl.principal.mapping.rules": "DEFAULT",
            **self.store_settings("p12", "PKCS12", make_p12(self.server, folder / "server.p12")),
            **self.store_settings("jks", "JKS", make_jks(self.server, folder / "server.jks")),
        }
        super().write_properties(settings | overrides)

    def store_settings(self, listener: str, kind: str, path: Path) -> dict[str, str]:
        trusted = make_jks_trust(self.authority.certificate, path.with_suffix(f".{listener}-trust"), kind)
        prefix = f"listener.name.{listener}.ssl"
        return {
            f"{prefix}.keystore.type": kind,
            f"{prefix}.keystore.location": str(path),
            f"{prefix}.keystore.password": PASSWORD,
            f"{prefix}.truststore.type": kind,
            f"{prefix}.truststore.location": str(trusted),
            f"{prefix}.truststore.password": PASSWORD,
            f"{prefix}.client.auth": "requested",
        }

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "MOLDAU_LOG_LEVEL": "INFO"}

    def at(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    def resident_mb(self) -> float:
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def context(self, own: Signed | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        if own is not None:
            context.load_cert_chain(own.pem)
        return context


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    started = Secured(tmp_path_factory.mktemp("secured"))
    started.format()
    started.start()
    yield started
    stop_cleanly(started)


def own_settings(node: Secured, own: Signed | None) -> dict[str, object]:
    found: dict[str, object] = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(node.authority.certificate),
    }
    if own is not None:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(own.pem)}
    return found


def read(bootstrap: str, settings: dict[str, object], topic: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    with Consumer(bootstrap, config={**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        deadline = time.monotonic() + SECONDS
        while len(found) < count and time.monotonic() < deadline:
            found += [record.value or b"" for record in consumer.poll(500)]
    return found


@pytest.mark.parametrize("listener", LISTENERS)
def test_our_client(node: Secured, topic: str, listener: str) -> None:
    settings = own_settings(node, node.client if listener != "SSL" else None)
    with Admin(node.at(listener), config=settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
    values = [*VALUES, os.urandom(900_000)]
    with Producer(node.at(listener), config={**settings, "max.request.size": 2 << 20}) as producer:
        for value in values:
            producer.send(topic, value)
    assert read(node.at(listener), {**settings, "max.partition.fetch.bytes": 4 << 20}, topic, len(values)) == values


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_librdkafka(node: Secured, topic: str, listener: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    settings: dict[str, Any] = {
        "bootstrap.servers": node.at(listener),
        "security.protocol": "SSL",
        "ssl.ca.location": str(node.authority.certificate),
    }
    if listener == "MTLS":
        settings |= {"ssl.certificate.location": str(node.client.chain), "ssl.key.location": str(node.client.key)}
    producer = confluent_kafka.Producer(settings)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(SECONDS) == 0
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < len(VALUES) and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(500, 1.0) if message.error() is None]
    consumer.close()
    assert found == VALUES


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_kafka_python(node: Secured, topic: str, listener: str) -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    settings: dict[str, Any] = {
        "bootstrap_servers": node.at(listener),
        "security_protocol": "SSL",
        "ssl_cafile": str(node.authority.certificate),
    }
    if listener == "MTLS":
        settings |= {"ssl_certfile": str(node.client.chain), "ssl_keyfile": str(node.client.key)}
    producer = kafka.KafkaProducer(**settings)
    sent = [producer.send(topic, value) for value in VALUES]
    assert [future.get(SECONDS).offset for future in sent] == list(range(len(VALUES)))
    producer.close()
    consumer = kafka.KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=20_000)
    found = [record.value for _, record in zip(VALUES, consumer, strict=False)]
    consumer.close()
    assert found == VALUES


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_aiokafka(node: Secured, topic: str, listener: str) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def scenario() -> None:
        context = node.context(node.client if listener == "MTLS" else None)
        settings = {"bootstrap_servers": node.at(listener), "security_protocol": "SSL", "ssl_context": context}
        producer = aiokafka.AIOKafkaProducer(**settings)
        await producer.start()
        for future in [await producer.send(topic, value) for value in VALUES]:
            await future
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest")
        await consumer.start()
        found = [(await consumer.getone()).value for _ in VALUES]
        await consumer.stop()
        assert found == VALUES

    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_kafkas_tools(node: Secured, topic: str, listener: str, kafka_tools: None, tmp_path: Path) -> None:
    """With stores of Java, which resume sessions where they can."""
    trusted = make_jks_trust(node.authority.certificate, tmp_path / "trust.p12", "PKCS12")
    lines = [
        "security.protocol=SSL",
        f"ssl.truststore.location={trusted}",
        "ssl.truststore.type=PKCS12",
        f"ssl.truststore.password={PASSWORD}",
    ]
    if listener == "MTLS":
        lines += [
            f"ssl.keystore.location={make_p12(node.client, tmp_path / 'own.p12')}",
            "ssl.keystore.type=PKCS12",
            f"ssl.keystore.password={PASSWORD}",
        ]
    file = tmp_path / "client.properties"
    file.write_text("\n".join(lines) + "\n")
    where = ["--bootstrap-server", node.at(listener)]
    made = run_tool("topics", *where, "--command-config", str(file), "--create", "--topic", topic, "--partitions", "1")
    assert made.returncode == 0, made.stdout + made.stderr
    sent = run_tool(
        "console-producer", *where, "--topic", topic, "--command-config", str(file), text="one\ntwo\nthree\n"
    )
    assert sent.returncode == 0, sent.stdout + sent.stderr
    options = ["--topic", topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"]
    got = run_tool("console-consumer", *where, *options, "--command-config", str(file))
    assert got.stdout.split() == ["one", "two", "three"], got.stdout + got.stderr


# Who comes wrongly


def failures(node: Secured) -> list[str]:
    return [line for line in node.output().splitlines() if "(SSL handshake failed)" in line]


def test_who_is_not_trusted_is_refused_and_told_on_both_sides(node: Secured, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "other")
    expired = node.authority.sign("expired", days=-1)
    cases: list[tuple[Signed | None, str]] = [
        (None, "peer did not return a certificate"),
        (other.sign("stranger"), "the certificate is not trusted"),
        (expired, "certificate has expired"),
    ]
    for own, reason in cases:
        before = len(failures(node))
        with (
            pytest.raises(ClientError),
            Admin(node.at("MTLS"), config={**own_settings(node, own), "default.api.timeout.ms": 3000}) as admin,
        ):
            admin.list_topics()
        wait_until(lambda old=before: len(failures(node)) > old, 20, lambda: node.output()[-2000:])  # type: ignore[misc]
        assert reason in failures(node)[-1] and "Failed authentication with /127.0.0.1 (channelId=" in node.output()
    distrustful = own_settings(node, None) | {"ssl.truststore.location": str(other.certificate)}
    with (
        pytest.raises(ClientError, match="not trusted"),
        Admin(node.at("SSL"), config={**distrustful, "default.api.timeout.ms": 3000}) as admin,
    ):
        admin.list_topics()


def test_plaintext_at_a_tls_port_and_tls_at_a_plaintext_port_end_soon(node: Secured) -> None:
    with socket.create_connection((HOST, node.ports["SSL"]), SECONDS) as plain:
        plain.sendall(b"\0\0\0\x14\0\x12\0\0\0\0\0\1\0\nsome-client")
        with contextlib.suppress(ConnectionResetError):
            assert plain.recv(100) in (b"", b"\x15\x03\x03\0\2\2\x0a")
    plain = socket.create_connection((HOST, node.port), SECONDS)
    with pytest.raises((ssl.SSLError, ConnectionError)), node.context().wrap_socket(plain, server_hostname=HOST):
        pass


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_only_sound_versions_and_suites_are_there(node: Secured, version: ssl.TLSVersion) -> None:
    context = node.context()
    context.minimum_version = context.maximum_version = version
    plain = socket.create_connection((HOST, node.ports["SSL"]), SECONDS)
    with context.wrap_socket(plain, server_hostname=HOST) as secured:
        name, shown, _ = secured.cipher() or ("", "", 0)
        assert ("GCM" in name or "POLY1305" in name) and shown.startswith("TLSv1")
        assert secured.compression() is None
        assert not secured.session_reused
    weak = node.context()
    weak.minimum_version = weak.maximum_version = ssl.TLSVersion.TLSv1_2
    weak.set_ciphers("AES128-SHA:AES256-SHA256:@SECLEVEL=0")
    plain = socket.create_connection((HOST, node.ports["SSL"]), SECONDS)
    with pytest.raises((ssl.SSLError, ConnectionError)), weak.wrap_socket(plain, server_hostname=HOST):
        pass


# A renewed certificate


def serial(node: Secured, listener: str) -> str:
    plain = socket.create_connection((HOST, node.ports[listener]), SECONDS)
    with node.context(node.client).wrap_socket(plain, server_hostname=HOST) as secured:
        found = secured.getpeercert()
    assert found is not None
    return str(found["serialNumber"])


def test_a_dynamic_change_is_used_or_refused(node: Secured) -> None:
    """The store of one listener is moved; what is somebody else's certificate is not taken."""
    admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
    admin = admin_module.AdminClient({"bootstrap.servers": node.bootstrap})

    def change(key: str, value: str) -> None:
        entry = admin_module.ConfigEntry(key, value, incremental_operation=admin_module.AlterConfigOpType.SET)
        resource = admin_module.ConfigResource(
            admin_module.ConfigResource.Type.BROKER, "1", incremental_configs=[entry]
        )
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(SECONDS)

    key = "listener.name.ssl.ssl.keystore.location"
    before, others = serial(node, "SSL"), serial(node, "MTLS")
    with pytest.raises(Exception, match="DistinguishedName does not match"):
        change(key, str(node.authority.sign("someone", "/CN=someone").pem))
    with pytest.raises(Exception, match="cannot be read"):
        change(key, "/nowhere.pem")
    with pytest.raises(Exception, match="only per-listener"):
        change("ssl.keystore.location", str(node.store))
    assert serial(node, "SSL") == before
    change(key, str(node.authority.sign("moved", "/O=Org/CN=server").pem))
    wait_until(lambda: serial(node, "SSL") != before, 2, lambda: node.output()[-2000:])
    assert serial(node, "MTLS") == others, "another listener keeps its own"


def test_a_renewed_file_is_used_and_a_damaged_one_is_not(node: Secured) -> None:
    before = serial(node, "MTLS")
    node.store.write_text("nonsense")
    wait_until(lambda: "stay as they were" in node.output(), 10, lambda: node.output()[-2000:])
    assert serial(node, "MTLS") == before
    shutil.copy(node.authority.sign("renewed", "/O=Org/CN=server").pem, node.store)
    wait_until(lambda: serial(node, "MTLS") != before, 5, lambda: node.output()[-2000:])


# Attacks


def client_hello(node: Secured) -> bytes:
    out = ssl.MemoryBIO()
    half = node.context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=HOST)
    with contextlib.suppress(ssl.SSLWantReadError):
        half.do_handshake()
    return out.read()


def mutate(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(changed))
        kind = rng.randrange(4)
        if kind == 0:
            changed[at] = rng.randrange(256)
        elif kind == 1:
            del changed[at : at + rng.randrange(1, 40)]
        elif kind == 2:
            changed[at:at] = rng.randbytes(rng.randrange(1, 40))
        else:
            changed[at : at + 2] = rng.choice((b"\xff\xff", b"\0\0", b"\x7f\xff"))
        if not changed:
            return data[:1]
    return bytes(changed)


def test_mutated_handshakes_let_nobody_in_and_cost_nothing(node: Secured, topic: str) -> None:
    rng = random.Random(25)
    hello = client_hello(node)
    with Producer(node.at("SSL"), config=own_settings(node, None)) as good:
        good.send(topic, b"before").result(patience_ms(20_000))
        for number in range(MUTATIONS):
            with (
                contextlib.suppress(OSError),
                socket.create_connection((HOST, node.ports["MTLS"]), SECONDS) as attacker,
            ):
                attacker.sendall(mutate(hello, rng))
                if number % 7 == 0:
                    attacker.settimeout(0.01)
                    attacker.recv(4096)
                    attacker.sendall(rng.randbytes(rng.randrange(1, 400)))
            if number == 1000:
                settled = node.resident_mb()
            if number % 500 == 0:
                good.send(topic, b"meanwhile").result(patience_ms(20_000))
        assert node.resident_mb() < settled + 30, "memory is flat"
    assert "Traceback" not in node.output()
    assert serial(node, "MTLS"), "and a good client comes in"


@pytest.mark.parametrize("padding", [0, 16_000], ids=["small", "like data"])
def test_key_updates_without_an_end_are_not_read_to_the_end(
    node: Secured, topic: str, tmp_path: Path, padding: int
) -> None:
    """OpenSSL would read them all in one call. Clients beside it, with TLS and without, are served meanwhile."""
    refused = "TLS records in a row without data"
    before = node.output().count(refused)
    with (
        Producer(node.at("SSL"), config=own_settings(node, None)) as secured,
        Producer(node.bootstrap) as plain,
        socket.create_connection((HOST, node.ports["SSL"]), SECONDS) as sock,
    ):
        secured.send(topic, b"before").result(patience_ms(20_000))
        attacker = Attacker(sock, node.context(), tmp_path)
        attacker.shake_hands()
        flood = attacker.key_updates(5_000 if padding == 0 else 500, padding=padding)
        flooding = threading.Thread(target=attacker.flood, args=(flood,))
        flooding.start()
        for producer in (secured, plain):
            producer.send(topic, b"meanwhile").result(patience_ms(20_000))
        flooding.join()
        with contextlib.suppress(ConnectionError):
            while sock.recv(65536):
                pass
    wait_until(lambda: node.output().count(refused) > before, 5, lambda: node.output()[-2000:])
    assert "Traceback" not in node.output()


def test_two_thousand_slow_clients_harm_nobody(node: Secured, topic: str) -> None:
    """Half of them say nothing, half of them begin a handshake and do not go on."""
    hello = client_hello(node)
    before = node.resident_mb()
    slow: list[socket.socket] = []
    try:
        for number in range(SLOW_CONNECTIONS):
            sock = socket.create_connection((HOST, node.ports["SSL"]), SECONDS)
            slow.append(sock)
            if number % 2:
                sock.sendall(hello[: 5 + number % 100])
        with Producer(node.at("SSL"), config=own_settings(node, None)) as good:
            began = time.monotonic()
            good.send(topic, b"meanwhile").result(patience_ms(20_000))
            assert time.monotonic() - began < patience(5)
        assert node.resident_mb() < before + 100, "each of them costs little"
    finally:
        for sock in slow:
            sock.close()
    assert read(node.at("SSL"), own_settings(node, None), topic, 1) == [b"meanwhile"]
