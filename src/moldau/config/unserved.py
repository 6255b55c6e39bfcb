"""Settings that this broker knows and does not serve yet: which of them keep a node from starting, which are only told.

What promises safety (encryption, logins, rights) must not be taken and then not kept: with such a setting a node does
not start, and a change of configs to it is refused. What has no effect otherwise is named once at the start, where
somebody has set it to something else than its default. When a promise is kept one day, its check here goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moldau.config.broker_config import (
    AUTHORIZER_KEYS,
    PREFIXES_OF_OTHERS,
    BrokerConfig,
    find_broker_key,
    split_listener_key,
    split_mechanism_key,
)
from moldau.config.broker_keys import BROKER_KEYS
from moldau.config.definitions import ConfigError
from moldau.config.honoured import HONOURED_BROKER_KEYS, HONOURED_LISTENER_KEYS, honoured_broker_keys

SERVED_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_PROMISES: Final = frozenset(
    {
        "advertised.listeners",
        "authorizer.class.name",
        "listener.security.protocol.map",
        "listeners",
        "sasl.enabled.mechanisms",
        "ssl.client.auth",
    }
)
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# Decides the name of a listener, which is checked as such.
_READ_WITH_LISTENERS: Final = ("security.inter.broker.protocol",)


def check_served(config: BrokerConfig) -> None:
    """Raises ConfigError, with a line for each setting, when some promise safety that would not be there."""
    sentences = unserved_settings(config)
    if sentences:
        raise ConfigError("\n".join(sentences))


def unserved_settings(config: BrokerConfig) -> list[str]:
    """A sentence for each setting that promises safety and is not served: what it is, and what to do."""
    return [*_client_certificates(config), *_logins(config), *_rights(config)]


def unserved_changes(proposed: BrokerConfig, running: BrokerConfig) -> list[str]:
    """The same for what cannot be had while the node runs: a listener keeps the protocol that it began with."""
    begun = {endpoint.name: endpoint.protocol for endpoint in running.listeners}
    return [
        f"listener {one.name} has the security protocol {one.protocol} from the next start on and not before: set it "
        "in the properties file and restart the broker."
        for one in proposed.listeners
        if one.protocol != begun.get(one.name, "PLAINTEXT")
    ]


def may_promise_safety(name: str) -> bool:
    """Whether `unserved_settings` looks at this setting, or at one of the same name for a single listener."""
    return (split_listener_key(name) or ("", name))[1] in _PROMISES


def _client_certificates(config: BrokerConfig) -> list[str]:
    """Asked for on a listener without TLS, or on all where none has it."""
    encrypted = {endpoint.name.lower() for endpoint in config.listeners if endpoint.protocol.endswith("SSL")}
    sentences = []
    for name in config.values:
        listener, key = split_listener_key(name) or ("", name)
        is_kept = listener in encrypted if listener else bool(encrypted)
        if key == "ssl.client.auth" and not is_kept and config.get(name) in ("required", "requested"):
            sentences.append(
                f"{name} is {config.get(name)}, but without TLS nobody is asked for a certificate. Give the listener "
                "SSL in listener.security.protocol.map, or leave this out."
            )
    return sentences


def _logins(config: BrokerConfig) -> list[str]:
    """Of each listener that asks for a login: mechanisms that nobody could log in with."""
    sentences = []
    for endpoint in config.listeners:
        protocol = config.security_protocols.get(endpoint.name, "")
        if not protocol.startswith("SASL_"):
            continue
        enabled = config.get_for_listener(endpoint.name, "sasl.enabled.mechanisms")
        assert isinstance(enabled, list)
        unserved = [name for name in enabled if name not in SERVED_MECHANISMS]
        if unserved or not enabled:
            sentences.append(
                f"listener {endpoint.name} has sasl.enabled.mechanisms={','.join(enabled)}, but this broker does not "
                f"serve {' or '.join(unserved) or 'logins without a mechanism'}"
                f"{', so there are no logins with Kerberos' if 'GSSAPI' in unserved else ''}. Choose from "
                f"{', '.join(SERVED_MECHANISMS)}."
            )
    return sentences


def _rights(config: BrokerConfig) -> list[str]:
    authorizer = config.get_str("authorizer.class.name")
    if authorizer in ("", STANDARD_AUTHORIZER):
        return []
    sentence = (
        f"authorizer.class.name is {authorizer}, which this broker does not have: rights would not be decided by it. "
        f"Set it to {STANDARD_AUTHORIZER}, or leave it out and let only those reach the listeners whom you trust."
    )
    return [sentence]


def without_effect(config: BrokerConfig, given: Iterable[str]) -> list[str]:
    """Those of the names in `given` that are known, change nothing yet, and are not set to what they are anyway."""
    honoured = honoured_broker_keys()
    found = []
    for name in given:
        if name in AUTHORIZER_KEYS:
            if not config.get_str("authorizer.class.name"):
                found.append(name)  # there is nobody to read it
        elif split_listener_key(name) is not None:
            if find_broker_key(name) is not None and not _counts_for_listener(config, name):
                found.append(name)
        elif name in BROKER_KEYS and name not in honoured and name not in _READ_WITH_LISTENERS:
            key = BROKER_KEYS[name]
            if config.get(name) != key.parse(key.default):
                found.append(name)
    return sorted(found)


def read_by_nobody(given: Iterable[str]) -> list[str]:
    """Those of the names in `given` that belong to others and will not have an effect here."""
    return sorted(name for name in given if name.startswith(PREFIXES_OF_OTHERS))


def _counts_for_listener(config: BrokerConfig, name: str) -> bool:
    """Whether a setting of one listener has an effect there: of TLS, where there is TLS, or of logins."""
    listener, key = split_listener_key(name) or ("", name)
    if split_mechanism_key(key)[1] in HONOURED_LISTENER_KEYS:
        return True
    protocol = config.security_protocols.get(listener.upper(), "")
    return key.startswith("ssl.") and key in HONOURED_BROKER_KEYS and protocol.endswith("SSL")
