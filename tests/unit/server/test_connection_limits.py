"""Settings and quotas reach the listeners, names of hosts as addresses, and what they count is exported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from moldau.controller.mutations import Asker
from moldau.net.listener_group import ListenerGroup
from moldau.net.resolver import Done
from moldau.net.turns import Turns
from moldau.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.quota.connection_quotas import UNLIMITED, ConnectionQuotas
from moldau.server.connection_limits import ConnectionLimits, make_quotas
from moldau.server.metrics.certificates import certificate_metrics
from moldau.server.metrics.connections import ADDRESSES_SHOWN_MAX, connection_metrics
from moldau.server.metrics.metric import to_text
from moldau.server.metrics.mutations import mutation_metrics
from tests.unit.controller.world import World, config


class Lookups:
    """A resolver that answers when it is told to."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[int, Done]] = {}

    def resolve(self, host: str, asker: object, attempt: int, done: Done) -> None:
        self.asked[host] = (attempt, done)

    def forget(self, host: str, asker: object) -> None:
        self.asked.pop(host, None)

    def answer(self, host: str, *addresses: str) -> None:
        attempt, done = self.asked.pop(host)
        done(attempt, [(2, address) for address in addresses])


class Setup:
    def __init__(self) -> None:
        self.lookups: Any = Lookups()
        self.quotas = ConnectionQuotas("INSIDE")
        for name in ("INSIDE", "PLAINTEXT"):
            self.quotas.add_listener(name)
        self.limits = ConnectionLimits([ListenerGroup(self.quotas, Turns())], self.lookups)


def test_a_listener_has_its_own_limits_or_those_of_all() -> None:
    setup = Setup()
    values = {
        "max.connections": "7",
        "listener.name.plaintext.max.connections": "5",
        "max.connection.creation.rate": "11",
        "listener.name.inside.max.connection.creation.rate": "3",
        "max.connections.per.ip": "2",
    }
    setup.limits.apply_config(config(**{name.replace(".", "_"): value for name, value in values.items()}))
    quotas, inside, outside = setup.quotas, setup.quotas.listeners["INSIDE"], setup.quotas.listeners["PLAINTEXT"]
    assert (quotas.connections_max, outside.connections_max, inside.connections_max) == (7, 5, 7)
    assert (quotas.creation_rate_max, outside.creation_rate_max, inside.creation_rate_max) == (11, 11, 3)
    assert quotas.per_address_max == 2
    setup.limits.apply_config(config())
    assert quotas.connections_max == outside.connections_max == quotas.per_address_max == UNLIMITED


def test_names_are_looked_up_and_count_when_they_are_found() -> None:
    setup = Setup()
    changed = config(max_connections_per_ip_overrides="10.0.0.1:3,a.example:4,0:0:0:0:0:0:0:1:5")
    setup.limits.apply_config(changed)
    assert setup.quotas.per_address_overrides == {"10.0.0.1": 3, "::1": 5}
    setup.lookups.answer("a.example", "10.0.0.7", "10.0.0.8")
    assert setup.quotas.per_address_overrides == {"10.0.0.1": 3, "::1": 5, "10.0.0.7": 4}
    setup.limits.apply_config(changed)
    assert not setup.lookups.asked, "what is known is not looked up again"


def test_a_name_that_nobody_knows_has_no_effect_and_is_asked_for_again() -> None:
    setup = Setup()
    setup.limits.apply_client_quotas({(("ip", "b.example"),): {"connection_creation_rate": 5.0}})
    setup.lookups.answer("b.example")
    assert setup.quotas.ip_rates == {}
    setup.limits.apply_config(config())
    setup.lookups.answer("b.example", "10.0.0.9")
    assert setup.quotas.ip_rates == {"10.0.0.9": 5.0}


def test_a_limit_that_is_gone_before_its_name_is_found_does_nothing() -> None:
    setup = Setup()
    setup.limits.apply_client_quotas({(("ip", "b.example"),): {"connection_creation_rate": 5.0}})
    attempt, done = setup.lookups.asked["b.example"]
    setup.limits.apply_client_quotas({})
    done(attempt, [(2, "10.0.0.9")])
    assert setup.quotas.ip_rates == {}


