"""A real Apache Kafka whose listeners ask for TLS and SASL, and the certificates that its clients need.

Everything is made anew for each run: `openssl` makes the certificates, a request the SCRAM users. Each listener has a
port of its own on loopback; PLAINTEXT is there for brokers and for administration.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from moldau.protocol import errors
from moldau.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.interop import kafka_oracle
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import HOST, START_SECONDS_MAX, free_ports
from tests.interop.wire import Wire

PASSWORD = "key-secret"
# A session kept longer than this without authentication anew is closed by the listener REAUTH.
REAUTH_MS = 3000


class User(NamedTuple):
    name: str
    password: str


PLAIN_USER = User("alice", "alice-secret")
SCRAM_USER = User("scram", "scram, secret=")
# SCRAM escapes `,` and `=` in names (RFC 5802), and only there.
ESCAPED_USER = User("scram, name=", "escaped-secret")

PROTOCOLS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "REAUTH": "SASL_PLAINTEXT",
}
# In the order of their numbers in the protocol, from 1.
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS = 4096
LOGIN_MODULES = {
    "PLAIN": f'plain.PlainLoginModule required user_{PLAIN_USER.name}="{PLAIN_USER.password}"',
    **dict.fromkeys(SCRAM_MECHANISMS, "scram.ScramLoginModule required"),
}

# All that Python's strict check of certificates asks for: it wants key identifiers, and key usage of a CA.
EXTENSIONS = """
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:localhost, IP:127.0.0.1
[client]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class Certificates(NamedTuple):
    """Paths of one CA's files. A `pem` holds key and chain; all keys are PKCS8."""

    password: str  # Of both stores and of the encrypted key.
    ca: Path
    other_ca: Path  # Has signed nothing here.
    server_pem: Path
    client_certificate: Path  # The chain: the client's certificate, then the CA's.
    client_key: Path
    client_key_encrypted: Path  # PBES2, openssl's default; Kafka's Java client cannot read it from a PEM file.
    client_pem: Path
    client_pem_encrypted: Path
    keystore_p12: Path
    truststore_p12: Path  # Made by openssl, so without the mark by which Java knows a trusted certificate.
    truststore_jks: Path | None  # Made by keytool, so PKCS12 in spite of its name; None where keytool is missing.


def missing() -> str | None:
    """Why a secured Apache Kafka cannot be run here, or None when it can."""
    if shutil.which("openssl") is None:
        return "openssl is missing: install it and put it on PATH"
    return kafka_oracle.missing()


def make_certificates(folder: Path) -> Certificates:
    """Makes a CA, what it signs for a server on loopback and for a client, and a CA that is unrelated."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openssl.cnf").write_text(EXTENSIONS)
    made = Certificates(
        password=PASSWORD,
        ca=make_ca(folder, "ca"),
        other_ca=make_ca(folder, "other-ca"),
        server_pem=folder / "server.pem",
        client_certificate=make_signed(folder, "client"),
        client_key=folder / "client.key",
        client_key_encrypted=folder / "client-encrypted.key",
        client_pem=folder / "client.pem",
        client_pem_encrypted=folder / "client-encrypted.pem",
        keystore_p12=folder / "keystore.p12",
        truststore_p12=folder / "truststore.p12",
        truststore_jks=folder / "truststore.jks" if shutil.which("keytool") else None,
    )
    join(made.server_pem, folder / "server.key", make_signed(folder, "server"))
    encrypted = ["-v2", "aes-256-cbc", "-passout", f"pass:{PASSWORD}", "-out", str(made.client_key_encrypted)]
    run("openssl", "pkcs8", "-topk8", "-in", str(made.client_key), *encrypted)
    join(made.client_pem, made.client_key, made.client_certificate)
    join(made.client_pem_encrypted, made.client_key_encrypted, made.client_certificate)
    make_stores(made)
    return made


def make_ca(folder: Path, name: str) -> Path:
    make_key_and(folder, name, f"{name}.crt", "-x509", "-days", "3650", "-extensions", "ca")
    return folder / f"{name}.crt"


def make_signed(folder: Path, name: str) -> Path:
    """Makes a key and a certificate for it; returns the file of the whole chain."""
    request, ca = make_key_and(folder, name, f"{name}.csr"), folder / "ca.crt"
    signer = ["-CA", str(ca), "-CAkey", str(folder / "ca.key"), "-CAcreateserial", "-days", "3650"]
    extensions = ["-extfile", str(folder / "openssl.cnf"), "-extensions", name]
    own, chain = folder / f"{name}-alone.crt", folder / f"{name}.crt"
    run("openssl", "x509", "-req", "-in", str(request), "-out", str(own), *signer, *extensions)
    join(chain, own, ca)
    return chain


def make_key_and(folder: Path, name: str, out: str, *options: str) -> Path:
    """Makes a key and, by default, a request to sign it."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(folder / f"{name}.key")]
    subject = ["-config", str(folder / "openssl.cnf"), "-subj", f"/CN=moldau-test-{name}"]
    run("openssl", "req", "-new", *key, *subject, "-out", str(folder / out), *options)
    return folder / out


