"""Names of cipher suites are OpenSSL's after this, and what cannot be kept is refused."""

from __future__ import annotations

import ssl

import pytest

from moldau.config.definitions import ConfigError
from moldau.security.cipher_suites import TLS_1_3, parse_cipher_suites


def test_names_are_translated() -> None:
    suites = parse_cipher_suites(
        ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"], True
    )
    assert suites.tls_1_2 == "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305"
    assert not suites.has_tls_1_3


def test_openssl_knows_all_names_that_are_made() -> None:
    for exchange in ("ECDHE_RSA", "ECDHE_ECDSA"):
        for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"):
            made = parse_cipher_suites([f"TLS_{exchange}_WITH_{cipher}"], True).tls_1_2
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_ciphers(made)
            assert made in [found["name"] for found in context.get_ciphers()]


def test_without_a_list_there_is_nothing_weak() -> None:
    suites = parse_cipher_suites([], True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(suites.tls_1_2)
    for found in context.get_ciphers():
        assert "GCM" in found["name"] or "POLY1305" in found["name"]
    assert suites.has_tls_1_3


def test_a_choice_among_those_of_tls_1_3_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot choose among the cipher suites"):
        parse_cipher_suites(["TLS_AES_256_GCM_SHA384"], True)
    assert parse_cipher_suites(list(TLS_1_3), True).has_tls_1_3
    assert parse_cipher_suites(["TLS_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_GCM_SHA256"], False).tls_1_2


@pytest.mark.parametrize("name", ["nonsense", "TLS_ECDHE_RSA_WITH_RC4_128_SHA", "ECDHE-RSA-AES128-GCM-SHA256"])
def test_what_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        parse_cipher_suites([name], True)
