"""Every client comes in every way, to one node and to three that trust nobody without a proof: a table of both.

A client writes records, and reads them as a member of a group. Which client cannot come in which way, because it has
no such thing, stands in CANNOT with the reason.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.admin.users import ScramMechanism, ScramUpsertion
from tests.certificates import Authority
from tests.cluster.cluster_nodes import Cluster, ClusterNode
from tests.interop.conftest import AGAINST_KAFKA, require_kafka
from tests.interop.golden import RealTools
from tests.interop.nodes import HOST, free_ports
from tests.interop.sasl_moldau import AUDIENCE, ISSUER
from tests.interop.token_server import CLIENT_ID, CLIENT_SECRET, SUBJECT, TokenServer
from tests.pace import patience, patience_ms, wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(AGAINST_KAFKA, reason="starts clusters of Moldau"),
]

Settings = dict[str, Any]
SECONDS = patience(40)
VALUES = [f"value {number:02}" for number in range(20)]
USER, PASSWORD, NODE_PASSWORD = "anna", "anna, secret=", "node-secret-1"
MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule required"
SCRAM = f"{MODULES}.scram.ScramLoginModule required"
BEARER = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
LISTENERS = ("TLS", "MTLS", "LOGIN")
LOGINS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "delegation token")
WAYS = ("SSL", "mTLS", *LOGINS)


class GuardedNode(ClusterNode):
    """May fetch the keys of one issuer, and nothing else."""

    keys_url = ""

    def environment(self) -> dict[str, str]:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.keys_url}"
        return {**super().environment(), "KAFKA_OPTS": allowed}


class Guarded(Cluster):
    """Listeners TLS, MTLS and LOGIN for clients; nodes log in at each other over TLS."""

    def __init__(self, folder: Path, size: int) -> None:
        self.authority = Authority(folder / "authority")
        self.client = self.authority.sign("client", "/CN=anna")
        self.issuer = TokenServer()
        self.issuer.start()
        self.listening: dict[str, list[int]] = {name: free_ports(size) for name in LISTENERS}
        node_class = type("GuardedNode", (GuardedNode,), {"keys_url": self.issuer.keys_url})
        super().__init__(folder / "nodes", size, self.shared_settings(folder), node_class)
        self.token_id, self.token_password = "", ""

    def shared_settings(self, folder: Path) -> dict[str, str]:
        own = f'{PLAIN} username="node" password="{NODE_PASSWORD}" user_node="{NODE_PASSWORD}";'
        bearer = "listener.name.login.oauthbearer.sasl.oauthbearer"
        protocols = {"TLS": "SSL", "MTLS": "SSL", "CLIENTS": "PLAINTEXT"}
        protocols |= dict.fromkeys(("LOGIN", "INTERNAL", "CONTROLLER"), "SASL_SSL")
        return {
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.authority.sign("node").pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "listener.name.mtls.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.internal.plain.sasl.jaas.config": own,
            "listener.name.controller.plain.sasl.jaas.config": own,
            "listener.name.login.sasl.enabled.mechanisms": ",".join(LOGINS[:4]),
            "listener.name.login.plain.sasl.jaas.config": f'{PLAIN} user_{USER}="{PASSWORD}";',
            f"{bearer}.jwks.endpoint.url": self.issuer.keys_url,
            f"{bearer}.expected.issuer": ISSUER,
            f"{bearer}.expected.audience": AUDIENCE,
            "delegation.token.secret.key": "secret of all tokens",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _write_properties(self, overrides: dict[str, str]) -> None:
        super()._write_properties(overrides)
        for place, node in enumerate(self.nodes.values()):
            more = ",".join(f"{name}://{HOST}:{self.listening[name][place]}" for name in LISTENERS)
            lines = node.properties.read_text().splitlines()
            changed = [f"{line},{more}" if line.split("=")[0].endswith("listeners") else line for line in lines]
            node.properties.write_text("\n".join(changed) + "\n")

    def at(self, way: str) -> str:
        listener = {"SSL": "TLS", "mTLS": "MTLS"}.get(way, "LOGIN")
        return ",".join(f"{HOST}:{port}" for port in self.listening[listener])

    def add_users(self) -> None:
        """Through the listener for administration: a SCRAM user, and a token that a user of PLAIN asks for."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            for outcome in self.admin.alter_user_scram_credentials(
                [ScramUpsertion(USER, PASSWORD, mechanism)]
            ).values():
                outcome.get()
        with Admin(self.at("PLAIN"), config=ours(self, "PLAIN")) as admin:
            token = admin.create_delegation_token()
            self.token_id, self.token_password = token.token_id, base64.b64encode(token.hmac).decode()
        for port in self.listening["LOGIN"]:
            with Admin(f"{HOST}:{port}", config=ours(self, "PLAIN")) as admin:
                wait_until(admin.describe_delegation_token, 20, "the token is not known everywhere", 0.05)

    def close(self) -> None:
        super().close()
        self.issuer.stop()


