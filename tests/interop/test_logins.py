"""Clients of all kinds log in at Moldau: PLAIN, SCRAM, OAUTHBEARER, delegation tokens; and who is refused."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, ClientError, Consumer, NewTopic, Producer
from moldau.client.admin.tokens import Principal
from tests.interop.conftest import running
from tests.interop.kafka_oracle import run_tool
from tests.interop.sasl_moldau import BEARER_MODULE, Issuer, SaslMoldau, part
from tests.interop.secured import ESCAPED_USER, PLAIN_USER, REAUTH_MS, SCRAM_USER, User
from tests.pace import patience, patience_ms

Settings = dict[str, Any]
SECONDS = patience(30)
SECRETS = (PLAIN_USER.password, SCRAM_USER.password, ESCAPED_USER.password, "secret of all tokens")
LOGINS = [
    ("PLAIN", PLAIN_USER),
    ("SCRAM-SHA-256", SCRAM_USER),
    ("SCRAM-SHA-512", SCRAM_USER),
    ("SCRAM-SHA-256", ESCAPED_USER),
]
ONE_OF_EACH = LOGINS[:3]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslMoldau]:
    """At the end nothing of what was said in secret is in its log."""
    made = SaslMoldau(tmp_path_factory.mktemp("logins"))
    yield from running(made)
    output = made.output()
    assert not [secret for secret in SECRETS if secret in output], output
    assert "Traceback" not in output, output


def ours(mechanism: str, user: User) -> Settings:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user.name,
        "sasl.password": user.password,
    }


def bearer(token: Any) -> Settings:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": token if callable(token) else lambda: token,
    }


def round_trip(bootstrap: str, settings: Settings, topic: str) -> None:
    with Admin(bootstrap, config=settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
    with Producer(bootstrap, config=settings) as producer:
        producer.send(topic, b"x").result(patience_ms(20_000))
    reading = {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    with Consumer(bootstrap, config=reading) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        found: list[Any] = []
        while not found and time.monotonic() < deadline:
            found += [record.value for record in consumer.poll(500)]
    assert found == [b"x"]


def refusal(bootstrap: str, settings: Settings) -> str:
    with (
        Admin(bootstrap, config={**settings, "default.api.timeout.ms": patience_ms(20_000)}) as admin,
        pytest.raises(ClientError) as caught,
    ):
        admin.list_topics()
    return str(caught.value)


# Our client


@pytest.mark.parametrize(("mechanism", "user"), LOGINS)
def test_our_client(node: SaslMoldau, topic: str, mechanism: str, user: User) -> None:
    round_trip(node.sasl_plaintext, ours(mechanism, user), topic)
    assert "Authentication failed" in refusal(node.sasl_plaintext, ours(mechanism, user._replace(password="wrong")))
    assert "Authentication failed" in refusal(node.sasl_plaintext, ours(mechanism, User("nobody", "x")))


def test_our_client_renews_its_session(node: SaslMoldau, topic: str) -> None:
    settings = ours("SCRAM-SHA-256", SCRAM_USER)
    sent = 0
    with Admin(node.reauth, config=settings) as admin, Producer(node.reauth, config=settings) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].get()
        until = time.monotonic() + 2.5 * REAUTH_MS / 1000
        while time.monotonic() < until:
            producer.send(topic, str(sent)).result(patience_ms(20_000))
            sent += 1
            time.sleep(0.02)
    with Consumer(node.reauth, config={**settings, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
        consumer.subscribe([topic])
        found: list[int] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < sent and time.monotonic() < deadline:
            found += [int(record.value) for record in consumer.poll(500)]
    assert found == list(range(sent)), "none is lost, none is doubled"


# Other clients


@pytest.mark.parametrize(("mechanism", "user"), ONE_OF_EACH)
def test_confluent_kafka(node: SaslMoldau, topic: str, mechanism: str, user: User) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": node.sasl_plaintext, **ours(mechanism, user)}
    delivered: list[Any] = []
    producer = confluent.Producer(settings)
    producer.produce(topic, b"x", callback=lambda error, message: delivered.append(error))
    producer.flush(SECONDS)
    assert delivered == [None]


@pytest.mark.parametrize("listener", ["UNSIGNED", "SIGNED"])
def test_confluent_kafka_with_a_bearer_token(node: SaslMoldau, topic: str, listener: str) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    token = unsigned() if listener == "UNSIGNED" else node.issuer.token()
    settings = {
        "bootstrap.servers": node.bootstrap_of(listener),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token, time.time() + 300),
    }
    delivered: list[Any] = []
    producer = confluent.Producer(settings)
    producer.produce(topic, b"x", callback=lambda error, message: delivered.append(error))
    producer.flush(SECONDS)
    assert delivered == [None]


@pytest.mark.parametrize(("mechanism", "user"), ONE_OF_EACH)
def test_kafka_python(node: SaslMoldau, topic: str, mechanism: str, user: User) -> None:
    kafka = pytest.importorskip("kafka")
    client = kafka.KafkaProducer(
        bootstrap_servers=node.sasl_plaintext,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user.name,
        sasl_plain_password=user.password,
    )
    assert client.send(topic, b"x").get(SECONDS).offset == 0
    client.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_aiokafka(node: SaslMoldau, topic: str, mechanism: str) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return node.issuer.token()

    async def scenario() -> int:
        more: Settings = {"sasl_oauth_token_provider": Provider()}
        bootstrap = node.bootstrap_of("SIGNED")
        if mechanism != "OAUTHBEARER":
            user = PLAIN_USER if mechanism == "PLAIN" else SCRAM_USER
            more = {"sasl_plain_username": user.name, "sasl_plain_password": user.password}
            bootstrap = node.sasl_plaintext
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **more
        )
        await producer.start()
        try:
            return int((await producer.send_and_wait(topic, b"x")).offset)
        finally:
            await producer.stop()

    assert asyncio.run(asyncio.wait_for(scenario(), SECONDS)) == 0


# Kafka's own tools

MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}


def properties(folder: Path, mechanism: str, jaas: str, **more: str) -> str:
    path = folder / "client.properties"
    lines = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
        **more,
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return str(path)


def jaas_of(mechanism: str, user: User, more: str = "") -> str:
    module = MODULES.get(mechanism, MODULES["SCRAM-SHA-256"])
    return (
        f'org.apache.kafka.common.security.{module} required username="{user.name}" password="{user.password}"{more};'
    )


@pytest.mark.usefixtures("kafka_tools")
@pytest.mark.parametrize(("mechanism", "user"), ONE_OF_EACH)
def test_java_tools(node: SaslMoldau, tmp_path: Path, topic: str, mechanism: str, user: User) -> None:
    file = properties(tmp_path, mechanism, jaas_of(mechanism, user))
    where = ("--bootstrap-server", node.sasl_plaintext)
    done = run_tool("topics", *where, "--create", "--topic", topic, "--command-config", file)
    assert done.returncode == 0, done.stdout + done.stderr
    file = properties(tmp_path, mechanism, jaas_of(mechanism, user._replace(password="wrong")))
    done = run_tool("topics", *where, "--list", "--command-config", file)
    told = "Invalid username or password" if mechanism == "PLAIN" else f"with SASL mechanism {mechanism}"
    assert done.returncode == 1 and told in done.stdout, done.stdout + done.stderr


@pytest.mark.usefixtures("kafka_tools")
def test_java_tools_with_bearer_tokens(
    node: SaslMoldau, tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"{BEARER_MODULE}.OAuthBearerLoginModule required"
    file = properties(tmp_path, "OAUTHBEARER", f'{module} unsecuredLoginStringClaim_sub="dora";')
    where = ("--bootstrap-server", node.bootstrap_of("UNSIGNED"))
    done = run_tool("topics", *where, "--create", "--topic", topic, "--command-config", file)
    assert done.returncode == 0, done.stdout + done.stderr
    token = tmp_path / "token"
    token.write_text(node.issuer.token())
    urls = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file:{token}"
    files = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={token}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{urls} {files}")
    handler = f"{BEARER_MODULE}.OAuthBearerLoginCallbackHandler"
    more = {"sasl.login.callback.handler.class": handler, "sasl.oauthbearer.token.endpoint.url": f"file:{token}"}
    file = properties(tmp_path, "OAUTHBEARER", f"{module};", **more)
    where = ("--bootstrap-server", node.bootstrap_of("SIGNED"))
    done = run_tool("topics", *where, "--describe", "--topic", topic, "--command-config", file)
    assert done.returncode == 0 and topic in done.stdout, done.stdout + done.stderr


@pytest.mark.usefixtures("kafka_tools")
def test_users_made_and_removed_by_kafka_configs(node: SaslMoldau, tmp_path: Path) -> None:
    """A new user gets in at once, a changed password counts, and who is removed stays out."""
    where = ("--bootstrap-server", node.bootstrap, "--entity-type", "users", "--entity-name", "emil")

    def alter(*change: str) -> None:
        done = run_tool("configs", *where, "--alter", *change)
        assert done.returncode == 0, done.stdout + done.stderr

    def await_answer(password: str, is_let_in: bool) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                with Admin(node.sasl_plaintext, config=ours("SCRAM-SHA-512", User("emil", password))) as admin:
                    admin.list_topics()
                found = True
            except ClientError:
                found = False
            if found == is_let_in:
                return
        raise AssertionError(f"{password}: {not is_let_in}")

    alter("--add-config", "SCRAM-SHA-512=[iterations=8192,password=first-one]")
    await_answer("first-one", True)
    alter("--add-config", "SCRAM-SHA-512=[password=second-one]")
    await_answer("first-one", False)
    await_answer("second-one", True)
    described = run_tool("configs", *where, "--describe")
    assert "SCRAM-SHA-512=iterations=4096" in described.stdout, described.stdout + described.stderr
    alter("--delete-config", "SCRAM-SHA-512")
    await_answer("second-one", False)


# Bearer tokens


def unsigned(**claims: Any) -> str:
    given = {"sub": "dora", "iat": time.time(), "exp": time.time() + 600, **claims}
    return f"{part({'alg': 'none'})}.{part(given)}."


def test_bearer_tokens(node: SaslMoldau, topic: str) -> None:
    round_trip(node.bootstrap_of("SIGNED"), bearer(node.issuer.token()), topic)
    round_trip(node.bootstrap_of("UNSIGNED"), bearer(unsigned()), f"{topic}-unsigned")
    es256 = node.issuer.token({"alg": "ES256", "kid": "key-2"})
    with Admin(node.bootstrap_of("SIGNED"), config=bearer(es256)) as admin:
        assert topic in {row.name for row in admin.list_topics()}


def test_forged_tokens(node: SaslMoldau) -> None:
    """Nobody gets in with a token that the issuer has not signed for this broker and this time."""
    issuer, stranger, now = node.issuer, Issuer(), time.time()
    good = issuer.token()
    head, body, signature = good.split(".")
    forged = {
        "no signature": unsigned(),
        "algorithm none with the claims of a good one": f"{part({'alg': 'none'})}.{body}.",
        "signature left out": f"{head}.{body}.",
        "another key": stranger.token(),
        "an unknown key id": stranger.token({"kid": "key-9"}),
        "the public key as a secret": issuer.token({"alg": "HS256"}),
        "an algorithm of another key": issuer.token({"alg": "ES256"}),
        "other claims": f"{head}.{part({'sub': 'admin', 'iss': 'x', 'exp': now + 600, 'iat': now})}.{signature}",
        "expired": issuer.token(exp=now - 60, iat=now - 100),
        "not yet": issuer.token(iat=now + 120, exp=now + 600),
        "without an end": issuer.token(exp=None),
        "another issuer": issuer.token(iss="https://other"),
        "another audience": issuer.token(aud="other"),
        "no audience": issuer.token(aud=None),
        "no subject": issuer.token(sub=None),
        "an empty subject": issuer.token(sub=" "),
        "rubbish": "a.b.c",
    }
    for name, token in forged.items():
        told = refusal(node.bootstrap_of("SIGNED"), bearer(token))
        assert "invalid_token" in told and token not in told, (name, told)
    assert good.split(".")[2] not in node.output() and part({"alg": "none"}) not in node.output()


# Delegation tokens


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_delegation_tokens_of_our_client(node: SaslMoldau, topic: str, mechanism: str) -> None:
    owner = ours("PLAIN", PLAIN_USER)
    with Admin(node.sasl_plaintext, config=owner) as admin:
        token = admin.create_delegation_token([Principal("bob")])
        password = base64.b64encode(token.hmac).decode()
        by_token = {
            **ours(mechanism, User(token.token_id, password)),
            "sasl.jaas.config": jaas_of(mechanism, User(token.token_id, password), ' tokenauth="true"'),
        }
        deadline = time.monotonic() + SECONDS
        while token.token_id not in {each.token_id for each in admin.describe_delegation_token()}:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        round_trip(node.sasl_plaintext, by_token, topic)
        with (
            Admin(node.sasl_plaintext, config=by_token) as again,
            pytest.raises(ClientError, match="not allowed"),
        ):
            again.create_delegation_token()
        wrong = {**by_token, "sasl.jaas.config": jaas_of(mechanism, User(token.token_id, "x"), ' tokenauth="true"')}
        assert "Authentication failed" in refusal(node.sasl_plaintext, wrong)
        without = ours(mechanism, User(token.token_id, password))
        assert "Authentication failed" in refusal(node.sasl_plaintext, without)
        admin.expire_delegation_token(token.hmac, -1)
        deadline = time.monotonic() + SECONDS
        while admin.describe_delegation_token():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert "Authentication failed" in refusal(node.sasl_plaintext, by_token)
    assert password not in node.output()


@pytest.mark.usefixtures("kafka_tools")
def test_delegation_tokens_of_the_java_tools(node: SaslMoldau, tmp_path: Path, topic: str) -> None:
    where = ("--bootstrap-server", node.sasl_plaintext)
    file = ("--command-config", properties(tmp_path, "PLAIN", jaas_of("PLAIN", PLAIN_USER)))
    period = ("--max-life-time-period", "3600000", "--renewer-principal", "User:bob")
    made = run_tool("delegation-tokens", *where, "--create", *period, *file)
    assert made.returncode == 0, made.stdout + made.stderr
    token_id, hmac_text = made.stdout.strip().splitlines()[-1].split()[:2]
    shown = run_tool("delegation-tokens", *where, "--describe", "--owner-principal", "User:alice", *file)
    assert "Total number of tokens : 1" in shown.stdout and hmac_text in shown.stdout, shown.stdout + shown.stderr
    login = jaas_of("SCRAM-SHA-256", User(token_id, hmac_text), ' tokenauth="true"')
    by_token = properties(tmp_path, "SCRAM-SHA-256", login)
    done = run_tool("topics", *where, "--create", "--topic", topic, "--command-config", by_token)
    assert done.returncode == 0, done.stdout + done.stderr
    file = ("--command-config", properties(tmp_path, "PLAIN", jaas_of("PLAIN", PLAIN_USER)))
    renewed = run_tool(
        "delegation-tokens", *where, "--renew", "--renew-time-period", "1000000", "--hmac", hmac_text, *file
    )
    assert renewed.returncode == 0, renewed.stdout + renewed.stderr
    ended = run_tool("delegation-tokens", *where, "--expire", "--expiry-time-period", "-1", "--hmac", hmac_text, *file)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    nobody = tmp_path / "empty.properties"
    nobody.write_text("")
    refused = run_tool(
        "delegation-tokens",
        "--bootstrap-server",
        node.bootstrap,
        "--create",
        "--max-life-time-period",
        "-1",
        "--command-config",
        str(nobody),
    )
    assert refused.returncode == 1 and "are not allowed on PLAINTEXT" in refused.stderr
