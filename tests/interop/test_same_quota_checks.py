"""AlterClientQuotas and DescribeClientQuotas refuse what Apache Kafka refuses, with its codes, and store the same."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol.messages import alter_client_quotas_request as alter
from moldau.protocol.messages import describe_client_quotas_request as describe
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.pace import patience

Parts = list[tuple[str, str | None]]
Ops = list[tuple[str, float | None]]
EXACT, DEFAULT, ANY = 0, 1, 2
SECONDS = patience(30)

# Name of the case, and the entries of one request: parts of the entity, and operations (None removes).
CHANGES: dict[str, list[tuple[Parts, Ops]]] = {
    "user": [([("user", "anna")], [("producer_byte_rate", 1024.0)])],
    "pair": [([("user", "anna"), ("client-id", "c")], [("consumer_byte_rate", 5.0), ("request_percentage", 0.5)])],
    "defaults": [([("user", None), ("client-id", None)], [("controller_mutation_rate", 0.25)])],
    "ip": [([("ip", "10.1.2.3")], [("connection_creation_rate", 7.0)])],
    "default ip": [([("ip", None)], [("connection_creation_rate", 7.0)])],
    "no parts": [([], [("producer_byte_rate", 1.0)])],
    "unknown type": [([("group", "g")], [("producer_byte_rate", 1.0)])],
    "empty name": [([("user", "")], [("producer_byte_rate", 1.0)])],
    "ip and user": [([("ip", "10.1.2.3"), ("user", "anna")], [("connection_creation_rate", 1.0)])],
    "ip that is none": [([("ip", "no.such.host.invalid")], [("connection_creation_rate", 1.0)])],
    "key of another kind": [([("user", "anna")], [("connection_creation_rate", 1.0)])],
    "key of a user for an ip": [([("ip", "10.1.2.3")], [("producer_byte_rate", 1.0)])],
    "unknown key": [([("user", "anna")], [("speed", 1.0)])],
    "zero": [([("user", "anna")], [("producer_byte_rate", 0.0)])],
    "less than zero": [([("user", "anna")], [("request_percentage", -1.0)])],
    "zero connections": [([("ip", "10.1.2.3")], [("connection_creation_rate", 0.0)])],
    "part of a byte": [([("user", "anna")], [("consumer_byte_rate", 1.5)])],
    "nearly whole": [([("user", "anna")], [("consumer_byte_rate", 2.0000001)])],
    "too many bytes": [([("user", "anna")], [("producer_byte_rate", 1e19)])],
    "too many connections": [([("ip", "10.1.2.3")], [("connection_creation_rate", 3e9)])],
    "part of a connection": [([("ip", "10.1.2.3")], [("connection_creation_rate", 1.5)])],
    "a key twice": [([("user", "anna")], [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)])],
    "an entity twice": [
        ([("user", "anna")], [("producer_byte_rate", 11.0)]),
        ([("user", "bert")], [("producer_byte_rate", 12.0)]),
        ([("user", "anna")], [("producer_byte_rate", 13.0)]),
    ],
    "one good, one bad": [
        ([("user", "anna")], [("producer_byte_rate", 21.0)]),
        ([("user", "bert")], [("producer_byte_rate", -1.0)]),
    ],
    "a bad key behind a good one": [([("user", "anna")], [("producer_byte_rate", 31.0), ("speed", 1.0)])],
    "removal of nothing": [([("user", "anna")], [("producer_byte_rate", None)])],
    "removal of an unknown key": [([("user", "anna")], [("speed", None)])],
    "type twice": [([("user", "anna"), ("user", "bert")], [("producer_byte_rate", 1.0)])],
}

# Components: type, how it is matched, name.
FILTERS: dict[str, list[tuple[str, int, str | None]]] = {
    "empty type": [("", EXACT, "a")],
    "type twice": [("user", EXACT, "a"), ("user", EXACT, "b")],
    "unknown type": [("group", EXACT, "a")],
    "exact without a name": [("user", EXACT, None)],
    "default with a name": [("user", DEFAULT, "a")],
    "any with a name": [("user", ANY, "a")],
    "unknown match": [("user", 3, None)],
    "ip and user": [("ip", EXACT, "10.1.2.3"), ("user", EXACT, "a")],
}


def all_quotas(wire: Any) -> list[Any]:
    answer = wire.ask(describe.DescribeClientQuotasRequest([], False), 1)
    return sorted(
        (
            sorted((part.entity_type, part.entity_name or "") for part in entry.entity),
            sorted((value.key, value.value) for value in entry.values),
        )
        for entry in answer.entries
    )


def remove_all(wire: Any) -> None:
    answer = wire.ask(describe.DescribeClientQuotasRequest([], False), 1)
    entries = [
        alter.EntryData(
            [alter.EntityData(part.entity_type, part.entity_name) for part in entry.entity],
            [alter.OpData(value.key, 0.0, True) for value in entry.values],
        )
        for entry in answer.entries
    ]
    if entries:
        wire.ask(alter.AlterClientQuotasRequest(entries), 1)
    settle(wire, [])


def settle(wire: Any, wanted: list[Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while all_quotas(wire) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("case", CHANGES)
def test_changes_are_checked_and_stored_alike(same: Same, case: str) -> None:
    def scenario(peer: Peer) -> Any:
        entries = [
            alter.EntryData(
                [alter.EntityData(kind, name) for kind, name in parts],
                [alter.OpData(key, 0.0 if value is None else value, value is None) for key, value in ops],
            )
            for parts, ops in CHANGES[case]
        ]
        mark = alter.EntryData([alter.EntityData("user", "mark")], [alter.OpData("producer_byte_rate", 77.0, False)])
        with peer.connect() as wire:
            remove_all(wire)
            try:
                only_checked = wire.ask(alter.AlterClientQuotasRequest(entries, True), 1)
                done = wire.ask(alter.AlterClientQuotasRequest(entries, False), 1)
                # What is behind it in the metadata log tells when all of it has arrived.
                wire.ask(alter.AlterClientQuotasRequest([mark], False), 1)
                deadline = time.monotonic() + SECONDS
                while not any(parts == [("user", "mark")] for parts, _ in all_quotas(wire)):
                    assert time.monotonic() < deadline, "the broker does not hear of the change"
                    time.sleep(0.05)
                return codes(only_checked), codes(done), all_quotas(wire)
            finally:
                remove_all(wire)

    same(scenario)


def codes(answer: Any) -> list[Any]:
    return sorted(
        (sorted((part.entity_type, part.entity_name or "") for part in entry.entity), entry.error_code)
        for entry in answer.entries
    )


@pytest.mark.parametrize("case", FILTERS)
def test_filters_are_checked_alike(same: Same, case: str) -> None:
    def scenario(peer: Peer) -> Any:
        components = [describe.ComponentData(kind, how, name) for kind, how, name in FILTERS[case]]
        with peer.connect() as wire:
            answer = wire.ask(describe.DescribeClientQuotasRequest(components, False), 1)
            return answer.error_code, answer.entries

    code, _ = same(scenario)
    assert code != 0
