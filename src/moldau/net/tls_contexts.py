"""Makes OpenSSL's contexts from a listener's settings: one for its server side, one for nodes that connect to it."""

from __future__ import annotations

import contextlib
import errno
import os
import ssl
import stat
import tempfile
from typing import Final

from moldau.config.definitions import ConfigError
from moldau.net.handshakes import Handshake, reason_text
from moldau.security.der import DerError, read_certificate
from moldau.security.distinguished_names import distinguished_name
from moldau.security.keystores import KeyStore, StoreError, is_pem, pem_key_store, read_key_store, read_trust_store
from moldau.security.tls_settings import PEM, REQUESTED, REQUIRED, StoreSettings, TlsSettings

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_HANDSHAKE_ROUNDS_MAX: Final = 10
STORE_BYTES_MAX: Final = 16 << 20
ANONYMOUS: Final = "User:ANONYMOUS"


class Stores:
    """What was in a listener's stores when they were read."""

    def __init__(self, key_store: KeyStore | None, trusted: list[bytes] | None) -> None:
        self.key_store = key_store
        self.trusted = trusted

    def own_name(self) -> str:
        assert self.key_store is not None
        return distinguished_name(read_certificate(self.key_store.chain[0]).subject)

    def own_alternative_names(self) -> frozenset[tuple[int, bytes]]:
        assert self.key_store is not None
        return read_certificate(self.key_store.chain[0]).alternative_names()

    def expires_s(self) -> int | None:
        """When the first certificate of the own chain is over, in seconds of the wall clock; None if nobody knows."""
        if self.key_store is None:
            return None
        try:
            return min(read_certificate(certificate).valid_seconds()[1] for certificate in self.key_store.chain)
        except DerError:
            return None


def read_stores(settings: TlsSettings) -> Stores:
    """Opens the files; ConfigError with a sentence."""
    try:
        stores = Stores(_read_key_store(settings), _read_trust_store(settings.trust_store))
        if stores.key_store is not None:
            stores.own_name()
            stores.own_alternative_names()
    except StoreError as error:
        raise ConfigError(f"listener {settings.listener}: {error}") from None
    except DerError as error:
        raise ConfigError(f"listener {settings.listener}: the own certificate cannot be read: {error}.") from None
    return stores


def _read_key_store(settings: TlsSettings) -> KeyStore | None:
    store = settings.key_store
    if store.texts:
        return pem_key_store("\n".join(store.texts), "the text of ssl.keystore.key and ssl.keystore.certificate.chain")
    if store.location is None:
        return None
    data = _read_file("ssl.keystore", store)
    return read_key_store(data, store.location, store.password, settings.key_password)


def _read_trust_store(store: StoreSettings) -> list[bytes] | None:
    if store.texts:
        return read_trust_store(store.texts[0].encode(), "the text of ssl.truststore.certificates", None)
    if store.location is None:
        return None
    return read_trust_store(_read_file("ssl.truststore", store), store.location, store.password)


def _read_regular_file(path: str) -> bytes:
    """A name that comes with a change of configs may be that of a device without an end, or of a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > STORE_BYTES_MAX:
            raise OSError(errno.EINVAL, f"it is not a file of at most {STORE_BYTES_MAX} bytes")
        return file.read(STORE_BYTES_MAX)


def _read_file(setting: str, store: StoreSettings) -> bytes:
    assert store.location is not None
    try:
        data = _read_regular_file(store.location)
    except OSError as error:
        raise StoreError(f"{setting}.location: {store.location} cannot be read: {error.strerror}.") from None
    if is_pem(data) != (store.kind == PEM):
        actual = "PEM" if is_pem(data) else "not PEM"
        raise StoreError(f"{setting}.type is {store.kind}, but {store.location} is {actual}.")
    return data


def server_context(settings: TlsSettings, stores: Stores) -> ssl.SSLContext:
    """For those who connect to the listener."""
    if stores.key_store is None:
        raise ConfigError(
            f"listener {settings.listener} has no key store, so nobody could connect to it. Set ssl.keystore.location,"
            " ssl.keystore.password and ssl.keystore.type, or ssl.keystore.key and ssl.keystore.certificate.chain."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_up(context, settings)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_TICKET
    # In TLS 1.3 every handshake looks at the certificates anew. In TLS 1.2 OpenSSL resumes a session by its id, which
    # Python cannot forbid: for two hours, and only with this context, which new stores replace. So whoever was removed
    # from the trust store is out; the end of a certificate's time may be noticed late.
    context.num_tickets = 0
    if settings.client_auth in (REQUESTED, REQUIRED):
        context.verify_mode = ssl.CERT_REQUIRED if settings.client_auth == REQUIRED else ssl.CERT_OPTIONAL
        _load_trusted(context, settings, stores, ssl.Purpose.CLIENT_AUTH)
    _load_own(context, settings, stores.key_store)
    return context


def client_context(settings: TlsSettings, stores: Stores, verifies_hosts: bool | None = None) -> ssl.SSLContext:
    """For this node when it connects to others."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_up(context, settings)
    context.check_hostname = settings.verifies_hosts if verifies_hosts is None else verifies_hosts
    _load_trusted(context, settings, stores, ssl.Purpose.SERVER_AUTH)
    if stores.key_store is not None:
        _load_own(context, settings, stores.key_store)
    return context


