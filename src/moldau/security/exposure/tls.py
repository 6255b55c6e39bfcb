"""Findings about TLS: versions, ciphers, certificates, whom nodes trust, and what goes without it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.config.listeners import is_every_address, is_loopback
from moldau.security.cipher_suites import parse_cipher_suites
from moldau.security.der import Certificate, DerError
from moldau.security.exposure.findings import NOTE, SEVERE, WARNING, Facts, Finding
from moldau.security.exposure.listeners import (
    BROKERS,
    CLIENT_AUTH_KEY,
    CONTROLLERS,
    PROTOCOL_MAP_KEY,
    THIS_MACHINE,
    ListenerView,
    key_in_use,
    own_key,
)
from moldau.security.tls_settings import PROTOCOLS, REQUESTED, REQUIRED

KEY_STORE_KEY: Final = "ssl.keystore.location"
TRUST_STORE_KEYS: Final = ("ssl.truststore.location", "ssl.truststore.certificates")
PROTOCOLS_KEY: Final = "ssl.enabled.protocols"
CIPHERS_KEY: Final = "ssl.cipher.suites"
HOSTS_KEY: Final = "ssl.endpoint.identification.algorithm"
SOON_S: Final = 30 * 86400
RSA_BITS_MIN: Final = 2048
BROKEN_CIPHERS: Final = ("_NULL_", "_anon_", "_RC4_", "_DES_", "_3DES_", "_EXPORT_", "_MD5")
_METADATA_IN_THE_CLEAR: Final = (
    "Metadata goes between controllers and brokers as it is, with users' credentials and ACLs."
)
_NAMES_NOT_COMPARED: Final = (
    "Nodes do not compare names: whoever has any trusted certificate can be taken for a node in between."
)
_OLD_SIGNATURES: Final = {
    "1.2.840.113549.1.1.4": "MD5",
    "1.2.840.113549.1.1.5": "SHA-1",
    "1.2.840.10045.4.1": "SHA-1",
}


def check_tls(config: BrokerConfig, listeners: list[ListenerView], facts: Facts, now_s: int) -> Iterator[Finding]:
    for view in listeners:
        if not view.is_encrypted:
            yield from _unencrypted(view)
            continue
        yield from _versions(config, view)
        yield from _ciphers(config, view)
        yield from _trust(config, view)
        yield from _host_names(config, view)
        store = facts.stores.get(view.name)
        if store is not None and store.certificate is not None:
            yield from _certificate(config, view, store.certificate, now_s)
    yield from _controllers_elsewhere(config, listeners)


def _controllers_elsewhere(config: BrokerConfig, listeners: list[ListenerView]) -> Iterator[Finding]:
    """A node that is no controller goes to the controllers' listener all the same."""
    name = next(iter(config.controller_listener_names), "")
    hosts = [voter.host for voter in config.voters] + [host for host, _ in config.bootstrap_servers]
    if not name or any(view.name == name for view in listeners) or all(is_loopback(host) for host in hosts):
        return
    if not config.security_protocols.get(name, name).endswith("SSL"):
        yield Finding(WARNING, "unencrypted-metadata", PROTOCOL_MAP_KEY, _METADATA_IN_THE_CLEAR, name)
    elif not config.get_for_listener(name, HOSTS_KEY):
        yield Finding(WARNING, "no-host-names", key_in_use(config, name, HOSTS_KEY), _NAMES_NOT_COMPARED, name)


def _unencrypted(view: ListenerView) -> Iterator[Finding]:
    """What is open to everybody is told as that; here it is what passes by."""
    if view.reach == THIS_MACHINE:
        return
    if BROKERS in view.used_by:
        text = "Records go between brokers as they are: who can listen reads and who is in between changes them."
        yield Finding(WARNING, "unencrypted-replication", PROTOCOL_MAP_KEY, text, view.name)
    elif CONTROLLERS in view.used_by:
        yield Finding(WARNING, "unencrypted-metadata", PROTOCOL_MAP_KEY, _METADATA_IN_THE_CLEAR, view.name)
    elif not view.mechanisms:
        text = "Nothing that clients send and receive is encrypted."
        yield Finding(NOTE, "unencrypted-clients", PROTOCOL_MAP_KEY, text, view.name)


def _enabled(config: BrokerConfig, view: ListenerView, key: str) -> list[str]:
    found = config.get_for_listener(view.name, key)
    return list(found) if isinstance(found, list) else []


