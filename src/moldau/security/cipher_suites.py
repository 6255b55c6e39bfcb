"""Cipher suites by the names that Kafka's settings have (IANA's, which are Java's) and by those that OpenSSL has.

Python's library chooses among the suites up to TLS 1.2 only; of TLS 1.3 OpenSSL always offers its three. So a list that
names some of these and not all cannot be kept, and is refused rather than taken for something else.
"""

from __future__ import annotations

import re
from typing import Final

from moldau.config.definitions import ConfigError

TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
# With forward secrecy and authenticated encryption, so that nothing weaker is there to be chosen.
DEFAULT: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!eNULL"
# Says nothing about ciphers: a mark of clients and servers that renegotiate safely, as all of ours do.
_SIGNALS: Final = ("TLS_EMPTY_RENEGOTIATION_INFO_SCSV",)

_IANA: Final = re.compile(r"(?:TLS|SSL)_(ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_(.+)")
_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "DHE_RSA": "DHE-RSA-", "RSA": ""}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CCM": "AES128-CCM",
    "AES_256_CCM": "AES256-CCM",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}


class CipherSuites:
    """What OpenSSL is told: a list for TLS 1.2, empty where none of its suites is wanted, and whether TLS 1.3 is."""

    def __init__(self, tls_1_2: str, has_tls_1_3: bool) -> None:
        self.tls_1_2 = tls_1_2
        self.has_tls_1_3 = has_tls_1_3


def parse_cipher_suites(names: list[str], allows_tls_1_3: bool) -> CipherSuites:
    """`ssl.cipher.suites`; ConfigError with a sentence for what is not known or cannot be kept."""
    if not names:
        return CipherSuites(DEFAULT, True)
    newer = [name for name in names if name in TLS_1_3]
    older = [_openssl_name(name) for name in names if name not in TLS_1_3 and name not in _SIGNALS]
    missing = [name for name in TLS_1_3 if name not in newer]
    if newer and missing and allows_tls_1_3:
        raise ConfigError(
            f"ssl.cipher.suites names {', '.join(newer)} and not {', '.join(missing)}, but this broker cannot choose"
            " among the cipher suites of TLS 1.3: name all three, or none, or leave TLSv1.3 out of"
            " ssl.enabled.protocols."
        )
    return CipherSuites(":".join(older), bool(newer))


def _openssl_name(name: str) -> str:
    found = _IANA.fullmatch(name)
    cipher = None if found is None else _CIPHERS.get(found[2])
    if found is None or cipher is None:
        raise ConfigError(f"ssl.cipher.suites: {name} is no cipher suite that this broker serves.")
    return _EXCHANGES[found[1]] + cipher
