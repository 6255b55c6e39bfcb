"""What certificates tell besides their owner: validity, names of hosts, keys and signatures; damage is an error."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from moldau.security.der import Certificate, DerError, read_certificate
from moldau.security.keystores import pem_certificates
from tests.certificates import Authority, Signed

SHA_256_WITH_ECDSA = "1.2.840.10045.4.3.2"
DAY_S = 86400


def encoded(signed: Signed) -> bytes:
    return pem_certificates(signed.chain.read_text(), "the file")[0]


def is_about(seconds: float, wanted: float) -> bool:
    """openssl reads the clock for the beginning and again for the end."""
    return 0 <= seconds - wanted <= 60


def test_validity_names_and_keys_are_read(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    found = read_certificate(encoded(authority.sign("a", names="DNS:Node.Test,IP:::1,IP:10.0.0.7,URI:x:y", days=10)))
    begin, end = found.valid_seconds()
    assert abs(begin - time.time()) < DAY_S
    assert is_about(end - begin, 10 * DAY_S)
    assert found.host_names() == ["10.0.0.7", "::1", "node.test"]
    assert found.rsa_bits() is None
    assert found.signature_algorithm() == SHA_256_WITH_ECDSA
    issuer = read_certificate(pem_certificates(authority.certificate.read_text(), "the file")[0])
    assert found.issuer.encoded == issuer.subject.encoded
    assert read_certificate(encoded(authority.sign("b", kind="rsa:2048"))).rsa_bits() == 2048


def test_moments_after_2049_are_written_in_another_form(tmp_path: Path) -> None:
    found = read_certificate(encoded(Authority(tmp_path).sign("a", days=20_000)))
    begin, end = found.valid_seconds()
    assert is_about(end - begin, 20_000 * DAY_S)


def ask_everything(certificate: Certificate) -> None:
    certificate.valid_seconds()
    certificate.host_names()
    certificate.rsa_bits()
    certificate.signature_algorithm()


def test_damage_is_an_error_of_one_kind(tmp_path: Path) -> None:
    data = encoded(Authority(tmp_path).sign("a", kind="rsa:2048"))
    chance = random.Random(7)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            ask_everything(read_certificate(bytes(damaged)))
        except DerError:
            refused += 1
    assert refused > 100
    with pytest.raises(DerError):
        ask_everything(read_certificate(data[: len(data) // 2]))
