"""Reads listeners, security protocols, voters and bootstrap servers out of their config texts."""

import ipaddress
import re
from typing import Final

from moldau.config.definitions import ConfigError

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_VOTER = re.compile(r"([0-9]+)@\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)")
_HOST_PORT = re.compile(r"\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)")


class Endpoint:
    """One listener: its name, what it speaks and where it is; an empty host is every address."""

    def __init__(self, name: str, protocol: str, host: str, port: int) -> None:
        self.name = name
        self.protocol = protocol
        self.host = host
        self.port = port

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Endpoint) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.name, self.host, self.port))

    def __repr__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}({self.protocol})://{host}:{self.port}"


class Voter:
    """A controller named in controller.quorum.voters."""

    def __init__(self, id: int, host: str, port: int) -> None:
        self.id = id
        self.host = host
        self.port = port

    def __repr__(self) -> str:
        return f"{self.id}@{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether nobody on another machine can mean this one by that name."""
    if host.lower() == "localhost":
        return True
    address = address_of(host)
    return address is not None and address.is_loopback


def is_every_address(host: str) -> bool:
    """Whether who binds it is reached at every address of this machine, however it is written."""
    address = address_of(host)
    return host in EVERY_ADDRESS or (address is not None and address.is_unspecified)


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that is written here, that of IPv4 where it is one in the clothes of IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def listener_name(text: str) -> str:
    """The name before ://, in capitals as Kafka keeps it."""
    name, colon, _ = text.partition(":")
    if not colon or not name.strip():
        raise ConfigError(f"Unable to parse a listener name from {text}")
    return name.strip().upper()


def parse_protocol_map(text: str) -> dict[str, str]:
    """listener.security.protocol.map as name -> protocol."""
    protocols: dict[str, str] = {}
    for entry in text.split(","):
        if not entry.strip():
            continue
        name, colon, protocol = entry.strip().rpartition(":")
        if not colon or not name.strip():
            raise ConfigError(
                f"Error parsing configuration property 'listener.security.protocol.map': {entry.strip()} is not "
                "listener:protocol"
            )
        if protocol.strip().upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"Invalid security protocol `{protocol.strip()}` defined in listener.security.protocol.map"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_listeners(texts: list[str], protocols: dict[str, str], distinct_ports: bool) -> list[Endpoint]:
    """The endpoints of `listeners` or `advertised.listeners`; names differ, and so do the ports one node binds."""
    try:
        endpoints = [_parse_listener(text, protocols) for text in texts]
        shown = "[" + ", ".join(texts) + "]"
        if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
            raise ConfigError(f"Each listener must have a different name, listeners: {shown}")
        if distinct_ports:
            _check_ports(endpoints, shown)
    except ConfigError as error:
        raise ConfigError(f"Error creating broker listeners from '[{', '.join(texts)}]': {error.message}") from None
    return endpoints


def _parse_listener(text: str, protocols: dict[str, str]) -> Endpoint:
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ConfigError(f"Unable to parse {text} to a broker endpoint")
    name, host, port = listener_name(text), match[2], int(match[3])
    if name not in protocols:
        raise ConfigError(f"No security protocol defined for listener {name}")
    if not -1 <= port <= 65535:
        raise ConfigError(f"Unable to parse {text} to a broker endpoint: a port is at most 65535")
    return Endpoint(name, protocols[name], host, port)


def _check_ports(endpoints: list[Endpoint], shown: str) -> None:
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, same in by_port.items():
        if len(same) == 1:
            continue
        if len(same) > 2 or sum(":" in endpoint.host for endpoint in same) != 1:
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
                f"listeners: {shown}, port: {port}"
            )


def parse_voters(texts: list[str]) -> list[Voter]:
    voters = []
    for text in texts:
        match = _VOTER.fullmatch(text)
        if match is None or int(match[3]) > 65535:
            raise ConfigError(
                "Invalid configuration value for controller.quorum.voters. "
                "Each entry should be in the form `{id}@{host}:{port}`."
            )
        voters.append(Voter(int(match[1]), match[2], int(match[3])))
    return voters


def parse_bootstrap_servers(texts: list[str], name: str) -> list[tuple[str, int]]:
    servers = []
    for text in texts:
        match = _HOST_PORT.fullmatch(text)
        if match is None or int(match[2]) > 65535:
            raise ConfigError(
                f"Failed to parse host name from {text} for the configuration {name}. "
                'Each entry should be in the form "{host}:{port}"'
            )
        servers.append((match[1], int(match[2])))
    return servers


def parse_connection_overrides(text: str) -> dict[str, int]:
    """max.connections.per.ip.overrides as host -> number."""
    overrides: dict[str, int] = {}
    for entry in text.split(","):
        if not entry.strip():
            continue
        host, colon, number = entry.strip().rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property 'max.connections.per.ip.overrides': {entry.strip()} is not "
                "host:number"
            )
        if not re.fullmatch(r"[0-9]{1,10}", number.strip()):
            raise ConfigError(f'For input string: "{number.strip()}"')
        overrides[host.strip()] = int(number)
    return overrides
