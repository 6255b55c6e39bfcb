"""Signs certificates for machines of developers: with the package `cryptography`, else with the command `openssl`.

Python's own library reads certificates and cannot make any. Both ways make the same: keys on P-256 in PKCS8, which all
clients read, and certificates that serve as server and as client. Only their first moment differs: see BACKDATED_S.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

DAY_S: Final = 86400
# A clock that is a little behind does not find the certificate to be from the future. The command openssl cannot do
# that before 3.4: its certificates are valid from the moment on that they are made.
BACKDATED_S: Final = 3600
OPENSSL_S_MAX: Final = 60

_OPENSSL_CONFIG: Final = """
[req]
distinguished_name = name
string_mask = utf8only
[name]
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[own]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class SigningError(Exception):
    """Certificates cannot be made here; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A private key and its certificate, in PEM. Shown without the key."""

    key: bytes
    certificate: bytes

    def __repr__(self) -> str:
        return "Pair(key hidden)"


class Signer(Protocol):
    """What both ways can do. `common_name` is the whole subject; `hosts` are names and addresses."""

    def authority(self, common_name: str, days: int) -> Pair: ...

    def sign(self, authority: Pair, common_name: str, hosts: Sequence[str], days: int) -> Pair: ...

    def pkcs12(self, own: Pair, authority: Pair, name: str, password: str) -> bytes: ...


def find_signer() -> Signer:
    """The better of what is installed."""
    try:
        import cryptography.x509  # noqa: F401

        return CryptographySigner()
    except ImportError:
        pass
    if shutil.which("openssl") is not None:
        return OpensslSigner()
    raise SigningError(
        "certificates are signed with the package cryptography or with the command openssl, and neither is installed: "
        "`pip install 'moldau[keystores]'`"
    )


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class CryptographySigner:
    """See the module."""

    def authority(self, common_name: str, days: int) -> Pair:
        from cryptography import x509

        key, own = self._new_key(), self._name(common_name)
        builder = self._builder(own, own, key.public_key(), days)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        return self._finish(builder, key, key)

    def sign(self, authority: Pair, common_name: str, hosts: Sequence[str], days: int) -> Pair:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from cryptography.x509.oid import ExtendedKeyUsageOID

        signing_key: Any = load_pem_private_key(authority.key, None)
        issuer = x509.load_pem_x509_certificate(authority.certificate).subject
        key = self._new_key()
        builder = self._builder(self._name(common_name), issuer, key.public_key(), days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
        issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key())
        builder = builder.add_extension(issued_by, critical=False)
        if hosts:
            addresses = [(host, as_address(host)) for host in hosts]
            names = [x509.DNSName(host) if address is None else x509.IPAddress(address) for host, address in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return self._finish(builder, key, signing_key)

    def pkcs12(self, own: Pair, authority: Pair, name: str, password: str) -> bytes:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            load_pem_private_key,
            pkcs12,
        )

        key: Any = load_pem_private_key(own.key, None)
        certificate, issuer = (x509.load_pem_x509_certificate(pair.certificate) for pair in (own, authority))
        encryption = BestAvailableEncryption(password.encode())
        store: bytes = pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [issuer], encryption)
        return store

    @staticmethod
    def _new_key() -> Any:
        from cryptography.hazmat.primitives.asymmetric import ec

        return ec.generate_private_key(ec.SECP256R1())

    @staticmethod
    def _name(common_name: str) -> Any:
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    @staticmethod
    def _builder(subject: Any, issuer: Any, public_key: Any, days: int) -> Any:
        from datetime import UTC, datetime, timedelta

        from cryptography import x509

        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
        builder = builder.public_key(public_key).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(seconds=BACKDATED_S))
        builder = builder.not_valid_after(now + timedelta(days=days))
        return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)

    @staticmethod
    def _finish(builder: Any, key: Any, signing_key: Any) -> Pair:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        certificate = builder.sign(signing_key, SHA256())
        text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(text, certificate.public_bytes(Encoding.PEM))


def _key_usage(signs_certificates: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


class OpensslSigner:
    """Works in a directory that only this user can read and that is gone afterwards; secrets are never arguments."""

    def authority(self, common_name: str, days: int) -> Pair:
        with _Workshop() as shop:
            shop.new_key("own.key")
            shop.request(common_name)
            shop.run(
                *("x509", "-req", "-in", "own.csr", "-signkey", "own.key", "-out", "own.crt", "-sha256"),
                *("-days", str(days), "-set_serial", _serial(), "-extfile", "openssl.cnf", "-extensions", "authority"),
            )
            return Pair(shop.read("own.key"), shop.read("own.crt"))

    def sign(self, authority: Pair, common_name: str, hosts: Sequence[str], days: int) -> Pair:
        with _Workshop(hosts) as shop:
            shop.write("ca.key", authority.key)
            shop.write("ca.crt", authority.certificate)
            shop.new_key("own.key")
            shop.request(common_name)
            shop.run(
                *("x509", "-req", "-in", "own.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-out", "own.crt", "-sha256"),
                *("-days", str(days), "-set_serial", _serial(), "-extfile", "openssl.cnf", "-extensions", "own"),
            )
            return Pair(shop.read("own.key"), shop.read("own.crt"))

    def pkcs12(self, own: Pair, authority: Pair, name: str, password: str) -> bytes:
        with _Workshop() as shop:
            shop.write("own.key", own.key)
            shop.write("own.crt", own.certificate)
            shop.write("ca.crt", authority.certificate)
            shop.write("password", password.encode())
            shop.run(
                *("pkcs12", "-export", "-inkey", "own.key", "-in", "own.crt", "-certfile", "ca.crt"),
                *("-name", name, "-passout", "file:password", "-out", "own.p12"),
            )
            return shop.read("own.p12")


def _serial() -> str:
    return f"0x{int.from_bytes(os.urandom(16), 'big') >> 1:x}"


class _Workshop:
    """A directory with what one run of openssl needs."""

    def __init__(self, hosts: Sequence[str] = ()) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="moldau-cert-")
        names = ",".join(f"{'DNS' if as_address(host) is None else 'IP'}:{host}" for host in hosts)
        config = _OPENSSL_CONFIG + (f"subjectAltName = {names}\n" if names else "")
        self.write("openssl.cnf", config.encode())

    def __enter__(self) -> _Workshop:
        return self

    def __exit__(self, *error: object) -> None:
        self._directory.cleanup()

    def write(self, name: str, data: bytes) -> None:
        write_private(Path(self._directory.name) / name, data)

    def read(self, name: str) -> bytes:
        return (Path(self._directory.name) / name).read_bytes()

    def new_key(self, name: str) -> None:
        self.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name)

    def request(self, common_name: str) -> None:
        subject = common_name.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")
        self.run(
            *("req", "-new", "-utf8", "-config", "openssl.cnf", "-key", "own.key"),
            *("-subj", f"/CN={subject}", "-out", "own.csr"),
        )

    def run(self, *arguments: str) -> None:
        try:
            done = subprocess.run(
                ["openssl", *arguments],
                cwd=self._directory.name,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=OPENSSL_S_MAX,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SigningError(f"openssl {arguments[0]} cannot be run: {error}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise SigningError(f"openssl {arguments[0]} failed: {said[-1] if said else 'it does not say why'}")


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Whole or not at all; nobody else can read it, not even for a moment.

    No link is followed: one that stands at the path is replaced, and nobody can guess where to put one before.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