@pytest.fixture(scope="module", params=[1, 3], ids=["one node", "three nodes"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    with Guarded(tmp_path_factory.mktemp("guarded"), request.param) as started:
        started.start()
        started.add_users()
        yield started
        output = "".join(node.output() for node in started.nodes.values())
        assert "Traceback" not in output, output[-3000:]
        secrets = (PASSWORD, NODE_PASSWORD, started.token_password, CLIENT_SECRET)
        assert not [secret for secret in secrets if secret in output]


class Login(NamedTuple):
    mechanism: str
    user: str
    password: str


def login_of(cluster: Guarded, way: str) -> Login:
    if way == "delegation token":
        return Login("SCRAM-SHA-256", cluster.token_id, cluster.token_password)
    return Login(way, USER, PASSWORD)


def jaas(login: Login, is_token: bool = False) -> str:
    module = {"PLAIN": PLAIN, "OAUTHBEARER": BEARER}.get(login.mechanism, SCRAM)
    if login.mechanism == "OAUTHBEARER":
        return f"{module};"
    return f'{module} username="{login.user}" password="{login.password}"' + (' tokenauth="true";' if is_token else ";")


# How each client is told


def ours(cluster: Guarded, way: str) -> Settings:
    settings: Settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(cluster.authority.certificate),
    }
    if way == "mTLS":
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(cluster.client.pem)}
    if way in LOGINS:
        login = login_of(cluster, way)
        settings |= {"security.protocol": "SASL_SSL", "sasl.mechanism": login.mechanism}
        settings["sasl.jaas.config"] = jaas(login, way == "delegation token")
    if way == "OAUTHBEARER":
        del settings["sasl.jaas.config"]
        settings["sasl.oauthbearer.token.provider"] = cluster.issuer.token
    return settings


