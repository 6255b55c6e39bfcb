"""Certificates and keys as users of Kafka have them: PEM files and texts, PKCS12 and JKS stores; given as PEM.

A store is known by what is in it: keytool writes PKCS12 into files that are called .jks, and Java does not mind either.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from moldau.client.errors import ConfigError

PEM_MARK = b"-----BEGIN"
JKS_MAGIC = b"\xfe\xed\xfe\xed"
TRUSTED_CERTIFICATE = 2


def trusted_pem(path: str, password: str | None) -> str:
    """The certificates of a truststore."""
    data = _read("ssl.truststore.location", path)
    if PEM_MARK in data:
        return data.decode()
    if data.startswith(JKS_MAGIC):
        return _from_jks(data, path)
    store = _load_pkcs12("ssl.truststore", path, data, password)
    found = [store.cert, *store.additional_certs]
    return _joined(item.certificate for item in found if item is not None)


def key_and_chain_pem(path: str, password: str | None) -> tuple[str, bool]:
    """The private key of a keystore and its certificates; whether the key is still encrypted."""
    data = _read("ssl.keystore.location", path)
    if PEM_MARK in data:
        return data.decode(), b"ENCRYPTED" in data
    if data.startswith(JKS_MAGIC):
        raise ConfigError(
            f"The keystore {path} is in Java's old format: convert it with `keytool -importkeystore -srckeystore {path}"
            " -destkeystore store.p12 -deststoretype PKCS12`."
        )
    store = _load_pkcs12("ssl.keystore", path, data, password)
    if store.key is None or store.cert is None:
        raise ConfigError(f"The keystore {path} has no private key with a certificate.")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key: bytes = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = _joined(item.certificate for item in [store.cert, *store.additional_certs])
    return key.decode() + chain, False


def _read(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}.") from None


def _load_pkcs12(setting: str, path: str, data: bytes, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(
            f"{path} is a PKCS12 store, which needs a package more: pip install 'moldau[keystores]'. Or make a PEM file"
            f" of it: `openssl pkcs12 -in {path} -out store.pem -nodes`."
        ) from None
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise ConfigError(
            f"{path} cannot be read: {setting}.password does not fit, or it is no PEM, PKCS12 or JKS store."
        ) from None


def _joined(certificates: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(item.public_bytes(Encoding.PEM).decode() for item in certificates)


def _from_jks(data: bytes, path: str) -> str:
    """Certificates of a JKS store, which are not encrypted; its password only guards against changes."""
    try:
        version, count = (int.from_bytes(data[at : at + 4], "big") for at in (4, 8))
        position = 12
        found: list[str] = []
        for _ in range(count):
            tag = int.from_bytes(data[position : position + 4], "big")
            if tag != TRUSTED_CERTIFICATE:
                break
            position = _behind_text(data, position + 4) + 8  # the alias, and when it was made
            if version == 2:
                position = _behind_text(data, position)  # the kind of certificate
            size = int.from_bytes(data[position : position + 4], "big")
            certificate = data[position + 4 : position + 4 + size]
            if len(certificate) != size or not size:
                raise ValueError
            found.append(ssl.DER_cert_to_PEM_cert(certificate))
            position += 4 + size
    except ValueError:
        found = []
    if not found:
        raise ConfigError(f"No trusted certificates were found in the JKS store {path}.")
    return "".join(found)


def _behind_text(data: bytes, position: int) -> int:
    return position + 2 + int.from_bytes(data[position : position + 2], "big")