def make_stores(made: Certificates) -> None:
    export = ["openssl", "pkcs12", "-export", "-passout", f"pass:{PASSWORD}"]
    run(*export, "-in", str(made.client_pem), "-name", "client", "-out", str(made.keystore_p12))
    run(*export, "-nokeys", "-in", str(made.ca), "-name", "ca", "-out", str(made.truststore_p12))
    if made.truststore_jks is not None:
        store = ["-keystore", str(made.truststore_jks), "-storepass", PASSWORD]
        run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(made.ca), *store)


def join(path: Path, *parts: Path) -> None:
    path.write_bytes(b"".join(part.read_bytes() for part in parts))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"


class SecuredKafka(KafkaNode):
    """One Apache Kafka with a listener for each way to connect; `bootstrap` is the one without security."""

    def __init__(self, folder: Path, overrides: dict[str, str] | None = None) -> None:
        self.certificates = make_certificates(folder / "certificates")
        super().__init__(folder, overrides)
        self.ssl = self.bootstrap_of("SSL")
        self.mtls = self.bootstrap_of("MTLS")
        self.sasl_plaintext = self.bootstrap_of("SASL_PLAINTEXT")
        self.sasl_ssl = self.bootstrap_of("SASL_SSL")
        self.reauth = self.bootstrap_of("REAUTH")

    def bootstrap_of(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    def write_properties(self, overrides: dict[str, str]) -> None:
        # Two more than needed: two of them may be those that the node already has.
        own = {self.port, self.controller_port}
        free = (port for port in free_ports(len(PROTOCOLS) + len(own)) if port not in own)
        self.ports = {"PLAINTEXT": self.port, **dict(zip(PROTOCOLS, free, strict=False))}
        advertised = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **PROTOCOLS}
        settings = {
            "listeners": f"{advertised},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.server_pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
            "listener.name.ssl.ssl.client.auth": "none",
            "listener.name.mtls.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(LOGIN_MODULES),
        }
        for listener, protocol in PROTOCOLS.items():
            if protocol.startswith("SASL"):
                settings |= self.sasl_settings(f"listener.name.{listener.lower()}")
        for mechanism in LOGIN_MODULES:
            settings[f"listener.name.reauth.{mechanism.lower()}.connections.max.reauth.ms"] = str(REAUTH_MS)
        super().write_properties(settings | overrides)

    @staticmethod
    def sasl_settings(prefix: str) -> dict[str, str]:
        return {
            f"{prefix}.{mechanism.lower()}.sasl.jaas.config": f"org.apache.kafka.common.security.{module};"
            for mechanism, module in LOGIN_MODULES.items()
        }

    def start(self) -> None:
        super().start()
        try:
            self.add_scram_users()
        except BaseException:
            self.kill()
            raise

    def add_scram_users(self) -> None:
        """Kafka's tools cannot: formatting takes no comma in a value, and the rest costs a JVM for each credential."""
        with Wire(HOST, self.port) as wire:
            # Kafka takes a user only once in a request.
            for number, mechanism in enumerate(SCRAM_MECHANISMS, 1):
                salted = [salted_password(user, number, mechanism) for user in (SCRAM_USER, ESCAPED_USER)]
                answer = wire.ask(AlterUserScramCredentialsRequest(upsertions=salted), 0)
                assert not any(result.error_code for result in answer.results), answer
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.knows(SCRAM_USER, SCRAM_MECHANISMS[-1]):
            assert time.monotonic() < deadline, f"{self.name} does not learn of its users:\n{self.output()[-3000:]}"
            time.sleep(0.02)

    def knows(self, user: User, mechanism: str) -> bool:
        """Whether the broker has the credential; it gets it from the metadata log, a moment after the answer."""
        with Wire(HOST, self.ports["SASL_PLAINTEXT"]) as wire:
            wire.ask(SaslHandshakeRequest(mechanism), 1)
            answer = wire.ask(SaslAuthenticateRequest(f"n,,n={user.name},r=nonce".encode()), 2)
        return bool(answer.error_code == errors.NONE)


def salted_password(user: User, number: int, mechanism: str) -> ScramCredentialUpsertion:
    salt, digest = os.urandom(16), mechanism.removeprefix("SCRAM-").replace("-", "")
    salted = hashlib.pbkdf2_hmac(digest, user.password.encode(), salt, ITERATIONS)
    return ScramCredentialUpsertion(user.name, number, ITERATIONS, salt, salted)