def by_our_client(cluster: Guarded, way: str, topic: str) -> list[str]:
    settings, found = ours(cluster, way), []
    with Producer(cluster.at(way), config={**settings, "acks": "all"}) as producer:
        for value in VALUES:
            producer.send(topic, value)
    reading = {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    with Consumer(cluster.at(way), config=reading) as consumer:
        consumer.subscribe([topic])
        limit = time.monotonic() + SECONDS
        while len(found) < len(VALUES) and time.monotonic() < limit:
            found += [(record.value or b"").decode() for record in consumer.poll(500)]
    return found


def for_librdkafka(cluster: Guarded, way: str) -> Settings:
    settings: Settings = {
        "bootstrap.servers": cluster.at(way),
        "security.protocol": "SASL_SSL" if way in LOGINS else "SSL",
        "ssl.ca.location": str(cluster.authority.certificate),
    }
    if way == "mTLS":
        settings |= {"ssl.certificate.location": str(cluster.client.chain), "ssl.key.location": str(cluster.client.key)}
    if way in LOGINS:
        login = login_of(cluster, way)
        settings["sasl.mechanism"] = login.mechanism
        if way != "OAUTHBEARER":
            settings |= {"sasl.username": login.user, "sasl.password": login.password}
    return settings


def by_confluent_kafka(cluster: Guarded, way: str, topic: str) -> list[str]:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    settings, found = for_librdkafka(cluster, way), []
    if way == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (cluster.issuer.token(), time.time() + 300)
    producer = confluent_kafka.Producer(settings)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(SECONDS) == 0
    consumer = confluent_kafka.Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    limit = time.monotonic() + SECONDS
    while len(found) < len(VALUES) and time.monotonic() < limit:
        found += [message.value().decode() for message in consumer.consume(100, 0.5) if message.error() is None]
    consumer.close()
    return found


def by_kcat(cluster: Guarded, way: str, topic: str) -> list[str]:
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("kcat is not installed (Debian: apt install kcat)")
    settings = for_librdkafka(cluster, way)
    given = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]

    def run(*words: str, text: str = "") -> str:
        command = [program, *given, *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-P", "-t", topic, text="".join(f"{value}\n" for value in VALUES))
    reading = ("-X", "auto.offset.reset=earliest", "-c", str(len(VALUES)), "-q", "-G", topic, topic)
    return run(*reading).splitlines()


def by_kafka_python(cluster: Guarded, way: str, topic: str) -> list[str]:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    settings: Settings = {
        "bootstrap_servers": cluster.at(way).split(","),
        "security_protocol": "SASL_SSL" if way in LOGINS else "SSL",
        "ssl_cafile": str(cluster.authority.certificate),
    }
    if way == "mTLS":
        settings |= {"ssl_certfile": str(cluster.client.chain), "ssl_keyfile": str(cluster.client.key)}
    if way in LOGINS:
        login = login_of(cluster, way)
        settings |= {"sasl_mechanism": login.mechanism}
        if way == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = kafka_python_tokens(cluster)
        else:
            settings |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    producer = kafka.KafkaProducer(**settings)
    for future in [producer.send(topic, value.encode()) for value in VALUES]:
        future.get(SECONDS)
    producer.close()
    reading = {"group_id": topic, "auto_offset_reset": "earliest", "consumer_timeout_ms": patience_ms(20_000)}
    consumer = kafka.KafkaConsumer(topic, **settings, **reading)
    # In this order: the consumer is not asked for one more than there are.
    found = [record.value.decode() for _, record in zip(VALUES, consumer, strict=False)]
    consumer.close()
    return found


def kafka_python_tokens(cluster: Guarded) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return cluster.issuer.token()

    return Provider()


def by_aiokafka(cluster: Guarded, way: str, topic: str) -> list[str]:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return cluster.issuer.token()

    context = ssl.create_default_context(cafile=str(cluster.authority.certificate))
    if way == "mTLS":
        context.load_cert_chain(cluster.client.pem)
    settings: Settings = {"bootstrap_servers": cluster.at(way), "security_protocol": "SSL", "ssl_context": context}
    if way in LOGINS:
        login = login_of(cluster, way)
        settings |= {"security_protocol": "SASL_SSL", "sasl_mechanism": login.mechanism}
        if way == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = Provider()
        else:
            settings |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}

    async def scenario() -> list[str]:
        producer = aiokafka.AIOKafkaProducer(**settings)
        await producer.start()
        for value in VALUES:
            await producer.send_and_wait(topic, value.encode())
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(topic, **settings, group_id=topic, auto_offset_reset="earliest")
        await consumer.start()
        found = [(await consumer.getone()).value.decode() for _ in VALUES]
        await consumer.stop()
        return found

    return asyncio.run(asyncio.wait_for(scenario(), SECONDS))


def by_java(cluster: Guarded, way: str, topic: str) -> list[str]:
    """The console tools, with the login modules and the token endpoint that Java's client has."""
    require_kafka()
    login = login_of(cluster, way)
    settings = {key: str(value) for key, value in ours(cluster, way).items() if isinstance(value, str)}
    if way == "OAUTHBEARER":
        settings |= {
            "sasl.jaas.config": jaas(login),
            "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": cluster.issuer.token_url,
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        }
    folder = cluster.authority.folder
    file = folder / "java.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    where = ["--bootstrap-server", cluster.at(way), "--topic", topic, "--command-config", str(file)]
    tools = java_tools(cluster)
    sent = tools.run("console-producer", where, "".join(f"{value}\n" for value in VALUES), folder)
    assert sent.code == 0, sent
    reading = ["--group", topic, "--from-beginning", "--max-messages", str(len(VALUES))]
    got = tools.run("console-consumer", [*where, *reading, "--timeout-ms", str(patience_ms(20_000))], "", folder)
    return got.out.splitlines()


