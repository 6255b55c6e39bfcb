"""Certificates and keys as users of Kafka have them: PEM files and texts, PKCS12 and JKS stores; given as PEM.

A binary store is known by what is in it: keytool writes PKCS12 into files that are called .jks, and Java does not mind
either. Files are read by whoever asks.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import ssl
from collections.abc import Iterable
from typing import Any, Final

from moldau.security.der import OCTET_STRING, DerError, element_at

PEM_MARK: Final = b"-----BEGIN"
JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
PRIVATE_KEY: Final = 1
TRUSTED_CERTIFICATE: Final = 2
CERTIFICATE_KINDS: Final = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_SALT_BYTES: Final = 20
_JKS_MARK: Final = b"Mighty Aphrodite"


class StoreError(Exception):
    """A store that cannot be used; the message is a sentence that says why, and what to do."""


class KeyStore:
    """A private key and its certificates, the own one first, in DER. `key` is PEM, and may still be encrypted."""

    def __init__(self, key: str, is_encrypted: bool, chain: list[bytes], entries: int = 1) -> None:
        self.key = key
        self.is_encrypted = is_encrypted
        self.chain = chain
        self.entries = entries

    def pem(self) -> str:
        return self.key + "".join(ssl.DER_cert_to_PEM_cert(one) for one in self.chain)


def is_pem(data: bytes) -> bool:
    return PEM_MARK in data


def read_trust_store(data: bytes, shown: str, password: str | None) -> list[bytes]:
    """The certificates of a truststore in DER; `shown` is what it is called in errors."""
    if is_pem(data):
        certificates = pem_certificates(data.decode("utf-8", "replace"), shown)
    elif data.startswith(JKS_MAGIC):
        certificates = _read_jks(data, shown, password).trusted
    else:
        store = _load_pkcs12(data, shown, password)
        found = [store.cert, *store.additional_certs]
        certificates = _encoded(item.certificate for item in found if item is not None)
    if not certificates:
        raise StoreError(f"No trusted certificates were found in {shown}.")
    return certificates


def read_key_store(data: bytes, shown: str, password: str | None, key_password: str | None) -> KeyStore:
    """The private key of a keystore and its certificates."""
    if is_pem(data):
        return pem_key_store(data.decode("utf-8", "replace"), shown)
    if data.startswith(JKS_MAGIC):
        return _jks_key_store(data, shown, password, key_password)
    store = _load_pkcs12(data, shown, password)
    if store.key is None or store.cert is None:
        raise StoreError(f"{shown} has no private key with a certificate.")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key: bytes = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = _encoded(item.certificate for item in [store.cert, *store.additional_certs])
    named = sum(item.friendly_name is not None for item in store.additional_certs)
    return KeyStore(key.decode(), False, chain, 1 + named)


# PEM


def pem_key_store(text: str, shown: str) -> KeyStore:
    """One key, and its certificates; text around the blocks is skipped."""
    keys = [found for found in _BLOCK.finditer(text) if found[1].endswith("PRIVATE KEY")]
    if len(keys) != 1:
        raise StoreError(f"{shown} has {len(keys) or 'no'} private keys, and there must be one.")
    chain = pem_certificates(text, shown)
    if not chain:
        raise StoreError(f"{shown} has a private key and no certificate.")
    is_encrypted = keys[0][1].startswith("ENCRYPTED") or "ENCRYPTED" in keys[0][2]
    key = keys[0][0] if "Proc-Type" in keys[0][2] else _tidy(keys[0])
    return KeyStore(key.strip() + "\n", is_encrypted, chain)


def pem_certificates(text: str, shown: str) -> list[bytes]:
    certificates = []
    for found in _BLOCK.finditer(text):
        if found[1] in CERTIFICATE_KINDS:
            try:
                certificates.append(base64.b64decode(_body(found[2]), validate=True))
            except binascii.Error:
                raise StoreError(f"{shown} has a certificate that is no base64.") from None
    return certificates


def _body(text: str) -> str:
    """Without blanks and without lines such as `Name: value`."""
    return "".join("".join(line.split()) for line in text.splitlines() if ":" not in line)


def _tidy(found: re.Match[str]) -> str:
    body = _body(found[2])
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {found[1]}-----", *lines, f"-----END {found[1]}-----"])


# PKCS12


def _load_pkcs12(data: bytes, shown: str, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise StoreError(
            f"{shown} is a PKCS12 store, which needs a package more: pip install 'moldau[keystores]'. Or make a PEM"
            " file of it: `openssl pkcs12 -in STORE -out store.pem -nodes`."
        ) from None
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise StoreError(
            f"{shown} cannot be read: its password does not fit, or it is no PEM, PKCS12 or JKS store."
        ) from None


def _encoded(certificates: Iterable[Any]) -> list[bytes]:
    from cryptography.hazmat.primitives.serialization import Encoding

    return [item.public_bytes(Encoding.DER) for item in certificates]


# JKS, Java's older format


class _JksStore:
    def __init__(self) -> None:
        self.keys: list[tuple[bytes, list[bytes]]] = []  # Still protected, with their chains.
        self.trusted: list[bytes] = []


class _JksReader:
    """Numbers, texts and pieces of a store, one after the other; ValueError where it ends early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        piece = self._data[self.at : self.at + size]
        if len(piece) != size:
            raise ValueError
        self.at += size
        return piece

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "big")

    def piece(self) -> bytes:
        return self.take(self.number())

    def skip_text(self) -> None:
        self.take(self.number(2))


