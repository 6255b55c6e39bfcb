"""Settings that this broker knows and does not serve yet: which of them keep a node from starting, which are only told.

What promises safety (encryption, logins, rights) must not be taken and then not kept: with such a setting a node does
not start, and a change of configs to it is refused. What has no effect otherwise is named once at the start, where
somebody has set it to something else than its default. When a promise is kept one day, its check here goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moldau.config.broker_config import BrokerConfig, find_broker_key, split_listener_key
from moldau.config.broker_keys import BROKER_KEYS
from moldau.config.definitions import ConfigError
from moldau.config.honoured import HONOURED_BROKER_KEYS, honoured_broker_keys

SERVED_PROTOCOLS: Final = ("PLAINTEXT", "SSL")
_MISSING: Final = {
    "SASL_PLAINTEXT": "nobody would be asked to log in",
    "SASL_SSL": "nobody would be asked to log in",
}
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
# Read by the authorizer from the same file.
_AUTHORIZER_KEYS: Final = ("allow.everyone.if.no.acl.found", "super.users")
# Decides the name of a listener, which is checked as such.
_READ_WITH_LISTENERS: Final = ("security.inter.broker.protocol",)


def check_served(config: BrokerConfig) -> None:
    """Raises ConfigError, with a line for each setting, when some promise safety that would not be there."""
    sentences = unserved_settings(config)
    if sentences:
        raise ConfigError("\n".join(sentences))


def unserved_settings(config: BrokerConfig) -> list[str]:
    """A sentence for each setting that promises safety and is not served: what it is, and what to do."""
    return [*_listeners(config), *_client_certificates(config), *_logins(config), *_rights(config)]


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


def _listeners(config: BrokerConfig) -> list[str]:
    """All that this node listens on or connects to: its own listeners, the controllers', and those between brokers."""
    used = {endpoint.name: f"listener {endpoint.name}" for endpoint in config.listeners}
    for name in config.controller_listener_names:
        used.setdefault(name, f"controller listener {name}")
    used.setdefault(config.inter_broker_listener_name, f"inter-broker listener {config.inter_broker_listener_name}")
    sentences = []
    for name, shown in used.items():
        protocol = config.security_protocols.get(name, name)
        if protocol in _MISSING and protocol not in SERVED_PROTOCOLS:
            sentences.append(
                f"{shown} has the security protocol {protocol}, which this broker does not serve yet: "
                f"{_MISSING[protocol]}. Give it SSL in listener.security.protocol.map, with ssl.client.auth=required, "
                "or PLAINTEXT on an address that only those can reach whom you trust."
            )
    return sentences


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
    protocols = {config.security_protocols.get(endpoint.name, "") for endpoint in config.listeners}
    if not any(protocol.startswith("SASL_") and protocol not in SERVED_PROTOCOLS for protocol in protocols):
        return []
    return [
        f"{name} is {config.values[name]}, but this broker does not serve SASL yet and nobody could log in. Leave it "
        "out, together with its listeners."
        for name in config.values
        if (split_listener_key(name) or ("", name))[1] == "sasl.enabled.mechanisms"
    ]


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
        if name in _AUTHORIZER_KEYS:
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


def _counts_for_listener(config: BrokerConfig, name: str) -> bool:
    """Whether a setting of one listener has an effect there: those of TLS, where there is TLS."""
    listener, key = split_listener_key(name) or ("", name)
    protocol = config.security_protocols.get(listener.upper(), "")
    return key.startswith("ssl.") and key in HONOURED_BROKER_KEYS and protocol.endswith("SSL")