def _set_up(context: ssl.SSLContext, settings: TlsSettings) -> None:
    context.minimum_version = min(_VERSIONS[name] for name in settings.protocols)
    context.maximum_version = max(_VERSIONS[name] for name in settings.protocols)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A certificate that is trusted is trusted, whoever has signed it: Java's trust anchors need not be roots.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.cipher_suites.tls_1_2:
        try:
            context.set_ciphers(settings.cipher_suites.tls_1_2)
        except ssl.SSLError:
            raise ConfigError(
                f"listener {settings.listener}: OpenSSL has none of the suites that ssl.cipher.suites names."
            ) from None


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings, stores: Stores, purpose: ssl.Purpose) -> None:
    if stores.trusted is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata="".join(ssl.DER_cert_to_PEM_cert(one) for one in stores.trusted))
    except (ssl.SSLError, ValueError) as error:
        reason = reason_text(error) if isinstance(error, ssl.SSLError) else str(error)
        raise ConfigError(f"listener {settings.listener}: the trusted certificates cannot be read: {reason}.") from None


def _load_own(context: ssl.SSLContext, settings: TlsSettings, store: KeyStore) -> None:
    # The library reads files only. Nobody else may read this one, and it is gone before anybody could.
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(store.pem())
        # Without a password that is given, OpenSSL would ask for one on the terminal.
        password = (settings.key_password or settings.key_store.password or "") if store.is_encrypted else ""
        context.load_cert_chain(path, password=password)
    except (ssl.SSLError, ValueError) as error:
        reason = reason_text(error) if isinstance(error, ssl.SSLError) else str(error)
        raise ConfigError(
            f"listener {settings.listener}: the private key and its certificate cannot be used: {reason}. They must"
            " belong together, and an encrypted key needs ssl.key.password."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


class ServerTls:
    """What a listener needs for new connections; the context may be replaced at any time, from any thread."""

    def __init__(self, settings: TlsSettings, context: ssl.SSLContext, expires_s: int | None = None) -> None:
        self.replace(settings, context, expires_s)

    def replace(self, settings: TlsSettings, context: ssl.SSLContext, expires_s: int | None = None) -> None:
        """`expires_s` is when the listener's own certificate is over, by the wall clock."""
        self.settings = settings
        self.context = context
        self.expires_s = expires_s

    def principal(self, handshake: Handshake) -> str | None:
        """Whose connection it is; None for a certificate that no rule gives a name."""
        certificate = handshake.peer_certificate() if self.settings.names_principals else None
        if certificate is None:
            return ANONYMOUS
        try:
            name = distinguished_name(read_certificate(certificate).subject)
        except ValueError:
            return None
        mapped = self.settings.principal_rules.principal_name(name)
        return None if mapped is None else f"User:{mapped}"


class ClientTls:
    """What connections to other nodes need; the context may be replaced at any time, from any thread."""

    def __init__(self, settings: TlsSettings, context: ssl.SSLContext) -> None:
        self.replace(settings, context)

    def replace(self, settings: TlsSettings, context: ssl.SSLContext) -> None:
        self.settings = settings
        self.context = context


def check_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Why the two cannot talk to each other, tried in memory; None if they can."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        (client.wrap_bio(to_client, to_server, server_hostname="localhost"), "client"),
        (server.wrap_bio(to_server, to_client, server_side=True), "server"),
    ]
    left = list(sides)
    for _ in range(_HANDSHAKE_ROUNDS_MAX):
        for side in list(left):
            try:
                side[0].do_handshake()
                left.remove(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:
                return f"the {side[1]} does not trust the certificate: {error.verify_message}"
            except ssl.SSLError as error:
                return f"the {side[1]} says: {reason_text(error)}"
        if not left:
            return None
    return "the handshake does not end"