def _versions(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    old = [name for name in _enabled(config, view, PROTOCOLS_KEY) if name not in PROTOCOLS]
    if old:
        text = f"{', '.join(old)} can be broken. This broker does not start with it; leave it out."
        yield Finding(SEVERE, "old-tls", key_in_use(config, view.name, PROTOCOLS_KEY), text, view.name)


def _ciphers(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    key = key_in_use(config, view.name, CIPHERS_KEY)
    suites = _enabled(config, view, CIPHERS_KEY)
    broken = [name for name in suites if any(mark in f"{name}_" for mark in BROKEN_CIPHERS)]
    lasting = [name for name in suites if "_RSA_WITH_" in name and "DHE_" not in name and name not in broken]
    chained = [name for name in suites if "_CBC_" in name and name not in broken and name not in lasting]
    if broken:
        text = f"{', '.join(broken)} protects nothing, or nearly so. This broker does not start with it; leave it out."
        yield Finding(SEVERE, "broken-ciphers", key, text, view.name)
    if lasting:
        text = f"{', '.join(lasting)} has no forward secrecy: who gets the key later reads what was recorded before."
        yield Finding(WARNING, "no-forward-secrecy", key, text, view.name)
    if chained:
        text = f"{', '.join(chained)} is of the kind that padding attacks were made for; AES_GCM is not."
        yield Finding(WARNING, "weak-ciphers", key, text, view.name)
    if suites and not broken:
        try:
            parse_cipher_suites(suites, "TLSv1.3" in _enabled(config, view, PROTOCOLS_KEY))
        except ConfigError as error:
            yield Finding(SEVERE, "does-not-start", key, f"A node does not start with this: {error.message}", view.name)


def _trust(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    has_store = any(config.get_for_listener(view.name, key) for key in TRUST_STORE_KEYS)
    key = key_in_use(config, view.name, TRUST_STORE_KEYS[0])
    if view.client_auth in (REQUESTED, REQUIRED) and not has_store:
        text = "Without a trust store every certificate of any public authority is good to get in."
        yield Finding(view.scaled(SEVERE), "trusts-public-authorities", key, text, view.name)
    if view.protocol == "SASL_SSL" and config.get(CLIENT_AUTH_KEY) in (REQUESTED, REQUIRED):
        own = own_key(view.name, CLIENT_AUTH_KEY)
        if own not in config.values:
            text = f"{CLIENT_AUTH_KEY} does not count for a listener with logins: nobody is asked for a certificate."
            yield Finding(WARNING, "client-auth-without-effect", own, text, view.name)


def _host_names(config: BrokerConfig, view: ListenerView) -> Iterator[Finding]:
    if CONTROLLERS not in view.used_by and BROKERS not in view.used_by:
        return
    if config.get_for_listener(view.name, HOSTS_KEY):
        return
    severity = NOTE if view.reach == THIS_MACHINE else WARNING
    yield Finding(severity, "no-host-names", key_in_use(config, view.name, HOSTS_KEY), _NAMES_NOT_COMPARED, view.name)


def _certificate(config: BrokerConfig, view: ListenerView, own: Certificate, now_s: int) -> Iterator[Finding]:
    key = key_in_use(config, view.name, KEY_STORE_KEY)
    try:
        begins_s, ends_s = own.valid_seconds()
        bits, signature = own.rsa_bits(), _OLD_SIGNATURES.get(own.signature_algorithm())
        names = own.host_names()
    except DerError as error:
        yield Finding(WARNING, "odd-certificate", key, f"The certificate cannot be looked into: {error}.", view.name)
        return
    if ends_s <= now_s:
        text = "The certificate has expired: clients refuse it."
        yield Finding(SEVERE, "certificate-expired", key, text, view.name)
    elif begins_s > now_s:
        text = "The certificate is not valid yet: clients refuse it."
        yield Finding(SEVERE, "certificate-not-valid-yet", key, text, view.name)
    elif ends_s - now_s < SOON_S:
        text = f"The certificate expires in {_days(ends_s - now_s)}."
        yield Finding(WARNING, "certificate-expires", key, text, view.name)
    if bits is not None and bits < RSA_BITS_MIN:
        text = f"The certificate's RSA key has {bits} bits; {RSA_BITS_MIN} is the least that is held to be safe."
        yield Finding(SEVERE, "short-key", key, text, view.name)
    if signature is not None:
        text = f"The certificate is signed with {signature}, which can be forged; clients begin to refuse it."
        yield Finding(WARNING, "old-signature", key, text, view.name)
    missing = [host for host in advertised_hosts(config, view) if not covers(names, host)]
    if missing:
        text = f"The certificate does not name {', '.join(missing)} (it names {', '.join(names) or 'no host'}): "
        text += "who compares names refuses it, and who does not can be deceived."
        yield Finding(WARNING, "certificate-lacks-host", key, text, view.name)


def _days(duration_s: int) -> str:
    days = duration_s // 86400
    return "less than a day" if days < 1 else "a day" if days == 1 else f"{days} days"


def advertised_hosts(config: BrokerConfig, view: ListenerView) -> list[str]:
    """The names by which others look for this listener."""
    hosts = [one.host for one in config.advertised_listeners if one.name == view.name]
    if CONTROLLERS in view.used_by and config.controller_listener_names[:1] == [view.name]:
        hosts += [voter.host for voter in config.voters if voter.id == config.node_id]
    return [host for host in dict.fromkeys(hosts) if not is_every_address(host)]


def covers(names: list[str], host: str) -> bool:
    """Whether a certificate with these names is good for the host; `*.` stands for one label."""
    try:
        return str(ipaddress.ip_address(host)) in names
    except ValueError:
        pass
    wanted = host.lower().rstrip(".")
    first, dot, rest = wanted.partition(".")
    return wanted in names or bool(first and dot and f"*.{rest}" in names)
