"""A node on which nothing is open: SASL_SSL on every listener, an authorizer, quotas of users; real clients at it."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.admin.acls import AclBinding, AclOperation, PatternType, ResourceType
from moldau.client.admin.quotas import QuotaEntity
from moldau.client.admin.users import ScramMechanism, ScramUpsertion
from moldau.client.errors import ClientError
from tests.certificates import Authority
from tests.interop.conftest import AGAINST_KAFKA, stop_cleanly
from tests.interop.kafka_oracle import run_tool
from tests.interop.nodes import HOST, MoldauNode
from tests.pace import patience, patience_ms

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(AGAINST_KAFKA, reason="starts a Moldau of its own"),
]

SECONDS = patience(40)
USERS = {"admin": "admin-secret", "anna": "anna-secret", "otto": "otto-secret"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
ENTRY = f'{PLAIN} required username="admin" password="{USERS["admin"]}" ' + " ".join(
    f'user_{name}="{password}"' for name, password in USERS.items()
)
LOGINS = [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
MECHANISMS = [mechanism for mechanism, _ in LOGINS]


class Closed(MoldauNode):
    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "authority")
        self.store = folder / "server.pem"
        shutil.copy(self.authority.sign("server", "/O=Org/CN=server").pem, self.store)
        super().__init__(folder)

    def write_properties(self, overrides: dict[str, str]) -> None:
        settings = {
            "listeners": f"CLIENTS://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"CLIENTS://{HOST}:{self.port}",
            "inter.broker.listener.name": "CLIENTS",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SASL_SSL",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f"{ENTRY};",
            "listener.name.controller.plain.sasl.jaas.config": f"{ENTRY};",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
        }
        super().write_properties(settings | overrides)

    def settings(self, user: str, mechanism: str = "PLAIN") -> dict[str, Any]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": USERS[user],
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
        }


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Closed]:
    """Anna may do everything with topics and groups whose names begin with `anna`, Otto nothing."""
    started = Closed(tmp_path_factory.mktemp("closed"))
    started.format()
    started.start()
    with Admin(started.bootstrap, config=started.settings("admin")) as admin:
        credentials = [
            ScramUpsertion(user, USERS[user], mechanism)
            for user in ("anna", "otto")
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        ]
        for mechanism in (0, 1):  # a user may be named once in a request
            for outcome in admin.alter_user_scram_credentials(credentials[mechanism::2]).values():
                outcome.get()
        bindings = [
            AclBinding(kind, "anna", "User:anna", AclOperation.ALL, pattern_type=PatternType.PREFIXED)
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        ]
        for outcome in admin.create_acls(bindings).values():
            outcome.get()
    yield started
    output = started.output()
    stop_cleanly(started)
    assert "Traceback" not in output, output
    assert not [password for password in USERS.values() if password in output]


def read(bootstrap: str, settings: dict[str, Any], topic: str, count: int) -> list[bytes]:
    found: list[bytes] = []
    with Consumer(bootstrap, config={**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        deadline = time.monotonic() + SECONDS
        while len(found) < count and time.monotonic() < deadline:
            found += [record.value or b"" for record in consumer.poll(500)]
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_client(node: Closed, mechanism: str) -> None:
    settings, topic = node.settings("anna", mechanism), f"anna-ours-{mechanism.lower()}"
    with Admin(node.bootstrap, config=settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
    with Producer(node.bootstrap, config=settings) as producer:
        for value in (b"one", b"two"):
            producer.send(topic, value).result(patience_ms(20_000))
    assert read(node.bootstrap, settings, topic, 2) == [b"one", b"two"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(node: Closed, mechanism: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    topic = f"anna-librdkafka-{mechanism.lower()}"
    settings: dict[str, Any] = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(node.authority.certificate),
        "sasl.mechanism": mechanism,
        "sasl.username": "anna",
        "sasl.password": USERS["anna"],
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"one")
    assert producer.flush(SECONDS) == 0
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + SECONDS
    while not found and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(10, 1.0) if message.error() is None]
    consumer.close()
    assert found == [b"one"]


def test_kafka_python(node: Closed) -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    settings: dict[str, Any] = {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(node.authority.certificate),
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "anna",
        "sasl_plain_password": USERS["anna"],
    }
    producer = kafka.KafkaProducer(**settings)
    assert producer.send("anna-kafka-python", b"one").get(SECONDS).offset == 0
    producer.close()
    consumer = kafka.KafkaConsumer(
        "anna-kafka-python", **settings, auto_offset_reset="earliest", consumer_timeout_ms=patience_ms(20_000)
    )
    assert next(consumer).value == b"one"
    consumer.close()


def test_aiokafka(node: Closed) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def scenario() -> None:
        settings = {
            "bootstrap_servers": node.bootstrap,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(node.authority.certificate)),
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "anna",
            "sasl_plain_password": USERS["anna"],
        }
        producer = aiokafka.AIOKafkaProducer(**settings)
        await producer.start()
        await producer.send_and_wait("anna-aiokafka", b"one")
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer("anna-aiokafka", **settings, auto_offset_reset="earliest")
        await consumer.start()
        assert (await consumer.getone()).value == b"one"
        await consumer.stop()

    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


def test_kafkas_tools(node: Closed, kafka_tools: None, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    lines = [
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        f'sasl.jaas.config={SCRAM} required username="anna" password="{USERS["anna"]}";',
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={node.authority.certificate}",
    ]
    file.write_text("\n".join(lines) + "\n")
    options = ["--bootstrap-server", node.bootstrap, "--topic", "anna-java", "--command-config", str(file)]
    sent = run_tool("console-producer", *options, text="one\ntwo\n")
    assert sent.returncode == 0, sent.stdout + sent.stderr
    reading = ["--from-beginning", "--max-messages", "2", "--timeout-ms", "20000", "--group", "anna-java"]
    got = run_tool("console-consumer", *options, *reading)
    assert got.stdout.split() == ["one", "two"], got.stdout + got.stderr


def test_who_has_no_right_sees_nothing_and_writes_nothing(node: Closed) -> None:
    with Admin(node.bootstrap, config=node.settings("anna")) as anna:
        anna.create_topics([NewTopic("anna-own", 1, 1)])["anna-own"].get()
        refused = anna.create_topics([NewTopic("orders", 1, 1)])["orders"]
        with pytest.raises(ClientError, match=r"[Aa]uthoriz"):
            refused.get()
        with pytest.raises(ClientError, match=r"[Aa]uthoriz"):
            anna.describe_acls()
    with Admin(node.bootstrap, config=node.settings("otto", "SCRAM-SHA-256")) as otto:
        assert otto.list_topics() == []
    with (
        Producer(node.bootstrap, config=node.settings("otto")) as producer,
        pytest.raises(ClientError, match=r"[Aa]uthoriz"),
    ):
        producer.send("anna-own", b"forged").result(patience_ms(20_000))


def test_a_wrong_password_is_refused_and_the_quota_of_a_user_holds(node: Closed) -> None:
    wrong = {**node.settings("anna", "SCRAM-SHA-256"), "sasl.password": "guessed"}
    with Admin(node.bootstrap, config=wrong) as admin, pytest.raises(ClientError, match="invalid credentials"):
        admin.list_topics(timeout_ms=patience_ms(20_000))
    anna = QuotaEntity.of({"user": "anna"})
    topic = "anna-throttled"
    with Admin(node.bootstrap, config=node.settings("admin")) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
        admin.alter_client_quotas({anna: {"producer_byte_rate": 10_000.0}})[anna].get()
        try:
            # Ten seconds' worth may come at once; what is more has to wait.
            began = time.monotonic()
            with Producer(node.bootstrap, config={**node.settings("anna"), "linger.ms": 0}) as producer:
                for _ in range(4):
                    producer.send(topic, bytes(40_000)).result(patience_ms(60_000))
            assert time.monotonic() - began > 2
        finally:
            admin.alter_client_quotas({anna: {"producer_byte_rate": None}})[anna].get()
