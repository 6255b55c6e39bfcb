"""Looks at the files that settings name, to check what these leave open: who can read them, and what is in them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.net.tls_contexts import read_stores, server_context
from moldau.security.der import Certificate, DerError, read_certificate
from moldau.security.distinguished_names import distinguished_name
from moldau.security.exposure.findings import Facts, StoreFacts
from moldau.security.tls_settings import ENCRYPTED_PROTOCOLS, TlsSettings


def gather_facts(config: BrokerConfig, path: str) -> Facts:
    names = dict.fromkeys([endpoint.name for endpoint in config.listeners] + config.controller_listener_names[:1])
    encrypted = [name for name in names if config.security_protocols.get(name, name) in ENCRYPTED_PROTOCOLS]
    stores = {name: _store_facts(config, name) for name in encrypted}
    log_dirs = {each: _mode_for_others(each) for each in dict.fromkeys([*config.log_dirs, config.metadata_log_dir])}
    found = {each: mode for each, mode in log_dirs.items() if mode is not None}
    return Facts(path, _mode(path), stores, found)


def _mode(path: str | None) -> int | None:
    try:
        return None if path is None else stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _mode_for_others(path: str) -> int | None:
    """Without what others may do where they do not even get to."""
    mode = _mode(path)
    above = [_mode(str(directory)) for directory in Path(os.path.realpath(path)).parents]
    is_closed = any(each is not None and not each & stat.S_IXOTH for each in above)
    return mode & ~stat.S_IRWXO if mode is not None and is_closed else mode


def _store_facts(config: BrokerConfig, listener: str) -> StoreFacts:
    try:
        settings = TlsSettings(config, listener)
    except ConfigError:
        return StoreFacts()  # what is wrong with the settings is told as that
    facts = StoreFacts(_mode(settings.key_store.location), trust_mode=_mode(settings.trust_store.location))
    try:
        stores = read_stores(settings)
        if stores.key_store is not None:
            own = read_certificate(stores.key_store.chain[0])
            facts = facts._replace(certificate=own, principal=_principal(settings, own))
        server_context(settings, stores)
    except ConfigError as error:
        return facts._replace(problem=error.message)
    return facts


def _principal(settings: TlsSettings, own: Certificate) -> str:
    if not settings.names_principals:
        return ""
    try:
        name = settings.principal_rules.principal_name(distinguished_name(own.subject))
    except DerError:
        return ""  # an odd certificate is told as that
    return f"User:{name}" if name else ""
