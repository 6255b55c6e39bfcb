"""The certificates of a node's listeners: loaded at the start, and again when their files or settings change.

Files are looked at twice a second, so that a renewed certificate is in use within a second after it was written without
a word from anybody: half of it is left for reading and checking. New connections use the new one, those that are there
live on. What cannot be used, or is somebody else's, is refused, and the old one stays. Kafka (SslFactory,
DynamicSslConfig) looks at files only when a config record comes.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from collections.abc import Iterable
from typing import Final

from moldau.config.broker_config import BrokerConfig, split_listener_key
from moldau.config.definitions import ConfigError
from moldau.net.tls_contexts import (
    ClientTls,
    ServerTls,
    Stores,
    check_handshake,
    client_context,
    read_stores,
    server_context,
)
from moldau.security.tls_settings import ENCRYPTED_PROTOCOLS, TlsSettings

LOOK_S: Final = 0.5
# A file that is not there, or that nobody may look at.
_NO_FILE: Final = (0, 0, 0)

log = logging.getLogger("moldau.server")

Stamp = tuple[object, ...]


class Material:
    """What one listener uses, made from its settings and files at one moment."""

    def __init__(self, config: BrokerConfig, listener: str, has_server: bool, has_client: bool) -> None:
        self.listener = listener
        # Taken before the files are read: a file that changes meanwhile is looked at again.
        self.settings = TlsSettings(config, listener)
        self.stamp = stamp_of(config, listener, self.settings)
        self.stores: Stores = read_stores(self.settings)
        self.server: ssl.SSLContext | None = server_context(self.settings, self.stores) if has_server else None
        self.client: ssl.SSLContext | None = client_context(self.settings, self.stores) if has_client else None

    def check_both_sides(self, other: Material) -> None:
        """That brokers which use the one reach those that use the other; for the inter-broker listener."""
        if self.server is None:
            return
        client = client_context(other.settings, other.stores, verifies_hosts=False)
        reason = check_handshake(self.server, client)
        if reason is not None:
            raise ConfigError(
                f"listener {self.listener}: brokers could not connect to each other with these key and trust stores:"
                f" {reason}."
            )


def stamp_of(config: BrokerConfig, listener: str, settings: TlsSettings) -> Stamp:
    """Differs when the settings or the files do."""
    files = [file_stamp(store.location) for store in (settings.key_store, settings.trust_store)]
    return (*files, *sorted(_ssl_values(config, listener)))


def file_stamp(path: str | None) -> tuple[int, int, int]:
    if path is None:
        return _NO_FILE
    try:
        found = os.stat(path)
    except OSError:
        return _NO_FILE
    return found.st_mtime_ns, found.st_size, found.st_ino


def _ssl_values(config: BrokerConfig, listener: str) -> Iterable[tuple[str, str]]:
    for name, text in config.values.items():
        whose, key = split_listener_key(name) or ("", name)
        if whose in ("", listener.lower()) and key.startswith("ssl."):
            yield name, text


class Certificates:
    """Those of all listeners that speak TLS, and of those that this node connects to. ConfigError with a sentence."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._inter_broker = config.inter_broker_listener_name if config.is_broker else ""
        served = {endpoint.name for endpoint in config.listeners}
        called = {self._inter_broker, *config.controller_listener_names[:1]}
        self._roles = {
            name: (name in served, name in called)
            for name in sorted(served | called)
            if config.security_protocols.get(name, name) in ENCRYPTED_PROTOCOLS
        }
        self._materials: dict[str, Material] = {}
        self._servers: dict[str, ServerTls] = {}
        self._clients: dict[str, ClientTls] = {}
        self._refused: dict[str, Stamp] = {}
        self._is_closed = False
        self._look = threading.Event()
        self._thread: threading.Thread | None = None
        for name in self._roles:
            self._use(self._make(config, name))

    @property
    def are_there(self) -> bool:
        return bool(self._materials)

    def server(self, listener: str) -> ServerTls | None:
        return self._servers.get(listener)

    def client(self, listener: str) -> ClientTls | None:
        return self._clients.get(listener)

    def _make(self, config: BrokerConfig, name: str) -> Material:
        material = Material(config, name, *self._roles[name])
        if name == self._inter_broker:
            material.check_both_sides(material)
        return material

    def _use(self, material: Material) -> None:
        name = material.listener
        self._materials[name] = material
        if material.server is not None:
            expires_s = material.stores.expires_s()
            if name in self._servers:
                self._servers[name].replace(material.settings, material.server, expires_s)
            else:
                self._servers[name] = ServerTls(material.settings, material.server, expires_s)
        if material.client is not None:
            if name in self._clients:
                self._clients[name].replace(material.settings, material.client)
            else:
                self._clients[name] = ClientTls(material.settings, material.client)

    # Changes

    def check(self, proposed: BrokerConfig) -> None:
        """Raises ConfigError where a change of configs would not be taken; nothing changes."""
        for name, material in self._materials.items():
            settings = _settings_or_refusal(proposed, name)
            if stamp_of(proposed, name, settings) != material.stamp:
                try:
                    self._renewed(proposed, material)
                except ConfigError as error:
                    raise _refusal(error) from None

    def _renewed(self, config: BrokerConfig, old: Material) -> Material:
        new = Material(config, old.listener, *self._roles[old.listener])
        check_replaceable(old, new)
        if old.listener == self._inter_broker:
            new.check_both_sides(new)
            new.check_both_sides(old)
            old.check_both_sides(new)
        return new

    def apply_config(self, config: BrokerConfig) -> None:
        """The settings may have changed: somebody looks at once."""
        self._config = config
        self._look.set()

    def renew(self) -> None:
        """Looks at settings and files, and uses what is new and good."""
        config = self._config
        for name, old in list(self._materials.items()):
            try:
                settings = TlsSettings(config, name)
                stamp = stamp_of(config, name, settings)
                if stamp == old.stamp or stamp == self._refused.get(name):
                    continue
                self._refused[name] = stamp
                new = self._renewed(config, old)
            except ConfigError as error:
                log.error("the certificates of listener %s stay as they were: %s", name, error.message)
                continue
            self._use(new)
            self._refused.pop(name, None)
            own = new.stores.own_name() if new.stores.key_store is not None else "no certificate of its own"
            log.info("listener %s uses new certificates: %s", name, own)

    def watch(self) -> None:
        """Begins to look for changes."""
        if self._materials and self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="certificates", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        while not self._is_closed:
            self._look.wait(LOOK_S)
            self._look.clear()
            if self._is_closed:
                return
            try:
                self.renew()
            except Exception:
                log.exception("looking for new certificates failed")

    def close(self) -> None:
        self._is_closed = True
        self._look.set()


