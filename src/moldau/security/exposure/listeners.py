"""Each listener as somebody sees it who wants to get in: from where, encrypted or not, as whom."""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.config.broker_config import LISTENER_PREFIX, BrokerConfig
from moldau.config.listeners import Endpoint, address_of, is_every_address, is_loopback
from moldau.security.exposure.findings import NOTE, SEVERE, WARNING
from moldau.security.sasl_settings import MECHANISMS_KEY
from moldau.security.tls_settings import NONE, REQUESTED, REQUIRED

THIS_MACHINE: Final = "this machine"
PRIVATE_NETWORK: Final = "a private network"
EVERYWHERE: Final = "everywhere"
REACHES: Final = (THIS_MACHINE, PRIVATE_NETWORK, EVERYWHERE)

CLIENTS, BROKERS, CONTROLLERS = "clients", "brokers", "controllers"
CLIENT_AUTH_KEY: Final = "ssl.client.auth"
PROTOCOL_MAP_KEY: Final = "listener.security.protocol.map"


class ListenerView(NamedTuple):
    """One listener of this node."""

    name: str
    address: str
    reach: str
    """THIS_MACHINE, PRIVATE_NETWORK or EVERYWHERE: the wider one of the bound address and of the advertised one."""
    protocol: str
    is_encrypted: bool
    mechanisms: tuple[str, ...]
    """Of the login; empty where there is none."""
    client_auth: str
    """Whether certificates are asked for."""
    used_by: tuple[str, ...]
    advertised: str
    """The host by which it is reached from farther away than its address is; empty where there is none."""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.address} (advertised as {self.advertised})" if self.advertised else self.address

    @property
    def is_anonymous(self) -> bool:
        """Whether one can get in without being somebody."""
        return not self.mechanisms and not self.protocol.startswith("SASL_") and self.client_auth != REQUIRED

    @property
    def who(self) -> str:
        """Who can connect, in words."""
        if self.protocol.startswith("SASL_"):
            return f"whoever can log in ({', '.join(self.mechanisms) or 'no mechanism'})"
        if self.client_auth == REQUIRED:
            return "whoever has a trusted certificate"
        if self.client_auth == REQUESTED:
            return "anybody; who has a trusted certificate is known by it"
        return "anybody, as User:ANONYMOUS"

    def scaled(self, if_everywhere: str) -> str:
        """How bad something is here that is so bad where everybody can connect."""
        if self.reach == EVERYWHERE:
            return if_everywhere
        return NOTE if self.reach == THIS_MACHINE else WARNING if if_everywhere == SEVERE else NOTE


def view_listeners(config: BrokerConfig) -> list[ListenerView]:
    return [_view(config, endpoint) for endpoint in config.listeners]


def _view(config: BrokerConfig, endpoint: Endpoint) -> ListenerView:
    is_encrypted = endpoint.protocol.endswith("SSL")
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host or "*"
    advertised = _advertised_farther(config, endpoint)
    return ListenerView(
        name=endpoint.name,
        address=f"{host}:{endpoint.port}",
        reach=reach_of(advertised or endpoint.host),
        protocol=endpoint.protocol,
        is_encrypted=is_encrypted,
        mechanisms=_mechanisms(config, endpoint) if endpoint.protocol.startswith("SASL_") else (),
        client_auth=client_auth_of(config, endpoint) if is_encrypted else NONE,
        used_by=_used_by(config, endpoint.name),
        advertised=advertised,
    )


def _advertised_farther(config: BrokerConfig, endpoint: Endpoint) -> str:
    """Who advertises a loopback or private address under another one has something that forwards to it."""
    own = REACHES.index(reach_of(endpoint.host))
    hosts = (one.host for one in config.advertised_listeners if one.name == endpoint.name)
    return next((host for host in hosts if host and REACHES.index(reach_of(host)) > own), "")


def _mechanisms(config: BrokerConfig, endpoint: Endpoint) -> tuple[str, ...]:
    enabled = config.get_for_listener(endpoint.name, MECHANISMS_KEY)
    return tuple(enabled) if isinstance(enabled, list) else ()


def client_auth_of(config: BrokerConfig, endpoint: Endpoint) -> str:
    """Where clients log in as well, only the listener's own setting counts."""
    if endpoint.protocol == "SASL_SSL" and own_key(endpoint.name, CLIENT_AUTH_KEY) not in config.values:
        return NONE
    return str(config.get_for_listener(endpoint.name, CLIENT_AUTH_KEY) or NONE)


def own_key(listener: str, key: str) -> str:
    return f"{LISTENER_PREFIX}{listener.lower()}.{key}"


def key_in_use(config: BrokerConfig, listener: str, key: str) -> str:
    """The name under which a listener has the setting: its own where that is given."""
    prefixed = own_key(listener, key)
    return prefixed if prefixed in config.values else key


def mechanism_key_in_use(config: BrokerConfig, listener: str, mechanism: str, key: str) -> str:
    prefixed = own_key(listener, f"{mechanism.lower()}.{key}")
    return prefixed if prefixed in config.values else key_in_use(config, listener, key)


def _used_by(config: BrokerConfig, name: str) -> tuple[str, ...]:
    if name in config.controller_listener_names:
        return (CONTROLLERS,)
    return (CLIENTS, BROKERS) if name == config.inter_broker_listener_name else (CLIENTS,)


def reach_of(host: str) -> str:
    """From where an address can be reached. A name may be anybody's."""
    if is_loopback(host):
        return THIS_MACHINE
    address = address_of(host)
    if address is None or is_every_address(host):
        return EVERYWHERE
    return PRIVATE_NETWORK if address.is_private or address.is_link_local else EVERYWHERE