def _read_jks(data: bytes, shown: str, password: str | None) -> _JksStore:
    """Certificates of a JKS store are not encrypted; its password only guards against changes, where it is given."""
    store, reader = _JksStore(), _JksReader(data)
    try:
        reader.take(4)
        version = reader.number()
        for _ in range(reader.number()):
            tag = reader.number()
            reader.skip_text()  # the alias
            reader.take(8)  # when it was made
            if tag == PRIVATE_KEY:
                key = reader.piece()
                store.keys.append((key, [_jks_certificate(reader, version) for _ in range(reader.number())]))
            elif tag == TRUSTED_CERTIFICATE:
                store.trusted.append(_jks_certificate(reader, version))
            else:
                raise ValueError
        content, digest = data[: reader.at], reader.take(20)
    except ValueError:
        raise StoreError(f"{shown} is a JKS store that is damaged.") from None
    if password is not None:
        expected = hashlib.sha1(_java_bytes(password) + _JKS_MARK + content).digest()
        if not hmac.compare_digest(expected, digest):
            raise StoreError(f"{shown} cannot be read: its password does not fit, or it was changed.")
    return store


def _jks_certificate(reader: _JksReader, version: int) -> bytes:
    if version == 2:
        reader.skip_text()  # the kind of certificate
    certificate = reader.piece()
    if not certificate:
        raise ValueError
    return certificate


def _jks_key_store(data: bytes, shown: str, password: str | None, key_password: str | None) -> KeyStore:
    store = _read_jks(data, shown, password)
    found = [entry for entry in store.keys if entry[1]]
    if not found:
        raise StoreError(f"{shown} has no private key with a certificate.")
    protected, chain = found[0]
    secret = key_password if key_password is not None else password or ""
    key = base64.encodebytes(_jks_key(protected, secret, shown)).decode()
    text = f"-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----\n"
    return KeyStore(text, False, chain, len(store.keys) + len(store.trusted))


def _jks_key(protected: bytes, password: str, shown: str) -> bytes:
    """Sun's own protection of keys: a key stream of SHA-1 digests, and a digest of what comes out."""
    try:
        parts = list(element_at(protected).children())
        data = parts[-1].expect(OCTET_STRING).value
    except (DerError, IndexError):
        raise StoreError(f"{shown} is a JKS store that is damaged.") from None
    secret = _java_bytes(password)
    salt, hidden, digest = data[:_SALT_BYTES], data[_SALT_BYTES:-20], data[-20:]
    stream, last = bytearray(), salt
    while len(stream) < len(hidden):
        last = hashlib.sha1(secret + last).digest()
        stream += last
    key = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), digest):
        raise StoreError(f"{shown}: the password of its key does not fit; set ssl.key.password.")
    return key


def _java_bytes(password: str) -> bytes:
    return password.encode("utf-16-be")