def test_rates_of_addresses_come_from_the_entities_of_ips() -> None:
    setup = Setup()
    setup.limits.apply_client_quotas(
        {
            (("ip", "::ffff:10.0.0.1"),): {"connection_creation_rate": 5.0},
            (("ip", None),): {"connection_creation_rate": 9.0},
            (("user", "10.0.0.2"),): {"producer_byte_rate": 1.0},
        }
    )
    assert (setup.quotas.ip_rates, setup.quotas.ip_rate_default) == ({"10.0.0.1": 5.0}, 9.0)
    setup.limits.apply_client_quotas({})
    assert (setup.quotas.ip_rates, setup.quotas.ip_rate_default) == ({}, None)


def test_the_windows_are_those_of_the_settings() -> None:
    quotas = make_quotas(config(quota_window_num="3", quota_window_size_seconds="2"))
    assert (quotas.rate.count, quotas.rate.sample_ms) == (3, 2000)


def test_listeners_and_addresses_are_exported_and_these_are_few() -> None:
    setup = Setup()
    setup.quotas.limit_addresses({}, 1000.0)
    listener: Any = Stand("PLAINTEXT")
    group = ListenerGroup(setup.quotas, Turns())
    group.listeners.append(listener)
    for number in range(300):
        setup.quotas.arrive("PLAINTEXT", 0)
        setup.quotas.admit("PLAINTEXT", f"10.0.{number // 250}.{number % 250}", 0)
    lines = to_text(connection_metrics([group], 0)).splitlines()
    prefix = "kafka_server_socket_server_metrics"
    assert f'{prefix}_connection_accept_rate{{listener="PLAINTEXT"}} 30.0' in lines
    assert f'{prefix}_broker_connection_accept_rate{{role="broker"}} 30.0' in lines
    assert f'{prefix}_connection_count{{listener="PLAINTEXT"}} 300' in lines
    assert f'{prefix}_successful_authentication_total{{listener="PLAINTEXT"}} 7' in lines
    assert f'{prefix}_failed_authentication_total{{listener="PLAINTEXT"}} 2' in lines
    assert sum("ip=" in line for line in lines) == ADDRESSES_SHOWN_MAX
    assert not any(line.startswith(f"{prefix}_connection_accept_throttle_time{{") for line in lines)


def test_the_end_of_a_certificate_is_exported() -> None:
    plain: Any = Stand("PLAINTEXT")
    plain.tls = None
    secured: Any = Stand("SSL")
    secured.tls = SimpleNamespace(expires_s=1_900_000_000)
    group = ListenerGroup(Setup().quotas, Turns())
    group.listeners += [plain, secured]
    rows = [line for line in to_text(certificate_metrics([group])).splitlines() if not line.startswith("#")]
    assert rows == ['moldau_listener_certificate_expiry_timestamp_seconds{listener="SSL"} 1900000000']


class Stand:
    """What the metrics see of a listener."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_controller = False
        self.connection_count = 300
        self.blocked_ms_total = self.refused_total = self.throttled_total = 0
        self.tls, self.gate_keeper = object(), None
        self.authenticated_total, self.failed_authentication_total = 7, 2


def test_buckets_are_exported_and_these_are_few() -> None:
    world = World()
    world.add_brokers(1)
    entity = [EntityData("user", None)]
    op = OpData("controller_mutation_rate", 1.0, False)
    world.run(world.controller.alter_client_quotas(AlterClientQuotasRequest([EntryData(entity, [op])]), 0))
    for number in range(200):
        request = CreateTopicsRequest([CreatableTopic(f"t{number}", 1 if number else 5, 1)])
        world.run(world.controller.create_topics(request, 0, Asker(f"u {number}", "c", True)))
    lines = to_text(mutation_metrics(world.controller, 0)).splitlines()
    tokens = [line for line in lines if line.startswith("kafka_server_controllermutation_tokens{")]
    assert len(tokens) == 100 and tokens[0].endswith('{user="u%200",client_id=""} 6.0')
    assert to_text(mutation_metrics(None, 0)).count("{") == 0