def check_replaceable(old: Material, new: Material) -> None:
    """Whether the stores of a listener that runs may be replaced by these, in Kafka's words."""
    before, after = old.stores, new.stores
    if before.trusted is None and after.trusted is not None:
        raise ConfigError("Cannot add SSL truststore to an existing listener for which no truststore was configured.")
    if before.key_store is None or after.key_store is None:
        if before.key_store is not None:
            raise ConfigError("Cannot remove the SSL keystore of an existing listener.")
        if after.key_store is not None:
            raise ConfigError("Cannot add SSL keystore to an existing listener for which no keystore was configured.")
        return
    if before.key_store.entries != after.key_store.entries:
        raise ConfigError(
            f"Keystore entries do not match, existing store contains {before.key_store.entries} entries, new store"
            f" contains {after.key_store.entries} entries"
        )
    if not new.settings.allows_dn_changes and before.own_name() != after.own_name():
        raise ConfigError(
            f"Keystore DistinguishedName does not match: existing={before.own_name()}, new={after.own_name()}"
        )
    if not new.settings.allows_san_changes and not before.own_alternative_names() <= after.own_alternative_names():
        raise ConfigError("Keystore SubjectAltNames do not match: the new certificate lacks some of the existing one")


def _settings_or_refusal(config: BrokerConfig, name: str) -> TlsSettings:
    try:
        return TlsSettings(config, name)
    except ConfigError as error:
        raise _refusal(error) from None


def _refusal(error: ConfigError) -> ConfigError:
    return ConfigError(f"Validation of dynamic config update of SSLFactory failed: {error.message}")
