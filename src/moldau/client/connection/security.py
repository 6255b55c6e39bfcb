"""How connections are secured: TLS around the bytes, and a login before the first request.

Only clients that are told so import this, with all that TLS needs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.client.config import ClientConfig
from moldau.client.connection.sasl import BEARER, Login, login_maker
from moldau.client.errors import ClientError, ConfigError, TlsError
from moldau.security.keystores import StoreError, is_pem, read_key_store, read_trust_store

if TYPE_CHECKING:
    from moldau.client.connection.bearer import BearerSource

DONE, WANTS_READ, WANTS_WRITE = range(3)

_LOST = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

_PROTOCOLS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Security:
    """What a network does with each new connection."""

    def __init__(self, context: ssl.SSLContext | None, login: Callable[[], Login] | None) -> None:
        self._context = context
        self._login = login

    @property
    def uses_tls(self) -> bool:
        return self._context is not None

    @property
    def has_no_login(self) -> bool:
        """A handshake of TLS is all the authentication there is."""
        return self._login is None

    def new_login(self) -> Login | None:
        return None if self._login is None else self._login()

    def wrap(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """TLS on a connected socket; the handshake is still to be made."""
        assert self._context is not None
        return self._context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)

    def shake_hands(self, secured: socket.socket, name: str) -> int:
        """DONE, or for what is to be waited before the next try. Raises TlsError where there is no trust."""
        assert isinstance(secured, ssl.SSLSocket)
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            return WANTS_READ
        except ssl.SSLWantWriteError:
            return WANTS_WRITE
        except _LOST:
            raise  # the other side went away, and may be back: that is no question of trust
        except ssl.SSLCertVerificationError as error:
            raise TlsError(f"The certificate of {name} is not trusted: {error.verify_message}.") from None
        except ssl.SSLError as error:
            raise TlsError(f"No TLS connection to {name}: {_reason(error)}.") from None
        return DONE


def waits(error: OSError) -> bool:
    """Whether a read or write of TLS only has to wait."""
    return isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError)


def pending(secured: socket.socket) -> bool:
    """Whether more was decrypted than was read."""
    return isinstance(secured, ssl.SSLSocket) and secured.pending() > 0


def refusal(error: OSError, name: str) -> ClientError | None:
    """What a broker says against our side of TLS after the handshake, such as that a certificate is missing."""
    if isinstance(error, ssl.SSLError) and not isinstance(error, _LOST):
        return TlsError(f"{name} has ended the TLS connection: {_reason(error)}.")
    return None


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or error.strerror or "it was closed").partition(" (")[0].lower().replace("_", " ")


def read_security(config: ClientConfig) -> Security:
    """What the settings say; raises ConfigError."""
    protocol = config.get_text("security.protocol")
    login: Callable[[], Login] | None = None
    if protocol.startswith("SASL"):
        login = login_maker(
            config.get_text("sasl.mechanism"),
            config.get_optional("sasl.username"),
            config.get_optional("sasl.password"),
            config.get_optional("sasl.jaas.config"),
            _bearer_source(config),
        )
    return Security(_context(config) if protocol.endswith("SSL") else None, login)


def _bearer_source(config: ClientConfig) -> BearerSource | None:
    if config.get_text("sasl.mechanism") != BEARER:
        return None
    from moldau.client.connection.bearer import read_bearer_source

    return read_bearer_source(config)


def _context(config: ClientConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.get_text("ssl.endpoint.identification.algorithm").lower() == "https"
    names = [name.strip() for name in config.get_text("ssl.enabled.protocols").split(",") if name.strip()]
    unknown = [name for name in names if name not in _PROTOCOLS]
    if unknown or not names:
        raise ConfigError(f"ssl.enabled.protocols: {', '.join(unknown) or 'none'}; TLSv1.2 and TLSv1.3 are there.")
    context.minimum_version = min(_PROTOCOLS[name] for name in names)
    context.maximum_version = max(_PROTOCOLS[name] for name in names)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_trusted(context, config)
    _load_own(context, config)
    return context


def _load_trusted(context: ssl.SSLContext, config: ClientConfig) -> None:
    location = config.get_optional("ssl.truststore.location")
    trusted = config.get_optional("ssl.truststore.certificates")
    if location:
        trusted = _trusted_pem(location, config.get_optional("ssl.truststore.password"))
    if not trusted:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ConfigError(f"The trusted certificates cannot be read: {_reason(error)}.") from None


def _load_own(context: ssl.SSLContext, config: ClientConfig) -> None:
    location = config.get_optional("ssl.keystore.location")
    key, chain = config.get_optional("ssl.keystore.key"), config.get_optional("ssl.keystore.certificate.chain")
    password = config.get_optional("ssl.key.password")
    if location:
        store_password = config.get_optional("ssl.keystore.password")
        text, is_encrypted = _key_and_chain_pem(location, store_password, password)
        password = (password or store_password) if is_encrypted else None
    elif key and chain:
        text = f"{key}\n{chain}"
    elif key or chain:
        raise ConfigError(
            "ssl.keystore.key and ssl.keystore.certificate.chain belong together: one of them is missing."
        )
    else:
        return
    # The library reads files only. Nobody else may read this one, and it is gone before anybody could.
    handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        # Without a password that is given, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(path, password=password or "")
    except ssl.SSLError as error:
        raise ConfigError(
            f"The client's own key and certificate cannot be read: {_reason(error)}. An encrypted key needs"
            " ssl.key.password."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _trusted_pem(path: str, password: str | None) -> str:
    data = _read("ssl.truststore.location", path)
    if is_pem(data):
        return data.decode()
    try:
        return "".join(ssl.DER_cert_to_PEM_cert(one) for one in read_trust_store(data, path, password))
    except StoreError as error:
        raise ConfigError(f"ssl.truststore: {error}") from None


def _key_and_chain_pem(path: str, password: str | None, key_password: str | None) -> tuple[str, bool]:
    """The private key of a keystore and its certificates; whether the key is still encrypted."""
    data = _read("ssl.keystore.location", path)
    if is_pem(data):
        return data.decode(), b"ENCRYPTED" in data
    try:
        return read_key_store(data, path, password, key_password).pem(), False
    except StoreError as error:
        raise ConfigError(f"ssl.keystore: {error}") from None


def _read(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}.") from None
