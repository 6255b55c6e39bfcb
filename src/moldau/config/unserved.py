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
from moldau.config.honoured import honoured_broker_keys

SERVED_PROTOCOLS: Final = ("PLAINTEXT",)
_MISSING: Final = {
    "SSL": "connections would not be encrypted",
    "SASL_PLAINTEXT": "nobody would be asked to log in",
    "SASL_SSL": "connections would not be encrypted and nobody asked to log in",
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
                f"{_MISSING[protocol]}. Give it PLAINTEXT in listener.security.protocol.map, on an address that only "
                "those can reach whom you trust."
            )
    return sentences


def _client_certificates(config: BrokerConfig) -> list[str]:
    sentences = []
    for name in config.values:
        prefixed = split_listener_key(name)
        if (prefixed[1] if prefixed else name) == "ssl.client.auth" and config.get(name) in ("required", "requested"):
            sentences.append(
                f"{name} is {config.get(name)}, but this broker does not serve TLS yet and would ask nobody for a "
                "certificate. Set it to none, or leave it out."
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
            if find_broker_key(name) is not None:
                found.append(name)  # a listener has no settings of its own yet
        elif name in BROKER_KEYS and name not in honoured and name not in _READ_WITH_LISTENERS:
            key = BROKER_KEYS[name]
            if config.get(name) != key.parse(key.default):
                found.append(name)
    return sorted(found)
