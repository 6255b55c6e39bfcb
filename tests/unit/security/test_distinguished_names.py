"""Names of certificates are written as Java writes them, and nobody can write another name into their own."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from moldau.security.der import DerError, Element, element_at, object_identifier, read_certificate
from moldau.security.distinguished_names import distinguished_name
from tests.certificates import Authority


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x82" + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


NUMBERS = {
    "CN": bytes([0x55, 4, 3]),
    "O": bytes([0x55, 4, 10]),
    "OU": bytes([0x55, 4, 11]),
    "SN": bytes([0x55, 4, 5]),
    "DC": bytes.fromhex("0992268993f22c640119"),
    "UID": bytes.fromhex("0992268993f22c640101"),
    "EMAIL": bytes.fromhex("2a864886f70d010901"),
}


def attribute(keyword: str, value: bytes, tag: int = 0x0C) -> bytes:
    return der(0x30, der(0x06, NUMBERS[keyword]), der(tag, value))


def name(*parts: bytes) -> Element:
    return element_at(der(0x30, *(der(0x31, part) for part in parts)))


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([attribute("O", b"c"), attribute("OU", b"b"), attribute("CN", b"a")], "CN=a,OU=b,O=c"),
        ([], ""),
        ([attribute("O", b"c"), attribute("CN", b"a") + attribute("UID", b"u")], "CN=a+UID=u,O=c"),
        ([attribute("DC", b"org", 0x16), attribute("DC", b"example", 0x16)], "DC=example,DC=org"),
        # No word for it in RFC 2253: its number, and the value as it is encoded.
        ([attribute("EMAIL", b"a@b", 0x16)], "1.2.840.113549.1.9.1=#1603614062"),
        ([attribute("SN", b"7", 0x13)], "2.5.4.5=#130137"),
        # A value that is no text.
        ([attribute("CN", b"\x05", 0x02)], "CN=#020105"),
        # Another name inside the own one.
        ([attribute("CN", b"a,OU=admin")], "CN=a\\,OU\\=admin"),
        ([attribute("CN", b'#a+b<c>d;e"f\\g')], 'CN=\\#a\\+b\\<c\\>d\\;e\\"f\\\\g'),
        ([attribute("CN", b" a ")], "CN=\\ a\\ "),
        ([attribute("CN", b"  ")], "CN=\\ \\ "),
        ([attribute("CN", b"a\0b")], "CN=a\\00b"),
        ([attribute("CN", "Jürgen Ω".encode())], "CN=Jürgen Ω"),
        ([attribute("CN", b"")], "CN="),
    ],
)
def test_a_name_is_written_like_this(parts: list[bytes], text: str) -> None:
    assert distinguished_name(name(*parts)) == text


def test_the_name_and_the_alternative_names_of_a_real_certificate(tmp_path: Path) -> None:
    subject = "/C=DE/O=Müller, Söhne/OU=Data/CN=node 1"
    signed = Authority(tmp_path).sign("node", subject, names="DNS:a,DNS:b,IP:10.0.0.1")
    text = signed.chain.read_text()
    own = ssl.PEM_cert_to_DER_cert(text[: text.index("-----END") + 25])
    certificate = read_certificate(own)
    assert distinguished_name(certificate.subject) == "CN=node 1,OU=Data,O=Müller\\, Söhne,C=DE"
    assert certificate.alternative_names() == {(0x82, b"a"), (0x82, b"b"), (0x87, bytes([10, 0, 0, 1]))}
    for size in range(len(own)):
        with pytest.raises(DerError):
            read_certificate(own[:size])


def test_what_is_no_der_is_refused() -> None:
    for data in (b"", b"\x30", b"\x30\x05\x00", b"\x1f\x81\x01", b"\x30\x85\x01\x01\x01\x01\x01", b"\x30\x80"):
        with pytest.raises(DerError):
            element_at(data)
    for value in (b"", b"\x2a\x86"):
        with pytest.raises(DerError):
            object_identifier(value)
    assert object_identifier(bytes.fromhex("2a864886f70d010901")) == "1.2.840.113549.1.9.1"
    assert object_identifier(b"\x88\x37\x01") == "2.999.1"


def test_a_number_without_an_end_is_no_identifier() -> None:
    """Its digits would take long to write, and Python refuses to write very many."""
    with pytest.raises(DerError, match="too long"):
        object_identifier(b"\x55" + b"\xff" * 3000 + b"\x01")
