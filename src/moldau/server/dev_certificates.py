"""A directory with an authority of one's own and the certificates that it signed; run again, it renews what is due.

The authority stays, so that who trusts it goes on to. A certificate is made anew when it is about to expire, lacks a
name, is not the authority's or does not fit its key, and keeps the names it had: a broker that runs takes no
certificate that lacks some of the old one's.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from moldau.security.der import Certificate, DerError, read_certificate
from moldau.security.keystores import StoreError, pem_certificates
from moldau.server.signing import DAY_S, Pair, Signer, SigningError, as_address, write_private

AUTHORITY: Final = "ca"
PASSWORD_FILE: Final = "store.password"
AUTHORITY_DAYS: Final = 3650
DAYS_DEFAULT: Final = 365
RENEWED_DAYS_AHEAD: Final = 30
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")

MADE, RENEWED, KEPT = "made", "renewed", "kept"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_HOST: Final = re.compile(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})")


@dataclass(frozen=True, slots=True)
class Made:
    """What became of one certificate, and why."""

    name: str
    what: str
    why: str
    expires_s: int


class DevCertificates:
    """Files of `name`: .key, .crt (with the authority's), .pem (both), .p12; of the authority ca.key and ca.pem."""

    def __init__(self, directory: Path, signer: Signer, days: int = DAYS_DEFAULT, has_pkcs12: bool = True) -> None:
        self.directory = directory
        self._signer = signer
        self._days = days
        self._has_pkcs12 = has_pkcs12
        self._authority: Pair | None = None

    @property
    def authority_file(self) -> Path:
        return self.directory / f"{AUTHORITY}.pem"

    def file(self, name: str, ending: str = "pem") -> Path:
        return self.directory / f"{name}.{ending}"

    # The authority

    def ensure_authority(self, anew: bool = False) -> Made:
        """Must be called first."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = [self.file(AUTHORITY, "key"), self.authority_file]
        present = [file for file in files if file.exists()]
        if len(present) == 1 and not anew:
            missing = next(file for file in files if file not in present)
            raise SigningError(
                f"{present[0]} is there and {missing} is not: put it back, or say --new-authority for another one"
            )
        why = "asked for" if anew and present else "" if not present else self._read_authority(*files)
        if present and not why:
            assert self._authority is not None
            return Made(AUTHORITY, KEPT, "", _expires_s(self._authority))
        name = f"Moldau development CA {secrets.token_hex(4)}"
        self._authority = self._signer.authority(name, AUTHORITY_DAYS)
        write_private(files[0], self._authority.key)
        write_private(files[1], self._authority.certificate, 0o644)
        return Made(AUTHORITY, RENEWED if present else MADE, why, _expires_s(self._authority))

    def _read_authority(self, key: Path, certificate: Path) -> str:
        """Why it has to be made anew; empty where it is good."""
        pair = Pair(key.read_bytes(), certificate.read_bytes())
        try:
            left_s = _expires_s(pair) - time.time()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key, password="")
        except (StoreError, DerError, ssl.SSLError, IndexError) as error:
            raise SigningError(
                f"{certificate} and {key} are no certificate with its key ({error}): put them back, or say "
                "--new-authority for another authority"
            ) from None
        self._authority = pair
        return "it is about to expire" if left_s < RENEWED_DAYS_AHEAD * DAY_S else ""

    # What it signs

    def ensure(self, name: str, common_name: str, hosts: Iterable[str] = (), anew: bool = False) -> Made:
        """Makes or renews the files of one certificate where that is due."""
        assert self._authority is not None, "there is an authority first"
        wanted = list(dict.fromkeys(canonical_host(host) for host in hosts))
        old = self._read_own(name)
        why = "asked for" if anew and old is not None else self._why_due(name, old, wanted)
        if not why and old is not None:
            self._keep_files_private(name)
            return Made(name, KEPT, "", old.valid_seconds()[1])
        known = old.host_names() if old is not None else []
        authority = self._authority
        days = max(1, min(self._days, int((_expires_s(authority) - time.time()) // DAY_S)))
        pair = self._signer.sign(authority, common_name, list(dict.fromkeys([*wanted, *known])), days)
        self._write(name, pair, authority)
        return Made(name, MADE if old is None else RENEWED, why if old is not None else "", _expires_s(pair))

    def _read_own(self, name: str) -> Certificate | None:
        try:
            return _first_certificate(self.file(name).read_text())
        except (OSError, StoreError, DerError, IndexError, UnicodeDecodeError):
            return None

    def _why_due(self, name: str, old: Certificate | None, hosts: list[str]) -> str:
        """Empty where what is there does."""
        if old is None:
            return "it is not there"
        assert self._authority is not None
        if old.issuer.encoded != _first_certificate(self._authority.certificate.decode()).subject.encoded:
            return "another authority has signed it"
        left_s = old.valid_seconds()[1] - time.time()
        if left_s < min(RENEWED_DAYS_AHEAD, self._days / 3) * DAY_S:
            return "it has expired" if left_s <= 0 else "it is about to expire"
        missing = [host for host in hosts if host not in old.host_names()]
        if missing:
            return f"it lacks {', '.join(missing)}"
        endings = ["key", "crt", *(["p12"] if self._has_pkcs12 else [])]
        if not all(self.file(name, ending).exists() for ending in endings):
            return "a file of it is missing"
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.file(name), password="")
        except (ssl.SSLError, OSError):
            return "its key does not fit"
        return ""

    def _keep_files_private(self, name: str) -> None:
        for ending in ("key", "pem", "p12"):
            if self.file(name, ending).exists():
                os.chmod(self.file(name, ending), 0o600)

    def _write(self, name: str, pair: Pair, authority: Pair) -> None:
        chain = pair.certificate + authority.certificate
        write_private(self.file(name, "key"), pair.key)
        write_private(self.file(name, "crt"), chain, 0o644)
        if self._has_pkcs12:
            store = self._signer.pkcs12(pair, authority, name, self.store_password())
            write_private(self.file(name, "p12"), store)
        # Last: it is the one that tells whether the certificate is there.
        write_private(self.file(name), pair.key + chain)

    def store_password(self) -> str:
        """Of the PKCS12 stores; made up once."""
        path = self.directory / PASSWORD_FILE
        if not path.exists():
            write_private(path, f"{secrets.token_urlsafe(18)}\n".encode())
        return path.read_text().strip()


def check_names(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """The names of clients as those of their files, which some file systems compare without regard to capitals."""
    known = {name.lower(): name for name in taken}
    found = list(dict.fromkeys(names))
    for name in found:
        if not _NAME.fullmatch(name):
            raise SigningError(f"{name!r} cannot be the name of a client here: use letters, digits, '.', '_' and '-'")
        if name.lower() in known:
            raise SigningError(
                f"{name!r} cannot be the name of a client here: its files would be those of "
                f"{known[name.lower()]!r}, choose another name"
            )
        known[name.lower()] = name
    return found


def canonical_host(host: str) -> str:
    """A name in small letters, or an address in its one form."""
    bare = host.strip().removeprefix("[").removesuffix("]")
    address = as_address(bare)
    if address is not None and "%" not in bare:
        return str(address)
    if address is not None:
        raise SigningError(f"{host!r} names an interface of this machine, which no certificate can: leave out the %")
    if not _HOST.fullmatch(bare):
        raise SigningError(f"{host!r} is neither the name of a host nor an address")
    return bare.lower()


def _first_certificate(text: str) -> Certificate:
    return read_certificate(pem_certificates(text, "the file")[0])


def _expires_s(pair: Pair) -> int:
    return _first_certificate(pair.certificate.decode()).valid_seconds()[1]
