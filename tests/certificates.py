"""Makes authorities, certificates and stores for tests with `openssl`, each in a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

PASSWORD = "store-secret"
EXTENSIONS = """
[req]
distinguished_name = name
string_mask = utf8only
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[node]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = {names}
"""
LOCAL = "DNS:localhost,IP:127.0.0.1"


class Signed(NamedTuple):
    """Files of one certificate; `pem` has the key and the chain."""

    key: Path
    chain: Path
    pem: Path


class Authority:
    """One CA; what it signs lies beside it."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        require("openssl")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key, self.certificate = folder / f"{name}.key", folder / f"{name}.crt"
        self._write_extensions(LOCAL)
        run(
            *("openssl", "req", "-new", "-x509", "-days", "3650", "-extensions", "ca", *self._key(self.key)),
            *("-config", str(self._extensions), "-subj", f"/CN={name}", "-out", str(self.certificate)),
        )

    @property
    def _extensions(self) -> Path:
        return self.folder / "openssl.cnf"

    def _write_extensions(self, names: str) -> None:
        self._extensions.write_text(EXTENSIONS.format(names=names))

    @staticmethod
    def _key(path: Path, kind: str = "ec") -> list[str]:
        chosen = ["-newkey", kind] if kind != "ec" else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        return [*chosen, "-nodes", "-keyout", str(path)]

    def sign(
        self, name: str, subject: str | None = None, *, names: str = LOCAL, days: int = 3650, kind: str = "ec"
    ) -> Signed:
        """A certificate for both sides of a connection; one of fewer than 0 days has expired already."""
        self._write_extensions(names)
        key, request, own = (self.folder / f"{name}.{kind_of}" for kind_of in ("key", "csr", "own"))
        run(
            *("openssl", "req", "-new", *self._key(key, kind), "-config", str(self._extensions), "-utf8"),
            *("-subj", subject or f"/CN={name}", "-out", str(request)),
        )
        run(
            *("openssl", "x509", "-req", "-in", str(request), "-out", str(own), "-days", str(days)),
            *("-CA", str(self.certificate), "-CAkey", str(self.key), "-CAcreateserial"),
            *("-extfile", str(self._extensions), "-extensions", "node"),
        )
        chain, pem = self.folder / f"{name}.crt", self.folder / f"{name}.pem"
        chain.write_bytes(own.read_bytes() + self.certificate.read_bytes())
        pem.write_bytes(key.read_bytes() + chain.read_bytes())
        return Signed(key, chain, pem)


def make_p12(signed: Signed, path: Path, password: str = PASSWORD) -> Path:
    options = ["-passout", f"pass:{password}", "-name", "own", "-out", str(path)]
    run("openssl", "pkcs12", "-export", "-in", str(signed.pem), *options)
    return path


def make_jks(signed: Signed, path: Path, password: str = PASSWORD) -> Path:
    """A JKS store as keytool makes it of a PKCS12 one."""
    require("keytool")
    source = make_p12(signed, path.with_suffix(".for-jks.p12"), password)
    run(
        *("keytool", "-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstorepass", password),
        *("-destkeystore", str(path), "-deststorepass", password, "-deststoretype", "JKS"),
    )
    return path


def make_jks_trust(certificate: Path, path: Path, kind: str = "JKS", password: str = PASSWORD) -> Path:
    require("keytool")
    run(
        *("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(certificate), "-storetype", kind),
        *("-keystore", str(path), "-storepass", password),
    )
    return path


def require(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing: install it and put it on PATH")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
