"""Brings limits on connections from the settings and the metadata to the listeners, names of hosts as addresses.

Names are looked up when they are set, off the event loop. Until a name is found, what it limits is not limited by it;
one that cannot be found is told in the log and looked up again with the next change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from moldau.config.broker_config import BrokerConfig
from moldau.config.listeners import parse_connection_overrides
from moldau.metadata.image import QuotaEntity
from moldau.net.listener_group import ListenerGroup
from moldau.net.resolver import Found, Resolver
from moldau.quota.connection_quotas import ConnectionQuotas, address_key

log = logging.getLogger("moldau.server")

IP = "ip"
CONNECTION_RATE = "connection_creation_rate"

V = TypeVar("V")


class ConnectionLimits:
    """Those of one node. A node that is broker and controller has two groups of listeners, each with a count of its
    own, as Kafka has."""

    def __init__(self, groups: Iterable[ListenerGroup], resolver: Resolver) -> None:
        self._groups = list(groups)
        self._addresses = HostAddresses(resolver, self._apply_addresses)
        self._overrides: dict[str, int] = {}
        self._ip_rates: dict[str, float] = {}
        self._ip_rate_default: float | None = None

    def apply_config(self, config: BrokerConfig) -> None:
        """Holds for what comes from now on; a connection that waits keeps its delay."""
        for group in self._groups:
            quotas = group.quotas
            quotas.connections_max = config.get_int("max.connections")
            quotas.creation_rate_max = config.get_int("max.connection.creation.rate")
            quotas.per_address_max = config.get_int("max.connections.per.ip")
            for listener in quotas.listeners.values():
                listener.connections_max = _number(config, listener.name, "max.connections")
                listener.creation_rate_max = _number(config, listener.name, "max.connection.creation.rate")
        self._overrides = parse_connection_overrides(config.get_str("max.connections.per.ip.overrides"))
        self._look_up()

    def apply_client_quotas(self, client_quotas: dict[QuotaEntity, dict[str, float]]) -> None:
        self._ip_rates = {}
        self._ip_rate_default = None
        for entity, quotas in client_quotas.items():
            if len(entity) == 1 and entity[0][0] == IP and CONNECTION_RATE in quotas:
                name = entity[0][1]
                if name is None:
                    self._ip_rate_default = quotas[CONNECTION_RATE]
                else:
                    self._ip_rates[name] = quotas[CONNECTION_RATE]
        self._look_up()

    def _look_up(self) -> None:
        self._addresses.want({*self._overrides, *self._ip_rates})
        self._apply_addresses()

    def _apply_addresses(self) -> None:
        overrides = self._addresses.keyed(self._overrides)
        rates = self._addresses.keyed(self._ip_rates)
        for group in self._groups:
            group.quotas.per_address_overrides = overrides
            group.quotas.limit_addresses(rates, self._ip_rate_default)
            group.changed()


class HostAddresses:
    """The addresses of hosts that are named in limits, as far as they are known."""

    def __init__(self, resolver: Resolver, on_found: Callable[[], None]) -> None:
        self._resolver = resolver
        self._on_found = on_found
        self._known: dict[str, str | None] = {}
        self._attempts = 0
        self._asked: dict[str, int] = {}

    def want(self, hosts: set[str]) -> None:
        """These and no others; those that are new are looked up."""
        for host in self._asked.keys() - hosts:
            self._resolver.forget(host, self)
        self._asked = {host: attempt for host, attempt in self._asked.items() if host in hosts}
        self._known = {host: address for host, address in self._known.items() if host in hosts and address is not None}
        for host in hosts:
            if host in self._known or host in self._asked:
                continue
            address = address_key(host)
            if address is not None:
                self._known[host] = address
            else:
                self._ask(host)

    def _ask(self, host: str) -> None:
        self._attempts += 1
        self._asked[host] = self._attempts
        self._resolver.resolve(host, self, self._attempts, lambda attempt, found: self._take(host, attempt, found))

    def _take(self, host: str, attempt: int, found: list[Found]) -> None:
        if self._asked.get(host) != attempt:
            return
        del self._asked[host]
        if not found:
            log.warning("cannot resolve host %s: the limit on its connections has no effect", host)
            return
        self._known[host] = address_key(found[0][1])
        self._on_found()

    def keyed(self, by_host: dict[str, V]) -> dict[str, V]:
        """The same by address, for the hosts whose address is known."""
        keyed: dict[str, V] = {}
        for host, value in by_host.items():
            address = self._known.get(host)
            if address is not None:
                keyed[address] = value
        return keyed


def make_quotas(config: BrokerConfig) -> ConnectionQuotas:
    return ConnectionQuotas(
        config.inter_broker_listener_name,
        config.get_int("quota.window.num"),
        config.get_int("quota.window.size.seconds") * 1000,
    )


def _number(config: BrokerConfig, listener: str, name: str) -> int:
    value = config.get_for_listener(listener, name)
    assert isinstance(value, int), name
    return value