_java: dict[int, RealTools] = {}


def java_tools(cluster: Guarded) -> RealTools:
    """One process for all tools; it may ask the issuer of this cluster."""
    if id(cluster) not in _java:
        os.environ["JAVA_TOOL_OPTIONS"] = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={cluster.issuer.token_url}"
        _java[id(cluster)] = RealTools(cluster.authority.folder)
    return _java[id(cluster)]


@pytest.fixture(scope="module", autouse=True)
def java_ends() -> Iterator[None]:
    before = os.environ.get("JAVA_TOOL_OPTIONS")
    yield
    for tools in _java.values():
        tools.close()
    _java.clear()
    os.environ.pop("JAVA_TOOL_OPTIONS", None)
    if before is not None:
        os.environ["JAVA_TOOL_OPTIONS"] = before


def by_franz_go(cluster: Guarded, way: str, topic: str) -> list[str]:
    login = login_of(cluster, way)
    order = {
        "bootstrap": cluster.at(way).split(",")[0],
        "topic": topic,
        "ca": str(cluster.authority.certificate),
        "certificate": str(cluster.client.chain) if way == "mTLS" else "",
        "key": str(cluster.client.key) if way == "mTLS" else "",
        "mechanism": login.mechanism if way in LOGINS else "",
        "user": login.user,
        "password": login.password,
        "isToken": way == "delegation token",
        "bearer": cluster.issuer.token(),
        "seconds": round(SECONDS),
        "values": VALUES,
    }
    command = [str(franz_go_program())]
    done = subprocess.run(command, input=json.dumps(order), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def franz_go_program() -> Path:
    """Built once for each version of its source, beside the other things that tests keep."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is missing: install it and put it on PATH")
    source = Path(__file__).parent / "franz"
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir()))).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "moldau-tests" / f"franz-go-{version}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        done = subprocess.run([go, "build", "-o", str(made), "."], cwd=source, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"franz-go cannot be built here: {done.stderr[-300:]}")
        os.replace(made, program)
    return program


CLIENTS: dict[str, Callable[[Guarded, str, str], list[str]]] = {
    "ours": by_our_client,
    "confluent-kafka": by_confluent_kafka,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "kcat": by_kcat,
    "java": by_java,
    "franz-go": by_franz_go,
}
SENDS_ITS_NONCE_TWICE = (
    "librdkafka before 2.6.1 puts a wrong nonce into the final message; Apache Kafka 4 refuses it, too"
)
NO_TOKENS = "its SCRAM cannot say that the name is a token's"
CANNOT = {
    **{(client, "delegation token"): NO_TOKENS for client in ("confluent-kafka", "kafka-python", "aiokafka", "kcat")},
    **{("kcat", mechanism): SENDS_ITS_NONCE_TWICE for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")},
    ("kcat", "OAUTHBEARER"): "it gets tokens by OIDC alone, and Debian's librdkafka is built without",
}
TABLE = [(client, way) for client in CLIENTS for way in WAYS if (client, way) not in CANNOT]


@pytest.mark.parametrize(("client", "way"), TABLE, ids=[f"{client}, {way}" for client, way in TABLE])
def test_what_is_written_is_read(cluster: Guarded, topic: str, client: str, way: str) -> None:
    with Admin(cluster.at(way), config=ours(cluster, way)) as admin:
        admin.create_topics([NewTopic(topic, 3, len(cluster.nodes))])[topic].get()
    cluster.await_full_isr(topic)
    assert sorted(CLIENTS[client](cluster, way, topic)) == VALUES


def test_who_is_who(cluster: Guarded) -> None:
    """Each way leads to the principal that it proves."""
    whose = {"PLAIN": USER, "SCRAM-SHA-256": USER, "OAUTHBEARER": SUBJECT}
    for way, owner in whose.items():
        with Admin(cluster.at(way), config=ours(cluster, way)) as admin:
            token = admin.create_delegation_token()
            assert (token.owner.type, token.owner.name) == ("User", owner)
            admin.expire_delegation_token(token.hmac, -1)
