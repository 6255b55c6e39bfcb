"""Findings about what is around listeners: files that others can read, the metrics page, limits, misspelt settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from moldau.config.broker_config import BrokerConfig, find_broker_key, split_listener_key
from moldau.config.own_keys import METRICS_LISTENER_KEY, split_address
from moldau.security.exposure.findings import NOTE, SEVERE, WARNING, Facts, Finding
from moldau.security.exposure.listeners import EVERYWHERE, THIS_MACHINE, ListenerView, key_in_use, reach_of
from moldau.security.exposure.tls import KEY_STORE_KEY, TRUST_STORE_KEYS

OTHERS_READ: Final = 0o004
GROUP_READS: Final = 0o040
OTHERS_WRITE: Final = 0o002
GROUP_WRITES: Final = 0o020
OTHERS_ENTER: Final = 0o001
UNLIMITED: Final = 0x7FFFFFFF
_SECRETS: Final = re.compile(r"password|secret|jaas|ssl\.keystore\.key$|\.key$")
_ABOUT_SECURITY: Final = re.compile(
    r"(listener\.name\.[^.]+\.)?(.*\.)?(ssl|sasl|security|authori[sz]er|super|allow|delegation|listener)[._-].*", re.I
)


def check_surroundings(config: BrokerConfig, listeners: list[ListenerView], facts: Facts) -> Iterator[Finding]:
    yield from _settings_file(config, facts)
    for view in listeners:
        yield from _key_store(config, view, facts)
        yield from _trust_store(config, view, facts)
        yield from _advertised_farther(view)
    yield from _log_directories(config, facts)
    yield from _metrics_page(config)
    yield from _limits(config, listeners)
    yield from _unknown(config)


def _settings_file(config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    mode = facts.file_mode
    if mode is None:
        return
    if mode & (OTHERS_WRITE | GROUP_WRITES):
        whom = "Everybody on this machine" if mode & OTHERS_WRITE else "The file's group"
        text = f"{whom} can change {facts.file}: `chmod 600 {facts.file}`."
        yield Finding(SEVERE if mode & OTHERS_WRITE else WARNING, "settings-writable", "", text)
    secrets = sorted(name for name, value in config.values.items() if value and _SECRETS.search(name))
    if secrets and mode & (OTHERS_READ | GROUP_READS):
        whom = "Everybody on this machine" if mode & OTHERS_READ else "The file's group"
        text = f"{whom} can read {facts.file}, which holds secrets ({', '.join(secrets)}): `chmod 600 {facts.file}`."
        yield Finding(SEVERE if mode & OTHERS_READ else NOTE, "settings-readable", secrets[0], text)


def _key_store(config: BrokerConfig, view: ListenerView, facts: Facts) -> Iterator[Finding]:
    store = facts.stores.get(view.name)
    if store is None or store.mode is None:
        return
    location = config.get_for_listener(view.name, KEY_STORE_KEY)
    if store.mode & (OTHERS_READ | OTHERS_WRITE):
        text = f"Everybody on this machine can read the private key in {location}: `chmod 600 {location}`."
        yield Finding(SEVERE, "key-readable", key_in_use(config, view.name, KEY_STORE_KEY), text, view.name)
    elif store.mode & GROUP_READS:
        text = f"The group of {location} can read the private key in it."
        yield Finding(NOTE, "key-readable-by-group", key_in_use(config, view.name, KEY_STORE_KEY), text, view.name)


def _trust_store(config: BrokerConfig, view: ListenerView, facts: Facts) -> Iterator[Finding]:
    """Certificates are no secret; who may add one is who decides whom to let in."""
    mode = facts.stores[view.name].trust_mode if view.name in facts.stores else None
    if mode is None or not mode & (OTHERS_WRITE | GROUP_WRITES):
        return
    location = config.get_for_listener(view.name, TRUST_STORE_KEYS[0])
    whom = "Everybody on this machine" if mode & OTHERS_WRITE else "The file's group"
    text = f"{whom} can change whose certificates are good, in {location}: `chmod 644 {location}`."
    severity = SEVERE if mode & OTHERS_WRITE else WARNING
    yield Finding(severity, "trust-writable", key_in_use(config, view.name, TRUST_STORE_KEYS[0]), text, view.name)


def _log_directories(config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    for path, mode in facts.log_dirs.items():
        if not mode & OTHERS_ENTER:
            continue
        has_records, has_metadata = path in config.log_dirs, path == config.metadata_log_dir
        key = "log.dirs" if has_records else "metadata.log.dir"
        parts = ["records"] if has_records else []
        parts += ["metadata, from which passwords of SCRAM can be guessed"] if has_metadata else []
        text = f"Everybody on this machine can get into {path} and read {' and '.join(parts)}: `chmod 700 {path}`."
        yield Finding(WARNING, "logs-readable", key, text)


def _advertised_farther(view: ListenerView) -> Iterator[Finding]:
    if view.advertised:
        text = f"{view.address} is advertised as {view.advertised}: it counts as reached from {view.reach}, "
        text += "for something has to forward to it that others reach."
        yield Finding(NOTE, "advertised-farther", "advertised.listeners", text, view.name)


def _metrics_page(config: BrokerConfig) -> Iterator[Finding]:
    address = config.get_str(METRICS_LISTENER_KEY)
    if not address:
        return
    reach = reach_of(split_address(address)[0])
    if reach != THIS_MACHINE:
        text = "The page of metrics tells topics, users and groups to whoever asks, over HTTP and without a login."
        severity = WARNING if reach == EVERYWHERE else NOTE
        yield Finding(severity, "open-metrics", METRICS_LISTENER_KEY, text)


def _limits(config: BrokerConfig, listeners: list[ListenerView]) -> Iterator[Finding]:
    """Connections count from their first moment, before anybody has logged in."""
    exposed = [view for view in listeners if view.reach == EVERYWHERE]
    if not exposed or config.get_int("max.connections.per.ip") < UNLIMITED:
        return
    unlimited = [
        view.name for view in exposed if config.get_for_listener(view.name, "max.connections") in (UNLIMITED, None)
    ]
    if unlimited:
        text = f"Who can reach {' and '.join(unlimited)} can open connections without an end, before any login."
        yield Finding(WARNING, "unlimited-connections", "max.connections.per.ip", text)


def _unknown(config: BrokerConfig) -> Iterator[Finding]:
    """A promise of safety with a misspelt name is none."""
    names = {endpoint.name.lower() for endpoint in config.listeners}
    names |= {config.inter_broker_listener_name.lower(), *(one.lower() for one in config.controller_listener_names)}
    for name in config.values:
        prefixed = split_listener_key(name)
        if prefixed is not None and prefixed[0] not in names:
            text = f"{name} is for a listener {prefixed[0]}, which this node does not have: it has no effect."
            yield Finding(WARNING, "unknown-listener", name, text)
        elif find_broker_key(name) is None and name not in ("super.users", "allow.everyone.if.no.acl.found"):
            if _ABOUT_SECURITY.fullmatch(name):
                text = f"There is no setting {name}: it has no effect. Is it misspelt?"
                yield Finding(WARNING, "unknown-setting", name, text)
