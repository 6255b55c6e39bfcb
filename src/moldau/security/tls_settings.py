"""The `ssl.*` settings of one listener: its own where it has some, else those of all; and which go together.

What is wrong with a combination is said in Kafka's words. Nothing is opened here: whether the stores can be read shows
when they are.
"""

from __future__ import annotations

from typing import Final

from moldau.config.broker_config import LISTENER_PREFIX, BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.security.cipher_suites import CipherSuites, parse_cipher_suites
from moldau.security.principal_rules import PrincipalRules, parse_principal_rules

NONE: Final = "none"
REQUESTED: Final = "requested"
REQUIRED: Final = "required"
PEM: Final = "PEM"
STORE_TYPES: Final = ("JKS", "PKCS12", PEM)
PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
_CONTEXTS: Final = ("TLS", *PROTOCOLS)

ENCRYPTED_PROTOCOLS: Final = ("SSL", "SASL_SSL")
# Classes cannot be loaded here, and what they would do is not done.
_NOT_SERVED: Final = ("ssl.engine.factory.class", "ssl.provider")


class StoreSettings:
    """Where a key store or a trust store is. `texts` are PEM given in the settings themselves."""

    def __init__(self, kind: str, location: str | None, password: str | None, texts: tuple[str, ...]) -> None:
        self.kind = kind
        self.location = location
        self.password = password
        self.texts = texts

    @property
    def is_given(self) -> bool:
        return self.location is not None or bool(self.texts)


class TlsSettings:
    """Those of one listener. Raises ConfigError with a sentence."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._config = config
        self.listener = listener
        protocol = config.security_protocols.get(listener, listener)
        try:
            self._refuse_unserved()
            self.key_password = self._optional("ssl.key.password")
            self.key_store = self._key_store()
            self.trust_store = self._trust_store()
            self.client_auth = self._client_auth(protocol)
            self.protocols = self._protocols()
            self.cipher_suites = self._cipher_suites()
            self.verifies_hosts = self._verifies_hosts()
        except ConfigError as error:
            raise ConfigError(f"listener {listener}: {error.message}") from None
        self.names_principals = protocol == "SSL"
        self.allows_dn_changes = config.get_for_listener(listener, "ssl.allow.dn.changes") is True
        self.allows_san_changes = config.get_for_listener(listener, "ssl.allow.san.changes") is True
        self.principal_rules: PrincipalRules = parse_principal_rules(
            self._optional("ssl.principal.mapping.rules") or ""
        )

    def _optional(self, name: str) -> str | None:
        value = self._config.get_for_listener(self.listener, name)
        return value if isinstance(value, str) and value else None

    def _list(self, name: str) -> list[str]:
        value = self._config.get_for_listener(self.listener, name)
        return list(value) if isinstance(value, list) else []

    def _refuse_unserved(self) -> None:
        for name in _NOT_SERVED:
            value = self._optional(name)
            if value is not None:
                raise ConfigError(f"{name} is {value}, but this broker has OpenSSL alone. Leave it out.")

    def _store_type(self, name: str) -> str:
        kind = (self._optional(name) or "JKS").upper()
        if kind not in STORE_TYPES:
            raise ConfigError(f"{name} is {kind}, but stores can be {', '.join(STORE_TYPES)}.")
        return kind

    def _key_store(self) -> StoreSettings:
        kind = self._store_type("ssl.keystore.type")
        location, password = self._optional("ssl.keystore.location"), self._optional("ssl.keystore.password")
        key, chain = self._optional("ssl.keystore.key"), self._optional("ssl.keystore.certificate.chain")
        if kind == PEM:
            _check_pem_key_store(location, password, key, chain)
        else:
            _require(key is None, f"SSL private key can be specified only for PEM, but key store type is {kind}.")
            _require(
                chain is None, f"SSL certificate chain can be specified only for PEM, but key store type is {kind}."
            )
            _require(
                location is not None or password is None,
                "SSL key store is not specified, but key store password is specified.",
            )
            _require(
                location is None or password is not None,
                "SSL key store is specified, but key store password is not specified.",
            )
        return StoreSettings(kind, location, password, () if key is None or chain is None else (key, chain))

    def _trust_store(self) -> StoreSettings:
        kind = self._store_type("ssl.truststore.type")
        location, password = self._optional("ssl.truststore.location"), self._optional("ssl.truststore.password")
        certificates = self._optional("ssl.truststore.certificates")
        if certificates is not None:
            _require(
                kind == PEM,
                f"SSL trust store certificates can be specified only for PEM, but trust store type is {kind}.",
            )
            _require(location is None, "Both SSL trust store location and separate trust certificates are specified.")
        _require(kind != PEM or password is None, "SSL trust store password cannot be specified for PEM format.")
        _require(
            location is not None or password is None,
            "SSL trust store is not specified, but trust store password is specified.",
        )
        return StoreSettings(kind, location, password, () if certificates is None else (certificates,))

    def _client_auth(self, protocol: str) -> str:
        """Where clients log in as well, a certificate is only asked for when the listener's own setting says so."""
        name = "ssl.client.auth"
        if protocol == "SASL_SSL" and f"{LISTENER_PREFIX}{self.listener.lower()}.{name}" not in self._config.values:
            return NONE
        return self._optional(name) or NONE

    def _protocols(self) -> list[str]:
        names = self._list("ssl.enabled.protocols")
        unknown = [name for name in names if name not in PROTOCOLS]
        if unknown or not names:
            raise ConfigError(
                f"ssl.enabled.protocols: {', '.join(unknown) or 'none'} cannot be served; TLSv1.2 and TLSv1.3 can."
            )
        protocol = self._optional("ssl.protocol")
        if protocol is not None and protocol not in _CONTEXTS:
            raise ConfigError(f"ssl.protocol: {protocol} cannot be served; {', '.join(_CONTEXTS)} can.")
        return names

    def _cipher_suites(self) -> CipherSuites:
        """Versions for which no suite is left go."""
        suites = parse_cipher_suites(self._list("ssl.cipher.suites"), "TLSv1.3" in self.protocols)
        usable = {"TLSv1.2": bool(suites.tls_1_2), "TLSv1.3": suites.has_tls_1_3}
        self.protocols = [name for name in self.protocols if usable[name]]
        if not self.protocols:
            raise ConfigError("ssl.cipher.suites names no suite of a version that ssl.enabled.protocols names.")
        return suites

    def _verifies_hosts(self) -> bool:
        algorithm = self._optional("ssl.endpoint.identification.algorithm") or ""
        if algorithm.lower() not in ("", "https"):
            raise ConfigError(
                f"ssl.endpoint.identification.algorithm is {algorithm}, but it can be https, or empty for none."
            )
        return bool(algorithm)


def _check_pem_key_store(location: str | None, password: str | None, key: str | None, chain: str | None) -> None:
    _require(
        password is None,
        "SSL key store password cannot be specified with PEM format, only key password may be specified.",
    )
    _require(
        location is None or (key is None and chain is None),
        "Both SSL key store location and separate private key are specified.",
    )
    _require(key is None or chain is not None, "SSL private key is specified, but certificate chain is not specified.")
    _require(chain is None or key is not None, "SSL certificate chain is specified, but private key is not specified.")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)
