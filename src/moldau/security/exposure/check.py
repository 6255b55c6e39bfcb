"""Checks the settings of a node: every finding, the worst first. A pure function of settings, facts and the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moldau.config.broker_config import BrokerConfig, find_broker_key
from moldau.config.definitions import ConfigError
from moldau.config.unserved import unserved_settings
from moldau.security.exposure.findings import SEVERE, SEVERITIES, Facts, Finding
from moldau.security.exposure.listeners import ListenerView, view_listeners
from moldau.security.exposure.logins import check_logins_of
from moldau.security.exposure.rights import check_rights
from moldau.security.exposure.surroundings import check_surroundings
from moldau.security.exposure.tls import CIPHERS_KEY, KEY_STORE_KEY, PROTOCOLS_KEY, check_tls
from moldau.security.sasl_settings import check_logins
from moldau.security.tls_settings import TlsSettings

_WORD = re.compile(r"[a-z]+(?:\.[a-z0-9-]+)+")


def check_exposure(config: BrokerConfig, facts: Facts, now_s: int) -> list[Finding]:
    """Those of equal severity in the order of subjects, and of listeners within one."""
    listeners = view_listeners(config)
    found = [
        *_start(config, listeners, facts),
        *check_rights(config, listeners, facts),
        *check_logins_of(config, listeners),
        *check_tls(config, listeners, facts, now_s),
        *check_surroundings(config, listeners, facts),
    ]
    return sorted(dict.fromkeys(found), key=lambda finding: SEVERITIES.index(finding.severity))


def _start(config: BrokerConfig, listeners: list[ListenerView], facts: Facts) -> Iterator[Finding]:
    """What keeps a node from starting: a promise that it could not keep."""
    sentences = unserved_settings(config)
    if not sentences:
        try:
            check_logins(config)
        except ConfigError as error:
            sentences.append(error.message)
    for sentence in sentences:
        yield _does_not_start(sentence, "")
    for view in listeners:
        if not view.is_encrypted:
            continue
        problem = facts.stores[view.name].problem if view.name in facts.stores else ""
        try:
            TlsSettings(config, view.name)
        except ConfigError as error:
            # Versions and ciphers are looked at by themselves.
            problem = "" if any(key in error.message for key in (PROTOCOLS_KEY, CIPHERS_KEY)) else error.message
        if problem:
            yield _does_not_start(problem, view.name)


def _does_not_start(sentence: str, listener: str) -> Finding:
    """The setting to change is the first that the sentence names; where it names none it is about a listener's keys."""
    said = sentence.removeprefix(f"listener {listener}: ")
    key = next((word for word in _WORD.findall(said) if find_broker_key(word) is not None), KEY_STORE_KEY)
    return Finding(SEVERE, "does-not-start", key, f"A node does not start with this: {said}", listener)
