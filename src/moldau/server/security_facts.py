"""Looks at the files that settings name, to check what these leave open: who can read them, and what is in them."""

from __future__ import annotations

import os
import stat

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.net.tls_contexts import read_stores, server_context
from moldau.security.der import read_certificate
from moldau.security.exposure.findings import Facts, StoreFacts
from moldau.security.tls_settings import ENCRYPTED_PROTOCOLS, TlsSettings


def gather_facts(config: BrokerConfig, path: str) -> Facts:
    encrypted = [endpoint.name for endpoint in config.listeners if endpoint.protocol in ENCRYPTED_PROTOCOLS]
    return Facts(path, _mode(path), {name: _store_facts(config, name) for name in encrypted})


def _mode(path: str | None) -> int | None:
    try:
        return None if path is None else stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _store_facts(config: BrokerConfig, listener: str) -> StoreFacts:
    try:
        settings = TlsSettings(config, listener)
    except ConfigError:
        return StoreFacts()  # what is wrong with the settings is told as that
    mode = _mode(settings.key_store.location)
    try:
        stores = read_stores(settings)
        own = None if stores.key_store is None else read_certificate(stores.key_store.chain[0])
    except ConfigError as error:
        return StoreFacts(mode, error.message)
    try:
        server_context(settings, stores)
    except ConfigError as error:
        return StoreFacts(mode, error.message, own)
    return StoreFacts(mode, "", own)
