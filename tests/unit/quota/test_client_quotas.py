"""What clients use is counted by who shares a budget, and whoever used too much is told how long to wait."""

from __future__ import annotations

from typing import Any

from moldau.quota.client_quotas import ClientBudgets, ClientQuotas
from moldau.quota.entities import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, Entity

ALICE: Entity = (("user", "alice"),)
BOTH: Entity = (("client-id", "app"), ("user", "alice"))
ANY_CLIENT: Entity = (("client-id", None),)


class Clients:
    """Clients of one broker with these quotas."""

    def __init__(self) -> None:
        self.quotas = ClientQuotas()
        self.now_ms = 0
        self.values: dict[Entity, dict[str, float]] = {}

    def set(self, entity: Entity, key: str = PRODUCER_BYTE_RATE, value: float | None = None) -> None:
        before = self.values
        self.values = {name: dict(values) for name, values in before.items()}
        mine = self.values.setdefault(entity, {})
        mine.pop(key, None)
        if value is not None:
            mine[key] = value
        if not mine:
            del self.values[entity]
        self.quotas.apply(self.values, before, [entity])

    def at(self, seconds: float) -> Clients:
        self.now_ms = int(seconds * 1000)
        return self

    def produce(self, size: int, client_id: str = "app", user: str = "alice") -> int:
        return self.quotas.record_produce(self.budgets(client_id, user), size, self.now_ms)

    def budgets(self, client_id: str = "app", user: str = "alice", known: ClientBudgets | None = None) -> ClientBudgets:
        self.quotas.turn_ms = self.now_ms
        return self.quotas.budgets_of(known, f"User:{user}", client_id)


def test_a_kind_is_off_until_somebody_has_a_quota_of_it() -> None:
    clients = Clients()
    quotas = clients.quotas
    assert not quotas.is_on
    clients.set(ALICE, REQUEST_PERCENTAGE, 10)
    assert quotas.is_on and quotas.measures_time and not quotas.produce.is_on
    assert clients.produce(10**9) == 0 and not quotas.produce.budgets
    clients.set(ALICE, REQUEST_PERCENTAGE, None)
    assert not quotas.is_on and not quotas.measures_time


def test_a_steady_client_never_waits_and_a_spike_waits_as_long_as_in_kafka() -> None:
    clients = Clients()
    clients.set(ALICE, value=500)
    for second in range(10):
        assert clients.at(second).produce(400) == 0
    assert clients.at(10.5).produce(2300) == 2100
    for second in range(11, 22):
        clients.at(second).produce(400)
    assert clients.at(22).produce(0) == 0


def test_a_lower_quota_is_felt_by_the_next_request_and_a_higher_one_too() -> None:
    clients = Clients()
    clients.set(ALICE, value=1000)
    assert clients.at(0).produce(9000) == 0
    clients.set(ALICE, value=500)
    assert clients.at(1).produce(0) > 0
    clients.set(ALICE, value=5000)
    assert clients.at(1).produce(0) == 0
    clients.set(ALICE, value=None)
    assert clients.at(1).produce(10**9) == 0


def test_a_client_that_moves_to_another_level_begins_anew() -> None:
    clients = Clients()
    clients.set(ALICE, value=1000)
    assert clients.at(0).produce(20_000) > 0
    clients.set(BOTH, value=1000)
    assert clients.at(0).produce(0) == 0, "(alice, app) has a count of its own"
    assert clients.at(0).produce(0, "other") > 0, "her other clients share that of the user"
    clients.set(BOTH, value=None)
    assert clients.at(0).produce(0) > 0


def test_clients_that_share_an_entity_share_its_budget() -> None:
    clients = Clients()
    clients.set(ALICE, value=1000)
    assert sum(clients.at(1).produce(2000, f"c{number}") > 0 for number in range(10)) == 5
    assert clients.produce(10**6, user="bob") == 0
    clients = Clients()
    clients.set(ANY_CLIENT, value=1000)
    assert not any(clients.at(1).produce(2000, f"c{number}") for number in range(10)), "each has its own"
    assert clients.produce(9000, "c1", user="bob") > 0, "whoever uses it"


def test_a_fetch_is_limited_to_what_fits_into_the_window() -> None:
    clients = Clients()
    clients.set(ALICE, CONSUMER_BYTE_RATE, 1000)
    budgets = clients.budgets()
    assert clients.quotas.fetch_bytes_max(budgets) == 10_000
    assert clients.quotas.record_fetch(budgets, 20_000, 0) > 0
    assert clients.quotas.record_fetch(budgets, -20_000, 0) == 0
    assert clients.quotas.fetch_bytes_max(clients.budgets(user="bob")) == -1


def test_nobody_waits_longer_than_a_sample_for_request_time() -> None:
    clients = Clients()
    clients.set(ALICE, REQUEST_PERCENTAGE, 1)
    budgets = clients.budgets()
    assert clients.quotas.record_request(budgets, 100_000_000, 0) == 0, "one percent of ten seconds"
    assert clients.quotas.record_request(budgets, 1_000_000, 0) == 100
    assert clients.quotas.record_request(budgets, 10**12, 0) == 1000


def test_budgets_that_were_found_hold_until_something_changes() -> None:
    clients = Clients()
    clients.set(ALICE, value=1000)
    first = clients.budgets()
    assert clients.budgets(known=first) is first
    assert clients.budgets("other", known=first) is not first
    assert clients.budgets(user="bob", known=first) is not first
    clients.set(ALICE, value=2000)
    again = clients.budgets(known=first)
    assert again is not first and again.produce is first.produce


def test_who_was_not_there_for_an_hour_is_forgotten() -> None:
    clients = Clients()
    clients.set(ALICE, value=1000)
    quotas = clients.quotas
    known = clients.budgets()
    clients.at(10).produce(1)
    quotas.poll(3_600_000)
    assert list(quotas.produce.budgets) == [("alice", "")]
    quotas.poll(3_700_000)
    assert not quotas.produce.budgets
    assert clients.at(3700).budgets(known=known).produce is quotas.produce.budgets["alice", ""]


def test_budgets_are_bounded_however_many_names_clients_make_up() -> None:
    clients = Clients()
    clients.quotas.produce.budgets_max = 100
    clients.set(ANY_CLIENT, value=1000)
    for number in range(1000):
        clients.at(number / 1000).produce(1, f"made up {number}")
        assert len(clients.quotas.produce.budgets) <= 100
    clients.at(60).produce(1, "one more")
    for number in range(100):
        clients.produce(1, f"later {number}")
    assert ("", "one more") in clients.quotas.produce.budgets


def test_who_waits_is_counted_until_the_time_is_over() -> None:
    clients = Clients()
    clients.set(ALICE, value=1000)
    quotas = clients.quotas
    budgets: Any = clients.budgets()
    assert quotas.throttled(budgets, quotas.produce, 300, 200, 1000) == 300
    assert quotas.throttled(budgets, quotas.produce, 100, 100, 1000) == 100, "request time, which is off"
    assert quotas.produce.queue_size(1299) == 1
    assert quotas.produce.queue_size(1300) == 0
    assert budgets.produce.throttles.average_ms(1300) == 300
    assert budgets.produce.throttles.average_ms(100_000) is None
