"""Certificates are renewed while a node runs, and what must not replace another does not."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.definitions import ConfigError
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.protocol.errors import INVALID_REQUEST, KafkaError
from moldau.server.certificates import LOOK_S, Certificates
from tests.certificates import Authority, Signed
from tests.pace import wait_until

Values = dict[str, str]

DAY_S = 86400
PEM_BEGIN = "-----BEGIN CERTIFICATE-----"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def store(authority: Authority, tmp_path: Path) -> Path:
    return put(authority.sign("node"), tmp_path / "store.pem")


def put(signed: Signed, path: Path) -> Path:
    """In one step, as those do who renew certificates."""
    fresh = path.with_suffix(".new")
    shutil.copy(signed.pem, fresh)
    os.replace(fresh, path)
    return path


def values(authority: Authority, store: Path, **more: str) -> Values:
    return {
        **single_node_values(),
        "listeners": "SSL://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "inter.broker.listener.name": "SSL",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": str(store),
        "listener.name.ssl.ssl.truststore.type": "PEM",
        "listener.name.ssl.ssl.truststore.location": str(authority.certificate),
        **{name.replace("_", "."): text for name, text in more.items()},
    }


def loaded(found: Values) -> Certificates:
    return Certificates(BrokerConfig(found, warn=False))


def context_of(certificates: Certificates) -> object:
    server = certificates.server("SSL")
    assert server is not None
    return server.context


def test_without_tls_there_is_nothing_to_load() -> None:
    certificates = loaded(single_node_values())
    assert not certificates.are_there and certificates.server("PLAINTEXT") is None


@pytest.mark.parametrize("kind", ["endless", "pipe"])
def test_what_is_no_file_is_not_read(authority: Authority, store: Path, tmp_path: Path, kind: str) -> None:
    """It would be read without an end, or waited for."""
    path = "/dev/zero"
    if kind == "pipe":
        path = str(tmp_path / "pipe")
        os.mkfifo(path)
    with pytest.raises(ConfigError, match="not a file"):
        loaded(values(authority, store) | {"listener.name.ssl.ssl.truststore.location": path})


def test_when_a_certificate_expires_is_known_and_renewed_with_it(authority: Authority, store: Path) -> None:
    certificates = loaded(values(authority, store))
    server = certificates.server("SSL")
    assert server is not None and server.expires_s is not None
    assert server.expires_s == expiry_of(store)
    put(authority.sign("node", days=3), store)
    certificates.renew()
    assert server.expires_s == expiry_of(store)
    assert 2 * DAY_S < server.expires_s - time.time() < 4 * DAY_S


def expiry_of(store: Path) -> int:
    """The soonest of the file, as OpenSSL reads it."""
    ends = []
    for block in store.read_text().split(PEM_BEGIN)[1:]:
        command = ["openssl", "x509", "-noout", "-enddate"]
        told = subprocess.run(command, input=PEM_BEGIN + block, capture_output=True, text=True, check=True).stdout
        ends.append(ssl.cert_time_to_seconds(told.strip().removeprefix("notAfter=")))
    return min(ends)


def test_a_file_that_changes_is_loaded_by_itself(authority: Authority, store: Path) -> None:
    certificates = loaded(values(authority, store))
    before = context_of(certificates)
    certificates.renew()
    assert context_of(certificates) is before, "nothing has changed"
    certificates.watch()
    put(authority.sign("again", "/CN=node"), store)
    wait_until(lambda: context_of(certificates) is not before, 10, lambda: "the new one is not used")
    assert certificates.client("SSL") is not None
    certificates.close()


def test_the_first_look_after_a_change_suffices_and_there_are_two_a_second(authority: Authority, store: Path) -> None:
    """So that new connections have the new one within a second, which no test could measure on a busy machine."""
    certificates = loaded(values(authority, store))
    before = context_of(certificates)
    put(authority.sign("next", "/CN=node"), store)
    certificates.renew()
    assert context_of(certificates) is not before
    assert 2 * LOOK_S <= 1.0


@pytest.mark.parametrize(
    ("subject", "names", "more", "complaint"),
    [
        ("/CN=other", "DNS:localhost,IP:127.0.0.1", {}, "Keystore DistinguishedName does not match"),
        ("/CN=other", "DNS:localhost,IP:127.0.0.1", {"ssl_allow_dn_changes": "true"}, None),
        ("/CN=node", "DNS:localhost", {}, "Keystore SubjectAltNames do not match"),
        ("/CN=node", "DNS:localhost", {"ssl_allow_san_changes": "true"}, None),
        ("/CN=node", "DNS:localhost,IP:127.0.0.1,DNS:more", {}, None),
    ],
)
def test_whose_certificate_may_follow(
    authority: Authority,
    store: Path,
    caplog: pytest.LogCaptureFixture,
    subject: str,
    names: str,
    more: Values,
    complaint: str | None,
) -> None:
    certificates = loaded(values(authority, store, **more))
    before = context_of(certificates)
    put(authority.sign("next", subject, names=names), store)
    certificates.renew()
    certificates.renew()
    if complaint is None:
        assert context_of(certificates) is not before
    else:
        assert context_of(certificates) is before
        assert sum(complaint in line for line in caplog.messages) == 1, "it is said once, not every second"


@pytest.mark.parametrize("content", ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_file_that_is_none_changes_nothing_and_a_good_one_after_it_counts(
    authority: Authority, store: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    certificates = loaded(values(authority, store))
    before = context_of(certificates)
    store.write_text(content)
    certificates.renew()
    assert context_of(certificates) is before and "stay as they were" in caplog.text
    put(authority.sign("good", "/CN=node"), store)
    certificates.renew()
    assert context_of(certificates) is not before


def test_one_that_the_other_brokers_would_not_trust_is_refused(
    authority: Authority, store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = loaded(values(authority, store))
    before = context_of(certificates)
    put(Authority(tmp_path / "other", "other").sign("node"), store)
    certificates.renew()
    assert context_of(certificates) is before and "brokers could not connect to each other" in caplog.text


def test_a_node_that_does_not_trust_itself_does_not_start(authority: Authority, store: Path, tmp_path: Path) -> None:
    found = values(authority, store)
    found["listener.name.ssl.ssl.truststore.location"] = str(Authority(tmp_path / "other", "other").certificate)
    with pytest.raises(ConfigError, match="brokers could not connect to each other"):
        loaded(found)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"listener.name.ssl.ssl.keystore.location": "/nowhere.pem"}, "cannot be read"),
        ({"listener.name.ssl.ssl.keystore.type": "PKCS12"}, "key store password is not specified"),
        ({"listener.name.ssl.ssl.keystore.type": None}, "key store password is not specified"),
        ({"ssl.keystore.location": "/bare.pem"}, "only per-listener"),
    ],
)
def test_a_change_of_configs_that_cannot_be_used_is_refused(
    authority: Authority, store: Path, changes: dict[str, str | None], complaint: str
) -> None:
    found = values(authority, store)
    config = BrokerConfig({name: text for name, text in found.items() if changes.get(name, "") is not None}, warn=False)
    dynamic = DynamicBrokerConfig(config)
    dynamic.check = loaded(found).check
    given = {name: text for name, text in changes.items() if text is not None}
    with pytest.raises(KafkaError, match=complaint) as caught:
        dynamic.validate(dict(given), per_broker=True)
    assert caught.value.code == INVALID_REQUEST


def test_a_change_of_configs_is_used(authority: Authority, store: Path, tmp_path: Path) -> None:
    found = values(authority, store)
    dynamic = DynamicBrokerConfig(BrokerConfig(found, warn=False))
    certificates = loaded(found)
    dynamic.check = certificates.check
    before = context_of(certificates)
    elsewhere = put(authority.sign("moved", "/CN=node"), tmp_path / "elsewhere.pem")
    change = {"listener.name.ssl.ssl.keystore.location": str(elsewhere)}
    dynamic.validate(dict(change), per_broker=True)
    assert context_of(certificates) is before, "nothing changes by a check"
    dynamic.update_broker(change)
    certificates.apply_config(dynamic.current)
    certificates.renew()
    assert context_of(certificates) is not before


def test_a_trust_store_cannot_come_later(authority: Authority, store: Path) -> None:
    found = {name: text for name, text in values(authority, store).items() if "truststore" not in name}
    found["listener.name.ssl.ssl.client.auth"] = "none"
    found["inter.broker.listener.name"] = "INSIDE"
    found["listeners"] += ",INSIDE://127.0.0.1:9094"
    found["listener.security.protocol.map"] += ",INSIDE:PLAINTEXT"
    certificates = loaded(found)
    added = {
        **found,
        "listener.name.ssl.ssl.truststore.type": "PEM",
        "listener.name.ssl.ssl.truststore.location": str(authority.certificate),
    }
    with pytest.raises(ConfigError, match="Cannot add SSL truststore"):
        certificates.check(BrokerConfig(added, warn=False))
    removed = {name: text for name, text in found.items() if "keystore" not in name}
    with pytest.raises(ConfigError, match="no key store"):
        certificates.check(BrokerConfig(removed, warn=False))
