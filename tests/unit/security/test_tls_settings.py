"""Settings of a listener come before those of all, and combinations that cannot work are refused in Kafka's words."""

from __future__ import annotations

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.definitions import ConfigError
from moldau.security.tls_settings import TlsSettings

PEM_FILE = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/k.pem"}


def settings(values: dict[str, str], protocol: str = "SSL") -> TlsSettings:
    base = single_node_values()
    base["listeners"] = "OUT://127.0.0.1:9094," + base["listeners"]
    base["listener.security.protocol.map"] += f",OUT:{protocol}"
    return TlsSettings(BrokerConfig({**base, **values}, warn=False), "OUT")


def test_what_holds_without_a_word() -> None:
    found = settings({})
    assert not found.key_store.is_given and not found.trust_store.is_given
    assert (found.client_auth, found.protocols, found.verifies_hosts) == ("none", ["TLSv1.2", "TLSv1.3"], True)
    assert found.names_principals and found.principal_rules.principal_name("CN=a") == "CN=a"


def test_a_listeners_own_setting_comes_first() -> None:
    found = settings({**PEM_FILE, "listener.name.out.ssl.keystore.location": "/own.pem", "ssl.client.auth": "required"})
    assert (found.key_store.location, found.client_auth) == ("/own.pem", "required")


def test_where_clients_log_in_only_the_listeners_own_setting_asks_for_certificates() -> None:
    assert settings({"ssl.client.auth": "required"}, "SASL_SSL").client_auth == "none"
    own = {"ssl.client.auth": "none", "listener.name.out.ssl.client.auth": "required"}
    found = settings(own, "SASL_SSL")
    assert found.client_auth == "required" and not found.names_principals


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"ssl.keystore.location": "/k.jks"}, "SSL key store is specified, but key store password is not specified."),
        ({"ssl.keystore.password": "x"}, "SSL key store is not specified, but key store password is specified."),
        ({"ssl.keystore.key": "x"}, "SSL private key can be specified only for PEM, but key store type is JKS."),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.certificate.chain": "x"},
            "SSL certificate chain can be specified only for PEM, but key store type is PKCS12.",
        ),
        ({**PEM_FILE, "ssl.keystore.password": "x"}, "SSL key store password cannot be specified with PEM format"),
        ({**PEM_FILE, "ssl.keystore.key": "x"}, "Both SSL key store location and separate private key"),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"},
            "SSL private key is specified, but certificate chain is not specified.",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "x"},
            "SSL certificate chain is specified, but private key is not specified.",
        ),
        ({"ssl.truststore.certificates": "x"}, "SSL trust store certificates can be specified only for PEM"),
        ({"ssl.truststore.password": "x"}, "SSL trust store is not specified, but trust store password is specified."),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/t", "ssl.truststore.password": "x"},
            "SSL trust store password cannot be specified for PEM format.",
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/t", "ssl.truststore.certificates": "x"},
            "Both SSL trust store location and separate trust certificates are specified.",
        ),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type is BKS"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "TLSv1.1 cannot be served"),
        ({"ssl.protocol": "SSLv3"}, "ssl.protocol: SSLv3 cannot be served"),
        ({"ssl.endpoint.identification.algorithm": "ftps"}, "it can be https"),
        ({"ssl.provider": "BC"}, "ssl.provider is BC, but this broker has OpenSSL alone"),
        (
            {"ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
            "names no suite of a version",
        ),
        ({"ssl.principal.mapping.rules": "nonsense"}, "Invalid rule: nonsense"),
    ],
)
def test_what_cannot_work_is_refused(values: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(values)
    assert complaint in caught.value.message


def test_versions_without_a_suite_go() -> None:
    assert settings({"ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}).protocols == ["TLSv1.2"]


@pytest.mark.parametrize(("text", "verifies"), [("https", True), ("HTTPS", True), ("", False)])
def test_an_empty_algorithm_switches_the_check_of_hosts_off(text: str, verifies: bool) -> None:
    assert settings({"ssl.endpoint.identification.algorithm": text}).verifies_hosts == verifies
